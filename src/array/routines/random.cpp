// weft/random.h: MLX's bits (Threefry-2x32, JAX's non-partitionable layout), and its distributions in its order of
// operations.
#include "weft/random.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>

#include "array/host.h"
#include "array/op_support.h"
#include "array/realise.h"
#include "array/routines/random_state.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft::random {
namespace {

using detail::describe;

thread_local int64_t implicit_uses = 0;

void require_key(const char* op, const array& key) {
  if (key.dtype() != uint32 || key.shape() != Shape{2})
    throw_invalid(op, "a key is uint32 (2), as random::key makes it, got " + describe(key));
}

array key_data(const std::vector<uint32_t>& words, Shape shape) {
  return array::from_data(words.data(), std::move(shape), uint32);
}

// Returns the words of graph::random_bits, computed on the host: keys that are known are split without a program, so
// that drawing in a loop builds no chain of pending splits.
std::vector<uint32_t> host_bits(const uint32_t* key, int64_t words) {
  const int64_t half = words / 2, odd = words % 2;
  const auto hash = [&](kernel::ScalarOp word, int64_t c0, int64_t c1) {
    const Number args[4] = {Number::of_int(key[0]), Number::of_int(key[1]), Number::of_int(c0), Number::of_int(c1)};
    return static_cast<uint32_t>(kernel::reference(word, uint32, args).i);
  };
  std::vector<uint32_t> out(static_cast<size_t>(words));
  for (int64_t i = 0; i < half; ++i) {
    out[static_cast<size_t>(i)] = hash(kernel::ScalarOp::threefry0, i, i + half + odd);
    out[static_cast<size_t>(i + half + odd)] = hash(kernel::ScalarOp::threefry1, i, i + half + odd);
  }
  if (odd) out[static_cast<size_t>(half)] = hash(kernel::ScalarOp::threefry0, half, 0);
  return out;
}

constexpr int host_split_limit = 4096;

array row(const array& keys, int index) { return reshape(slice(keys, {index, 0}, {index + 1, 2}), {2}); }

// Returns, inside vmap, a key for each element of the batch, outermost map first.
array per_element(const array& key, detail::Trace* trace) {
  if (!trace) return key;
  const array outside = per_element(key, trace->outer());
  if (trace->kind() != detail::Trace::Kind::batch) return outside;
  const Dim& extent = trace->extent();
  const array keys = random::split(outside, static_cast<int>(extent.bound()));
  const graph::Value placeholder = graph::parameter({{2}, uint32});
  trace->map_key(placeholder, extent.is_static()
                                  ? keys.value()
                                  : graph::slice(keys.value(), {0, 0},
                                                 {extent, 2}));  // keys for the bound, of which the first are used
  return array(placeholder);
}

// Returns the next key of the default sequence: splits, keeps the first half, returns the second.
array next_key() {
  ++implicit_uses;
  auto [kept, drawn] = random::split(default_key());
  default_key() = kept;
  return per_element(drawn, detail::Trace::current());
}

array words(const char* op, const Shape& shape, const std::optional<array>& key, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  detail::require_shape(op, shape);
  if (key) require_key(op, *key);
  return array(graph::random_bits((key ? *key : next_key()).value(), shape));
}

// Returns 16- or 8-bit numbers: the little-endian parts of the words; the last word may be used in part.
array narrow_bits(const Shape& shape, int width, const std::optional<array>& key, const StreamOrDevice& s) {
  const int64_t count = num_elements(shape), parts = 4 / width, n = (count + parts - 1) / parts;
  const Dtype dtype = width == 1 ? uint8 : uint16;
  const array word = reshape(words("bits", {n}, key, s), {n, 1}, s);
  const array shift(graph::iota({1, parts}, 1, uint32));
  const array part = bitwise_and(right_shift(word, multiply(shift, array(8 * width, uint32), s), s),
                                 array((1 << (8 * width)) - 1, uint32), s);
  return reshape(slice(reshape(astype(part, dtype, s), {n * parts}, s), {0}, {count}, s), shape, s);
}

// Returns the largest number below 1.
double below_one(Dtype dtype) {
  if (dtype == float16) return 1 - 0x1p-11;
  if (dtype == bfloat16) return 1 - 0x1p-8;
  return dtype == float64 ? 1 - 0x1p-53 : 1 - 0x1p-24;
}

void require_float(const char* op, Dtype dtype) {
  if (!is_float(dtype))
    throw_invalid(op, std::string("numbers are drawn in floating types only, got ") + dtype_name(dtype));
}

void require_result(const char* op, const Shape& shape, const Shape& arguments) {
  bool fits = true;
  try {
    fits = broadcast_shapes(shape, arguments) == shape;
  } catch (const std::invalid_argument&) {
    fits = false;
  }
  if (!fits)
    throw_invalid(op, "parameters of shape " + to_string(arguments) + " do not broadcast to shape " + to_string(shape));
}

}  // namespace

array key(uint64_t seed) { return key_data({static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)}, {2}); }

KeySequence::KeySequence(uint64_t seed) : key_(random::key(seed)) {}
void KeySequence::seed(uint64_t seed) { key_ = random::key(seed); }
array KeySequence::next() {
  if (this == &default_()) return next_key();
  auto [kept, drawn] = random::split(key_);
  key_ = kept;
  return drawn;
}
KeySequence& KeySequence::default_() {
  thread_local KeySequence sequence(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  return sequence;
}
array& default_key() { return KeySequence::default_().key_; }

void seed(uint64_t seed) { default_key() = key(seed); }

std::pair<array, array> split(const array& key, StreamOrDevice s) {
  const detail::OnStream on_stream("split", s);
  require_key("split", key);
  if (!detail::has_data(key.value())) {
    const array both = random::split(key, 2, s);
    return {row(both, 0), row(both, 1)};
  }
  const std::vector<uint32_t> bits = host_bits(static_cast<const uint32_t*>(key.raw_data()), 4);
  return {key_data({bits[0], bits[1]}, {2}), key_data({bits[2], bits[3]}, {2})};
}

array split(const array& key, int num, StreamOrDevice s) {
  const detail::OnStream on_stream("split", s);
  require_key("split", key);
  if (num < 0) throw_invalid("split", "the number of keys must not be negative, got " + std::to_string(num));
  if (num <= host_split_limit && detail::has_data(key.value()))
    return key_data(host_bits(static_cast<const uint32_t*>(key.raw_data()), 2 * static_cast<int64_t>(num)), {num, 2});
  return words("split", {num, 2}, key, s);
}

array bits(const Shape& shape, int width, const std::optional<array>& key, StreamOrDevice s) {
  if (width != 1 && width != 2 && width != 4)
    throw_invalid("bits", "the width must be 1, 2 or 4 bytes, got " + std::to_string(width));
  if (width == 4) return words("bits", shape, key, s);
  detail::require_shape("bits", shape);
  return narrow_bits(shape, width, key, s);
}

array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype, const std::optional<array>& key,
              StreamOrDevice s) {
  require_float("uniform", dtype);
  const array lo = astype(low, dtype, s), range = subtract(astype(high, dtype, s), lo, s);
  require_result("uniform", shape, range.shape());
  const array unit = divide(words("uniform", shape, key, s),
                            array(static_cast<double>(std::numeric_limits<uint32_t>::max()), float32), s);
  const array below = astype(minimum(unit, array(below_one(dtype), dtype), s), dtype, s);
  return add(multiply(range, below, s), lo, s);
}
array uniform(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return uniform(array(0.0f), array(1.0f), shape, dtype, key, s);
}

// Draws both parts of complex numbers with variance 1/2, so that the variance of the number is 1: the factor √2 is left
// out.
static array complex_normal(Shape shape, Dtype dtype, const std::optional<array>& loc,
                            const std::optional<array>& scale, const std::optional<array>& key, StreamOrDevice s) {
  shape.push_back(2);
  const array parts = erfinv(uniform(array(std::nextafter(-1.0f, 0.0f)), array(1.0f), shape, float32, key, s), s);
  array drawn = squeeze(view(astype(parts, real_of(dtype), s), dtype, s), -1, s);
  if (scale) drawn = multiply(astype(*scale, dtype, s), drawn, s);
  return loc ? add(astype(*loc, dtype, s), drawn, s) : drawn;
}

array normal(const Shape& shape, Dtype dtype, const std::optional<array>& loc, const std::optional<array>& scale,
             const std::optional<array>& key, StreamOrDevice s) {
  if (is_complex(dtype)) return complex_normal(shape, dtype, loc, scale, key, s);
  require_float("normal", dtype);
  for (const std::optional<array>& parameter : {loc, scale})
    if (parameter) require_result("normal", shape, parameter->shape());
  const array u = uniform(array(std::nextafter(-1.0f, 0.0f)), array(1.0f), shape, float32, key, s);
  array width(std::numbers::sqrt2, dtype);
  if (scale) width = multiply(width, astype(*scale, dtype, s), s);
  const array scaled = multiply(width, astype(erfinv(u, s), dtype, s), s);
  return loc ? add(astype(*loc, dtype, s), scaled, s) : scaled;
}
array normal(const Shape& shape, Dtype dtype, float loc, float scale, const std::optional<array>& key,
             StreamOrDevice s) {
  if (is_complex(dtype)) {
    const std::optional<array> moved = loc == 0 ? std::nullopt : std::optional(array(loc)),
                               scaled = scale == 1 ? std::nullopt : std::optional(array(scale));
    return complex_normal(shape, dtype, moved, scaled, key, s);
  }
  require_float("normal", dtype);
  const array u = uniform(array(std::nextafter(-1.0f, 0.0f)), array(1.0f), shape, float32, key, s);
  const array unit = astype(erfinv(u, s), dtype, s);
  const array scaled = multiply(unit, array(std::numbers::sqrt2 * static_cast<double>(scale), dtype), s);
  return loc == 0 ? scaled : add(scaled, array(loc, dtype), s);
}

array bernoulli(const array& p, const Shape& shape, const std::optional<array>& key, StreamOrDevice s) {
  if (!is_float(p.dtype()))
    throw_invalid("bernoulli", "the probability must be of a floating type, got " + describe(p));
  require_result("bernoulli", shape, p.shape());
  const float end =
      std::nextafter(static_cast<float>(std::numeric_limits<uint32_t>::max()), std::numeric_limits<float>::infinity());
  return less(words("bernoulli", shape, key, s), multiply(astype(p, float32, s), array(end), s), s);
}

array randint(const array& low, const array& high, const Shape& shape, Dtype dtype, const std::optional<array>& key,
              StreamOrDevice s) {
  if (!is_integer(dtype) && dtype != bool_)
    throw_invalid("randint", std::string("integers and bools are drawn only, got ") + dtype_name(dtype));
  const array drawn = astype(floor(uniform(low, high, shape, float32, key, s), s), dtype, s);
  const array first = astype(low, dtype, s), last = astype(subtract(high, array(1, high.dtype()), s), dtype, s);
  return maximum(minimum(drawn, last, s), first, s);  // float32 may round up to `high`
}

array gumbel(const Shape& shape, Dtype dtype, const std::optional<array>& key, StreamOrDevice s) {
  return negative(log(negative(log(uniform(shape, dtype, key, s), s), s), s), s);
}

}  // namespace weft::random

int64_t weft::detail::implicit_key_uses() { return random::implicit_uses; }
