// weft/random.h: distributions that are functions of uniform numbers, in MLX's order of operations.
#include <cmath>
#include <numbers>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::random {
namespace {

void require_float(const char* op, Dtype dtype) {
  if (!is_float(dtype)) throw_invalid(op, std::string("numbers are drawn in floating types only, got ") + dtype_name(dtype));
}

}  // namespace

array truncated_normal(const array& lower, const array& upper, const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  require_float("truncated_normal", dtype);
  const array root(std::numbers::sqrt2, dtype), low = astype(lower, dtype, s), high = astype(upper, dtype, s);
  const array a = erf(divide(low, root, s), s), b = erf(divide(high, root, s), s);
  const array drawn = multiply(root, erfinv(uniform(a, b, shape, dtype, key, s), s), s);
  return maximum(minimum(high, drawn, s), low, s);
}
array truncated_normal(const array& lower, const array& upper, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return truncated_normal(lower, upper, broadcast_shapes(lower.shape(), upper.shape()), dtype, key, s);
}

KeySequence::KeySequence(uint64_t seed) : key_(random::key(seed)) {}
void KeySequence::seed(uint64_t seed) { key_ = random::key(seed); }
array KeySequence::next() {
  auto [kept, drawn] = random::split(key_);
  key_ = kept;
  return drawn;
}

}  // namespace weft::random
