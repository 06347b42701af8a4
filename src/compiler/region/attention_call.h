#pragma once
// Attention that a target's library answers: the descriptor, and which arrays the call reads and writes.
#include <optional>
#include <vector>

#include "compiler/ir/grouping.h"
#include "kernel/describe/attention_desc.h"
#include "target/target.h"

namespace weft::compiler {

struct AttentionCall {
  kernel::AttentionDesc desc;
  /// In the order that the descriptor states: a node and the bytes at which its part begins; node -1: memory of the
  /// run, so many bytes.
  struct Operand {
    NodeId node;
    int64_t offset = 0, bytes = 0;
  };
  std::vector<Operand> operands;
};

/// Nothing where the region has a mask, symbolic lengths, other causal offsets than keys - queries, or batch axes that
/// do not come down to two.
std::optional<AttentionCall> attention_call(const AttentionPlan& plan, const Numerics& numerics);

/// Returns whether the target's library would take the region with its arrays in their usual layout. Other regions are
/// inlined.
bool library_takes_attention(const graph::Node& region, const target::Target& target, const Numerics& numerics);
/// Returns whether the target has kernels of the attention class.
bool has_attention_class(const target::Target& target);
/// Returns whether the region is attention that is computed whole: by the attention class, by the class for one row of
/// queries, or by a library. Other regions are inlined.
bool keeps_attention(const graph::Node& region, const target::Target& target, const Policy& policy);
/// Operands of regions that were kept for a library, where they do not lie in memory with whole rows, are put there.
Ir pack_attention_operands(Ir ir);

}  // namespace weft::compiler
