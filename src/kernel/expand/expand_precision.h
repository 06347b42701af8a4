#pragma once
// Finds how exact each result must be. Where all readers round it to 16 bits, an expansion of fewer bits will do.
#include <cstdint>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel::expansion {

/// Bits of the mantissa that readers can see.
enum class Precision : uint8_t { bits8, bits11, bits20, bits24 };

/// Returns the precision by value. It is below 24 bits only if every path from the value to a store, a reduction or
/// another function passes through a rounding to bfloat16 (8 bits) or float16 (11 bits), and before that only through
/// operations that preserve relative errors: products, quotients, signs, choices, and moves of lanes. It is 20 bits if
/// sums, which may cancel, are on such a path. It is also 20 bits for an exponential of a difference or multiple of
/// 16-bit numbers, because their rounding changes it by more.
std::vector<Precision> precisions(const Kernel& kernel);
/// Returns the precision of a result of this dtype.
Precision precision_of(Dtype t);

}  // namespace weft::kernel::expansion
