#pragma once
// What a step moves and computes, by the graph alone: the figures that profiles, traces and `weft explain` hold times
// against.
#include <string>

#include "compiler/lower/lower.h"

namespace weft::compiler {

struct Cost {
  double bytes = 0;  // of memory: the part of each buffer that is looked at counts once, and every result once
  double flops = 0;  // operations on elements as the graph has them: a product and its sum are two, an exponential is
                     // one, moving and converting is none
  std::string what;  // "max sub exp sum div -> f32(64,64)": what is computed, in order, and the largest result
};

/// Symbolic lengths count at their bounds. What a kernel computes twice, or more cleverly than the graph says, is not
/// seen.
Cost cost_of(const LowerContext& cx, const Group& group);

}  // namespace weft::compiler
