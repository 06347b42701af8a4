#pragma once
// Attention regions that kernels compute as a whole: which ones, and where their arrays lie.
#include <map>

#include "compiler/ir/grouping.h"
#include "target/machine.h"
#include "weft/numerics.h"

namespace weft::compiler {

/// Returns whether the class for one query takes the region: forward, and masked by a number of keys if at all.
bool takes_single_query(const graph::Node& region);
bool is_single_query(const graph::AttentionRegion& region, const Dim& queries);
/// Returns whether the kernels of src/kernels compute the region: no float64, heads of static widths up to 256, at
/// least 8 queries, and no mask that is a number of keys; on GPUs where tensor cores multiply its operands. Exact
/// float32 they would multiply slower than libraries do.
bool takes_tiled_attention(const graph::Node& region, const target::Machine& machine, const Numerics& numerics);
/// The same of a plan.
bool takes_tiled_attention(const AttentionPlan& plan, const target::Machine& machine, const Numerics& numerics);

/// Where a result of attention lies that is stored as part of another node's buffer.
struct PackedResult {
  NodeId node;
  int64_t offset = 0;
  Strides strides;
};
/// Returns the part of a row-major concatenation that `result` becomes if its only use is to be moved there by permutes
/// and reshapes; nothing otherwise. `strides[result]` are those of a buffer of its own.
std::optional<PackedResult> packed_result(const Ir& ir, const Users& users, const NodeStrides& strides,
                                          const NodeFlags& roots, NodeId result);

/// Plans an attention. `results` are the nodes of the region's results, -1 for those without readers. Operands must be
/// strided views of memory, except the query if `cache` is the scatter that kv_append returned.
AttentionPlan plan_attention(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                             const std::vector<NodeId>& results, const std::map<NodeId, PackedResult>& packed = {},
                             NodeId cache = -1);

}  // namespace weft::compiler
