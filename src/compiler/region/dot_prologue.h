#pragma once
// Finds operands of dots that a generated kernel computes as it loads them: casts and dequantised weights, which then
// are never written to memory.
#include <optional>
#include <vector>

#include "compiler/region/dot_region.h"

namespace weft::compiler {

/// An operand that is computed as it is loaded.
struct ComputedOperand {
  std::vector<NodeId> made;  // what it reads that must lie in memory, and would be computed where it is read otherwise
};

/// Returns whether and how operand `side` (0 or 1) of a dot is computed as it is loaded: where that moves fewer bytes
/// than storing it does, it takes few operations, and one array of its size is read, in another dtype. Nothing if it
/// lies in memory anyway.
std::optional<ComputedOperand> computed_operand(const RegionContext& cx, NodeId dot, size_t side);

}  // namespace weft::compiler
