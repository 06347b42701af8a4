// Stochastic rounding of float32 to bfloat16: up or down at random, so that the expectation is the number itself.
#pragma once
#include <cstdint>

#include "weft/array.h"

namespace weft::optim {

/// Returns the key, two words, of one parameter of an optimizer: a function of the seed and the parameter's index.
array rounding_key(uint64_t seed, uint64_t parameter);
/// Returns float32 `value` rounded to bfloat16. The random bits of element i are word i of Philox under the key and the
/// step: the same on every device, for any number of threads.
array round_stochastically(const array& value, const array& key, const array& step);

}  // namespace weft::optim
