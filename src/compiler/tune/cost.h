#pragma once
// The bytes and operations of a step, from the graph alone: profiles, traces and `weft explain` compare times with
// them.
#include <string>

#include "compiler/lower/lower.h"

namespace weft::compiler {

struct Cost {
  // Bytes of memory: the part of each buffer that is read counts once, and every result once.
  double bytes = 0;
  // Operations on elements as the graph has them: a multiplication and an addition are two, an exponential is one,
  // movement and casts are none.
  double flops = 0;
  std::string what;  // "max sub exp sum div -> f32(64,64)": the operators in order, and the largest result
};

/// Estimates the cost of a group. Symbolic lengths count at their bounds. Recomputation inside a kernel, and algorithms
/// with fewer operations than the graph states, are not considered.
Cost cost_of(const LowerContext& cx, const Group& group);

}  // namespace weft::compiler
