// Inverse trigonometric and hyperbolic functions of complex numbers, with C's branch cuts: W. Kahan, "Branch Cuts for
// Complex Elementary Functions, or Much Ado About Nothing's Sign Bit" (1987). They are real functions of √(1 - z) and
// √(1 + z), which lose nothing where z is near a branch point, and whose signs of zero say on which side of a cut z
// lies.
#include <limits>
#include <numbers>

#include "graph/complex/complex.h"
#include "graph/complex/complex_math.h"

namespace weft::graph {
namespace {

Value arctan2(const Value& y, const Value& x) { return binary(Op::arctan2, y, x); }
Value arcsinh(const Value& v) { return unary(Op::arcsinh, v); }

/// Returns whether a part is infinite and none is NaN.
Value is_infinite(const Parts& z) {
  return binary(Op::eq, larger(magnitude_of(z.re), magnitude_of(z.im)), full_like(z.re, infinity));
}

Parts root_of_one_minus(const Parts& z) { return complex_elementwise(Op::sqrt, {{1.0 - z.re, -z.im}}); }
Parts root_of_one_plus(const Parts& z) { return complex_elementwise(Op::sqrt, {{z.re + 1, z.im}}); }

}  // namespace

Parts arcsine(const Parts& z) {
  const Parts a = root_of_one_minus(z), b = root_of_one_plus(z);
  const Parts far{arctan2(z.re, magnitude_of(z.im)), with_sign_of(full_like(z.re, infinity), z.im)};
  return choose(is_infinite(z), far, {arctan2(z.re, a.re * b.re - a.im * b.im), arcsinh(a.re * b.im - a.im * b.re)});
}

Parts arccosine(const Parts& z) {
  const Parts a = root_of_one_minus(z), b = root_of_one_plus(z);
  const Parts far{arctan2(magnitude_of(z.im), z.re), with_sign_of(full_like(z.re, infinity), -z.im)};
  return choose(is_infinite(z), far, {arctan2(a.re, b.re) * 2, arcsinh(b.re * a.im - b.im * a.re)});
}

Parts hyperbolic_arccosine(const Parts& z) {
  const Parts a = complex_elementwise(Op::sqrt, {{z.re - 1, z.im}}), b = root_of_one_plus(z);
  const Parts far{full_like(z.re, infinity), arctan2(z.im, z.re)};
  return choose(is_infinite(z), far, {arcsinh(a.re * b.re + a.im * b.im), arctan2(a.im, b.re) * 2});
}

/// With x ≥ 0, the function being odd: log1p(4x / ((1 - x)² + y²)) / 4 + i arctan2(2y, (1 - x)(1 + x) - y²) / 2.
/// Squares are divided by s, the larger of |1 - x| and |y|. At the pole, where the quotient overflows, the real part is
/// log(|1 + z| / |1 - z|) / 2.
Parts hyperbolic_arctangent(const Parts& z) {
  const Value x = magnitude_of(z.re), y = with_sign_of(magnitude_of(z.im), z.im), left = 1.0 - x;
  const double least = x.dtype() == float64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const Value s = larger(larger(magnitude_of(left), magnitude_of(y)), full_like(x, least));
  const Value ratio = x / s * 4 / (left / s * left + y / s * y);
  const Value pole = binary(Op::lt, s, full_like(s, 1e-10)),
              near = log(magnitude({x + 1, y})) * 0.5 - log(magnitude({left, y})) * 0.5;
  const Value re = with_sign_of(select(pole, near, unary(Op::log1p, ratio) * 0.25), z.re),
              im = arctan2(y, (left * (x + 1) - square(y)) * 0.5) * 0.5;
  const Parts far{with_sign_of(zeros_like(x), z.re), with_sign_of(full_like(x, std::numbers::pi / 2), z.im)};
  return choose(is_infinite(z), far, {re, im});
}

}  // namespace weft::graph
