#include "optim/rounding.h"

#include "graph/build.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit of the input.
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

array word(uint32_t value) { return array(value, uint32); }

}  // namespace

array rounding_key(uint64_t seed, uint64_t parameter) {
  const uint64_t bits = mixed(mixed(seed) ^ parameter);
  const uint32_t words[] = {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  return array::from_data(words, {2}, uint32);
}

/// A bfloat16 is the upper half of a float32. Adding 16 random bits to the lower half carries into the upper one with
/// the probability that the distance to the nearer bfloat16 towards zero requires. Infinities and NaN stay; a number
/// beyond the largest bfloat16 becomes infinity, as in rounding to nearest.
array round_stochastically(const array& value, const array& key, const array& step) {
  const array moved = concatenate({slice(key, {0}, {1}) + reshape(astype(step, uint32), {1}), slice(key, {1}, {2})});
  const array chance =
      right_shift(array(graph::random_bits(moved.value(), value.shape(), graph::Generator::philox)), word(16));
  const array bits = bitwise_and(view(value, uint32) + chance, word(0xFFFF0000u));
  return astype(where(isfinite(value), view(bits, float32), value), bfloat16);
}

}  // namespace weft::optim
