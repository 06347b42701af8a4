#pragma once
// The families of calls, for call.cpp, and the check that a family's rules are complete.
#include "graph/calls/call.h"

namespace weft::graph {

std::span<const CallRule> sort_calls();
std::span<const CallRule> fft_calls();
std::span<const CallRule> linalg_calls();
std::span<const CallRule> orthogonal_calls();
std::span<const CallRule> eig_calls();
std::span<const CallRule> pair_calls();
std::span<const CallRule> kernel_calls();

template <class Rules>
constexpr bool complete_calls(const Rules& rules) {
  for (const CallRule& r : rules) {
    if (r.name.empty() || r.min_inputs < 0 || (r.max_inputs >= 0 && r.max_inputs < r.min_inputs) || r.integers < 0 ||
        !r.types || !r.reference || r.ulp < 0)
      return false;
    if (!(r.interval.filled() && r.vjp.filled() && r.jvp.filled() && r.vmap.filled() && r.factors.filled()))
      return false;
  }
  return true;
}

}  // namespace weft::graph
