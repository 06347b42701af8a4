#pragma once
// Attention by a target's library: the descriptor, and the arrays that the call reads and writes.
#include <optional>
#include <vector>

#include "compiler/ir/grouping.h"
#include "kernel/describe/attention_desc.h"
#include "target/target.h"

namespace weft::compiler {

struct AttentionCall {
  kernel::AttentionDesc desc;
  /// In the order that the descriptor states: a node and the byte offset of its part in the buffer; node -1: `bytes`
  /// bytes of temporary memory.
  struct Operand {
    NodeId node;
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Operand> operands;
};

/// Returns the call for a plan; nothing if the region has a mask, symbolic lengths, a causal offset other than keys -
/// queries, or batch axes that do not merge into two.
std::optional<AttentionCall> attention_call(const AttentionPlan& plan, const Numerics& numerics);

/// Returns whether the target's library would take the region with its arrays in their usual layout. Other regions are
/// inlined.
bool library_takes_attention(const graph::Node& region, const target::Target& target, const Numerics& numerics);
/// Returns whether the region is attention that is computed whole: by the kernels of src/kernels, by the class for one
/// query, or by a library. Other regions are inlined.
bool keeps_attention(const graph::Node& region, const target::Target& target, const Policy& policy);
/// Adds a copy of each operand of attention with several queries whose rows are not contiguous in memory: one for all
/// calls and results that read it. The logsumexp needs none.
Ir pack_attention_operands(Ir ir);

}  // namespace weft::compiler
