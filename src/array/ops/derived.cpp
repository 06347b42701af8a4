// weft/ops/arithmetic.h and comparison.h: functions composed of other operations.
#include <cmath>
#include <limits>
#include <numbers>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::floating_of;

array is_infinite(const char* op, const array& a, double sign, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  if (!is_float(a.dtype()) && !is_complex(a.dtype())) return zeros(a.shape(), bool_, s);
  return equal(a, array(sign * std::numeric_limits<double>::infinity(), a.dtype()), s);
}

double largest(Dtype t) {
  if (t == float16) return 65504;
  if (t == bfloat16) return 0x1.fep127;
  return t == float64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
}

// Rounds integers to the nearest multiple of 10^digits, halves to the even one.
array round_integer(const array& a, int digits, const StreamOrDevice& s) {
  int64_t unit = 1;
  const int64_t most = a.dtype() == uint64 ? INT64_MAX : (int64_t{1} << (8 * a.dtype().size() - 1)) - 1;
  for (int k = 0; k < digits; ++k) {
    if (unit > most / 10) return zeros_like(a, s);  // the unit exceeds all numbers of the dtype
    unit *= 10;
  }
  const auto constant = [&](int64_t v) { return array(v, a.dtype()); };
  const array count = floor_divide(a, constant(unit), s), rest = remainder(a, constant(unit), s);
  const array odd = equal(remainder(count, constant(2), s), constant(1), s), half = constant(unit / 2);
  const array up = logical_or(greater(rest, half, s), logical_and(equal(rest, half, s), odd, s), s);
  return multiply(add(count, astype(up, a.dtype(), s), s), constant(unit), s);
}

}  // namespace

array isclose(const array& a, const array& b, double rtol, double atol, bool equal_nan, StreamOrDevice s) {
  const detail::OnStream on_stream("isclose", s);
  const Dtype dtype = floating_of(promote_types(a.dtype(), b.dtype()));
  const array x = astype(a, dtype, s), y = astype(b, dtype, s);
  const array size = abs(y, s), bound = add(array(atol, size.dtype()), multiply(array(rtol, size.dtype()), size, s), s);
  const array near =
      logical_and(less_equal(abs(subtract(x, y, s), s), bound, s), logical_and(isfinite(x, s), isfinite(y, s), s), s);
  const array close = logical_or(near, equal(x, y, s), s);  // equal infinities
  return equal_nan ? logical_or(close, logical_and(isnan(x, s), isnan(y, s), s), s) : close;
}

array allclose(const array& a, const array& b, double rtol, double atol, bool equal_nan, StreamOrDevice s) {
  return all(isclose(a, b, rtol, atol, equal_nan, s), false, s);
}

array isposinf(const array& a, StreamOrDevice s) { return is_infinite("isposinf", a, 1, s); }
array isneginf(const array& a, StreamOrDevice s) { return is_infinite("isneginf", a, -1, s); }

array logical_xor(const array& a, const array& b, StreamOrDevice s) {
  return not_equal(astype(a, bool_, s), astype(b, bool_, s), s);
}

std::vector<array> divmod(const array& a, const array& b, StreamOrDevice s) {
  return {floor_divide(a, b, s), remainder(a, b, s)};
}

array nan_to_num(const array& a, float nan, const std::optional<float>& posinf, const std::optional<float>& neginf,
                 StreamOrDevice s) {
  const detail::OnStream on_stream("nan_to_num", s);
  if (is_complex(a.dtype())) {
    const auto part = [&](const array& v) { return nan_to_num(v, nan, posinf, neginf, s).value(); };
    return array(graph::complex(part(real(a, s)), part(imag(a, s))));
  }
  if (!is_float(a.dtype())) return a;
  const Dtype t = a.dtype();
  const auto replacement = [&](const std::optional<float>& given, double fallback) {
    return array(given ? static_cast<double>(*given) : fallback, t);
  };
  const array finite = where(isnan(a, s), array(nan, t), a, s);
  const array below = where(isposinf(a, s), replacement(posinf, largest(t)), finite, s);
  return where(isneginf(a, s), replacement(neginf, -largest(t)), below, s);
}

array bitwise_invert(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("bitwise_invert", s);
  if (a.dtype() != bool_) detail::require_integer("bitwise_invert", "the elements", a);
  return array(graph::unary(graph::Op::bit_not, a.value()));
}

array round(const array& a, int decimals, StreamOrDevice s) {
  const detail::OnStream on_stream("round", s);
  if (decimals == 0) return round(a, s);
  if (!is_float(a.dtype()) && !is_complex(a.dtype()))
    return decimals > 0 || a.dtype() == bool_ ? a : round_integer(a, -decimals, s);
  const Dtype wide = detail::accumulator(a.dtype());
  const array scale(std::pow(10.0, std::abs(decimals)), real_of(wide)), x = astype(a, wide, s);
  return astype(decimals > 0 ? divide(round(multiply(x, scale, s), s), scale, s)
                             : multiply(round(divide(x, scale, s), s), scale, s),
                a.dtype(), s);
}

array degrees(const array& a, StreamOrDevice s) {
  return multiply(a, array(180 / std::numbers::pi, floating_of(a.dtype())), s);
}
array radians(const array& a, StreamOrDevice s) {
  return multiply(a, array(std::numbers::pi / 180, floating_of(a.dtype())), s);
}

array operator<<(const array& a, const array& b) { return left_shift(a, b); }
array operator>>(const array& a, const array& b) { return right_shift(a, b); }
array operator~(const array& a) { return bitwise_invert(a); }

}  // namespace weft
