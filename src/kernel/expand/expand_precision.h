#pragma once
// How exact a result has to be: where all that becomes of it is rounded to 16 bits, its expansion may stop at what such
// a number can hold.
#include <cstdint>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel::expansion {

/// Bits of the mantissa that readers can see.
enum class Precision : uint8_t { bits8, bits11, bits20, bits24 };

/// By value. Less than 24 bits only where every path from the value to a store, a reduction or another function goes
/// through a rounding to bfloat16 (8 bits) or float16 (11), and up to there through operations that keep a relative
/// error as it is: products, quotients, signs, choices, and moves of lanes. 20 bits where sums lie on such a path: they
/// may cancel; and of an exponential whose argument is a difference or a multiple of 16-bit numbers, whoever sees it:
/// what they were rounded by changes it by more.
std::vector<Precision> precisions(const Kernel& kernel);
/// Of a result of this dtype.
Precision precision_of(Dtype t);

}  // namespace weft::kernel::expansion
