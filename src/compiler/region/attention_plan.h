#pragma once
// Attention regions that the compiler answers for whole: which ones, and where their arrays lie.
#include <map>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Is the region attention of a dtype and size that the attention class takes? The others are inlined.
bool takes_attention(const graph::Node& region);
/// The same for one row of queries, forward: a class of its own where programs are blocks of threads.
bool takes_single_query(const graph::Node& region);
bool is_single_query(const graph::AttentionRegion& region, const Dim& queries);

/// Where a result of attention lies that is a part of another node's memory.
struct PackedResult {
  NodeId node;
  int64_t offset = 0;
  Strides strides;
};
/// The part of the row-major concatenation `joined` that `result` is, where it comes there by movement alone and nobody
/// else reads it; `strides[result]` are what it would have by itself.
std::optional<PackedResult> packed_result(const Ir& ir, const Users& users, const NodeStrides& strides,
                                          const NodeFlags& roots, NodeId result);

/// `results`: the nodes of the region's results, -1 where nobody reads one. Operands must be strided views of memory,
/// but for the query where `cache` is what kv_append says.
AttentionPlan plan_attention(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                             const std::vector<NodeId>& results, const std::map<NodeId, PackedResult>& packed = {},
                             NodeId cache = -1);

}  // namespace weft::compiler
