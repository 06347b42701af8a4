#pragma once
// What the kernels of attention of one query take: their arrays, and what they refuse.
#include <vector>

#include "kernels/attention/decode.h"
#include "kernels/attention/tiles.h"

namespace weft::kernels {

/// Throws std::invalid_argument where there is no such kernel.
void check_decode(const Decode& d);
/// Returns the arrays of the kernel, or of the join of its splits.
std::vector<AttentionParams::Use> decode_arrays(const Decode& d, bool joins);

}  // namespace weft::kernels
