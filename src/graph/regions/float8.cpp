// Products of linear layers in 8-bit floats (Micikevicius et al. 2022): operands in e4m3, gradients of results in e5m2,
// sums in float32. Each array has one scale, taken from its own largest magnitude: a power of two, so that scaling and
// its inverse are exact, and the largest number lies in the upper half of what the format holds.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/regions/composites.h"
#include "graph/regions/regions.h"

namespace weft::graph {
namespace {

using In = std::span<const Value>;
using Axes = std::vector<int64_t>;

Value word(const Value& like, uint32_t number) { return full(like.shape(), uint32, Number::of_int(number)); }

Value bits(const Value& v, Dtype dtype) {
  Attrs attrs;
  attrs.dtype = dtype;
  return make(Op::bitcast, {v}, std::move(attrs));
}

/// An array in 8 bits, and the factor (float32, rank 0) that restores its elements.
struct Scaled {
  Value values, scale;
};

/// The largest numbers of both formats are 1.75 · 2^8 and 1.75 · 2^15: the scale is 2^(e - 8) of a largest magnitude m
/// · 2^e, or twice that where m > 1.75. What is below 2^-111 is scaled like that, and infinities like 2^127: they
/// become the largest number, or stay infinite.
Scaled scaled(const Value& x, Dtype dtype) {
  const Value v = cast(x, float32);
  Value largest = unary(Op::abs, v);  // rows first: a kernel that computes the rows has them in registers
  if (x.type().rank() > 1) largest = max(largest, {x.type().rank() - 1});
  Axes all;
  for (int axis = 0; axis < largest.type().rank(); ++axis) all.push_back(axis);
  largest = max(largest, all);
  const uint32_t exponent = dtype == float8_e4m3 ? 8 : 15;
  Value power = bits(largest, uint32);
  power = binary(Op::bit_and, power + word(power, 0x1fffff), word(power, 0x7f800000));
  power = binary(Op::min, binary(Op::max, power, word(power, 16u << 23)), word(power, 254u << 23)) -
          word(power, exponent << 23);
  const Value inverse = bits(word(power, 254u << 23) - power, float32);
  return {cast(v * inverse, dtype), bits(power, float32)};
}

/// Contracts the axes and returns the result in `dtype`.
Value scaled_matmul(const Scaled& a, Axes a_axes, const Scaled& b, Axes b_axes, Dtype dtype) {
  Attrs attrs;
  attrs.axes = std::move(a_axes);
  attrs.axes2 = std::move(b_axes);
  attrs.dtype = float32;
  const Value sums = make(Op::dot, {a.values, b.values}, std::move(attrs));
  return cast(sums * a.scale * b.scale, dtype);
}

int64_t last_axis(const Value& v) { return v.type().rank() - 1; }

Values float8_body(In in) {
  return {
      scaled_matmul(scaled(in[0], float8_e4m3), {last_axis(in[0])}, scaled(in[1], float8_e4m3), {1}, in[0].dtype())};
}

/// dx = g · w, dw = gᵀ · x.
Values float8_vjp(In in, In, In gs) {
  const Scaled x = scaled(in[0], float8_e4m3), w = scaled(in[1], float8_e4m3), g = scaled(gs[0], float8_e5m2);
  Axes rows;
  for (int64_t axis = 0; axis < last_axis(in[0]); ++axis) rows.push_back(axis);
  return {scaled_matmul(g, {last_axis(in[0])}, w, {0}, in[0].dtype()), scaled_matmul(g, rows, x, rows, in[1].dtype())};
}

/// Tangents are not rounded to 8 bits.
Values float8_jvp(In in, In, In t) {
  const auto times = [](const Value& x, const Value& w) { return dot(x, cast(w, x.dtype()), {last_axis(x)}, {1}); };
  Value total;
  if (t[0]) total = times(t[0], in[1]);
  if (t[1]) total = total ? total + times(in[0], t[1]) : times(in[0], t[1]);
  return {total};
}

}  // namespace

Value float8_linear(const Value& x, const Value& w) {
  const bool floats = is_float(x.dtype()) && is_float(w.dtype()), matrix = w.type().rank() == 2 && x.type().rank() >= 1;
  if (!floats || !matrix || x.shape().back() != w.shape()[1])
    throw_invalid("float8_linear", fmt::format("needs floating arrays x [..., k] and w [n, k], got {} and {}",
                                               to_string(x.type()), to_string(w.type())));
  return composite(std::make_shared<Composite>(Composite{"float8_linear", "", float8_body, float8_vjp, float8_jvp, {}}),
                   {x, w})[0];
}

}  // namespace weft::graph
