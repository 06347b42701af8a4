#pragma once
// Decode attention with a fused KV-cache append. When the last visible key and value come from a `scatter` into the
// cache that only this attention reads, the scatter and the attention become one kernel. Each block computes the new
// K/V row in registers and uses it as the last key; one block per KV head stores it to the cache. No block reads what
// another block stores in the same launch, so no grid barrier is needed.
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Returns the scatter that appends the last visible row of `attention`'s cache, or -1. It requires that keys and
/// values are views of the scatter's result, that nothing else reads that result, that the scatter writes exactly row
/// `length - 1` (the region's number of keys less one), and that each element it writes belongs to the row of some
/// head.
NodeId kv_append(const Ir& ir, const Users& users, NodeId attention);
/// Returns the root of a group that overwrites elements of an operand (scatter, assign, KV append), or -1.
inline NodeId overlaid(const Group& group) {
  return group.kind == Group::Kind::scatter     ? group.roots[0].node
         : group.kind == Group::Kind::attention ? group.attention.cache
                                                : NodeId{};
}

}  // namespace weft::compiler
