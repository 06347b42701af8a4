// float32 to bfloat16 by chance: up or down, so that the expectation is the number itself.
#pragma once
#include <cstdint>

#include "weft/array.h"

namespace weft::optim {

/// The two words that one parameter of an optimizer draws with: they depend on the seed and its place among the
/// parameters.
array rounding_key(uint64_t seed, uint64_t parameter);
/// float32 `value` as bfloat16. The bits of element i are word i of Philox under the key and the step: the same on
/// every device, for any number of threads.
array round_stochastically(const array& value, const array& key, const array& step);

}  // namespace weft::optim
