// Logarithms in float32: log, log2, log1p. x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and
//
//   log(1 + f)  = f - f^2 / 2 + f^3 P(f)   P of degree 7, 5.9e-9 relative to the whole
//   log2(1 + f) = f / ln 2 + f^2 Q(f)      Q of degree 8, 4.7e-9, 1 / ln 2 in two parts
//
// Largest errors: log 0.85 ulp over all float32 values; log2 0.96, log1p 1.41, over a sixteenth of them.
#include <limits>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

constexpr double root_half_bits = 0x3F3504F3;  // sqrt(1/2), rounded down
constexpr double exponent_mask = -8388608;     // 0xFF800000
constexpr double smallest_normal = 0x1p-126;
constexpr std::initializer_list<double> log_coefficients = {
    -0.07635630667209625, 0.12761905789375305, -0.13159731030464172, 0.1420162469148636,
    -0.16623404622077942, 0.20001240074634552, -0.2500081956386566,  0.3333333134651184};

struct Split {
  Expr e, f;
  Expr exponent_bits;  // e << 23
};

Split split(Expr x) {
  const Expr bits = bitcast(x, int32);
  const Expr above = bits - root_half_bits;
  const Expr exponent = above & exponent_mask;
  const Expr m = bitcast(bits - exponent, float32);
  return {cast(above >> 23, float32), m - 1.0, exponent};
}

// Subnormals are scaled into the normal range first.
Split split_any(Expr x) {
  const Expr tiny = lt(x, smallest_normal);
  Split s = split(select(tiny, x * 0x1p23, x));
  s.e = select(tiny, s.e - 23.0, s.e);
  return s;
}

/// log(1 + f).
Expr fraction(Expr f) {
  const Expr z = f * f;
  return f + fma(z, -0.5, z * f * horner(f, log_coefficients));
}

Expr natural(Expr e, Expr f) {
  const Expr z = f * f;
  const Expr p = horner(f, log_coefficients);
  const Expr low = fma(z, -0.5, fma(e, ln2_low, z * f * p));
  return fma(e, ln2_high, f + low);
}

// What the formula cannot say: log(0) = -inf, log of the negative is NaN, infinity and NaN stay.
Expr with_limits(Expr x, Expr y) {
  y = select(lt(x, infinity), y, x);
  y = select(eq(x, 0.0), -infinity, y);
  return select(lt(x, 0.0), std::numeric_limits<double>::quiet_NaN(), y);
}

}  // namespace

Expr log_of_normal(Expr x) {
  const Split s = split(x);
  return natural(s.e, s.f);
}

Expr log(Expr x) {
  if (is_double(x)) return apply(ScalarOp::log, {x});
  const Split s = split_any(x);
  return with_limits(x, natural(s.e, s.f));
}

Expr log2(Expr x) {
  const Split s = split_any(x);
  const Expr q = horner(
      s.f, {-0.11095760762691498, 0.18721765279769897, -0.19119444489479065, 0.2044493705034256, -0.2395811527967453,
            0.2885737419128418, -0.3606984317302704, 0.4808981716632843, -0.7213473320007324});
  const Expr low = fma(s.f, 1.925963033500011e-08, s.f * s.f * q);
  return with_limits(x, s.e + fma(s.f, 1.4426950216293335, low));
}

// log10(2) in two parts, the first of 16 bits: its product with the exponent is exact.
Expr log10(Expr x) {
  const Split s = split_any(x);
  const Expr l = fraction(s.f);
  constexpr double e_high = 0.4342944920063019, e_low = -1.0103049952192578e-08;  // 1 / ln 10
  constexpr double two_high = 0.301025390625, two_low = 4.605038981195214e-06;    // log10(2)
  const Expr low = fma(l, e_low, s.e * two_low);
  return with_limits(x, fma(l, e_high, fma(s.e, two_high, low)));
}

// Equal arguments, infinite ones among them, are ln 2 above both. A sum of exponentials near 1 has a logarithm near 0:
// the error is then that of the larger argument.
// For few bits log1p is a polynomial of degree 5 on [0, 1], 5.7e-5 relative.
Expr logaddexp(Expr x, Expr y, Precision precision) {
  const Expr top = apply(ScalarOp::max, {x, y});
  if (precision <= Precision::bits11) {
    const Expr z = exp(-abs(x - y), precision);
    const Expr above = z * horner(z, {0.04134727641940117, -0.15742719173431396, 0.30630093812942505,
                                      -0.496977835893631, 0.9999432563781738});
    return top + select(eq(x, y), ln2_high, above);
  }
  return top + select(eq(x, y), ln2_high, log1p(exp(-abs(x - y))));
}

// u = 1 + x loses c = x - (u - 1), which joins f before the polynomial: f = (m - 1) + c 2^-e, one rounding.
Expr log1p(Expr x) {
  if (is_double(x)) return apply(ScalarOp::log1p, {x});
  const Expr u = x + 1.0;
  const Expr lost = x - (u - 1.0);
  const Split s = split(u);
  const Expr scale = bitcast(apply(ScalarOp::max, {0x3F800000 - s.exponent_bits, 0.0}), float32);  // 0 from 2^127 on
  const Expr y = natural(s.e, fma(lost, scale, s.f));
  return select(eq(x, 0.0), x, with_limits(u, y));
}

}  // namespace weft::kernel::expansion
