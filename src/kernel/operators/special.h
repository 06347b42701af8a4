#pragma once
// Special functions. What the C library lacks is written for float32 and float64, in functions that are whole in
// float64. Polynomials of rows are of our own: least squares of the relative error, reweighted towards its maximum.
#include <limits>

#include "kernel/operators/row.h"

namespace weft::kernel {

template <>
struct Row<ScalarOp::erf> : UnaryFunction {
  static constexpr Columns columns{.flops = 24, .ulp = 1.5, .compiled_ulp = 4, .float64 = "erf"};
  static double reference(double a) { return std::erf(a); }
  static Expr expansion(Expr a) { return expansion::erf(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) {
    return g * (2 * std::numbers::inv_sqrtpi) * exp(-square(a));
  }
};

template <>
struct Row<ScalarOp::erfinv> : UnaryFunction {
  static constexpr Columns columns{.flops = 40, .ulp = 3.5, .compiled_ulp = 8, .a = {-0.9, 0.9}};
  // A closed-form start (Winitzki, 2008), then Halley's method on erf, or on erfc where erf is close to 1 and would
  // cancel.
  static double reference(double a) {
    const double size = std::fabs(a);
    if (!(size < 1))
      return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), a)
                       : std::numeric_limits<double>::quiet_NaN();
    if (size < 1e-8) return a * (std::sqrt(std::numbers::pi) / 2);  // the next term is π a² / 12, below half an ulp
    const double rest = 1 - size;
    const double log_term = std::log(rest) + std::log1p(size), c = 2 / (std::numbers::pi * 0.147) + log_term / 2;
    double y = std::sqrt(std::sqrt(c * c - log_term / 0.147) - c);
    for (int step = 0; step < 4; ++step) {
      const double error = size > 0.5 ? rest - std::erfc(y) : std::erf(y) - size;
      const double u = error * std::exp(y * y) * (std::sqrt(std::numbers::pi) / 2);
      y -= u / (1 + y * u);
    }
    return std::copysign(y, a);
  }
  static Expr expansion(Expr a) { return is_double(a) ? expansion::erfinv_double(a) : expansion::erfinv(a); }
  static auto derivative(const auto& g, const auto&, const auto& y) {
    return g * (1 / (2 * std::numbers::inv_sqrtpi)) * exp(square(y));
  }
};

template <>
struct Row<ScalarOp::sigmoid> : UnaryFunction {
  static constexpr Columns columns{.flops = 17, .ulp = 2.5, .compiled_ulp = 4};
  static double reference(double a) { return 1 / (1 + std::exp(-a)); }
  static Expr expansion(Expr a, Precision precision) { return expansion::sigmoid(a, precision); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * y * (1.0 - y); }
};

/// exp(a²) erfc(a) / 2 for a >= 0, without overflow: a polynomial in t = (a - 3) / (a + 3) for (1 + 2a) exp(a²) erfc(a)
/// (after Shepherd and Laframboise 1981), of degree 11, 3.3e-9 relative, and in float64 of degree 24, 7.7e-18.
inline Expr half_erfcx(Expr a) {
  const Expr t = (a - 3.0) / (a + 3.0);
  const Expr p =
      is_double(a)
          ? horner(t, {8.193257227913786e-10,  9.945231630359276e-10,  -8.100078497398588e-09,  -1.3359460144474923e-08,
                       4.0763090281724324e-08, 1.0194994697277041e-07, -1.4003463213538523e-07, -6.167593834621191e-07,
                       3.553501170606378e-07,  3.472508970457174e-06,  -7.305765310395925e-07,  -2.010062063746573e-05,
                       4.9490940893400336e-06, 0.00012509937157312965, -0.00010515969214667239, -0.0007798322765866258,
                       0.001888690340362069,   0.0025293918167000854,  -0.02377051491671087,    0.06830802734392899,
                       -0.11927366341540989,   0.1296451587027624,     -0.04756229435344873,    -0.1356211061245812,
                       1.2530080582697296})
          : horner(t, {7.580480450997129e-05, -9.291538299294189e-05, -0.000722501368727535, 0.0018759476952254772,
                       0.0024953780230134726, -0.02376428060233593, 0.06831809878349304, -0.1192750483751297,
                       0.12964385747909546, -0.04756218194961548, -0.1356210559606552, 1.2530080080032349});
  return p / fma(a, 4.0, 2.0);
}

/// log Φ(a), where Φ is the distribution function of the standard normal distribution, accurate in both tails: with e =
/// exp(a²/2) Φ(-|a|) it is log(e) - a²/2 to the left, and log1p(-exp(-a²/2) e) to the right. The largest errors over
/// four million values are 6.21 ulp in float32 and 5.0 in float64.
template <>
struct Row<ScalarOp::log_ndtr> : UnaryFunction {
  static constexpr Columns columns{.flops = 90, .ulp = 6.5, .compiled_ulp = 8, .a = {-9, 4}};
  // Below -30 by the asymptotic series of Φ, whose terms are then below 1e-18 from the eighth on.
  static double reference(double a) {
    const long double x = a, root_half = std::numbers::sqrt2_v<long double> / 2;
    if (a > -1) return static_cast<double>(std::log1p(-std::erfc(x * root_half) / 2));
    if (!(a < -30)) return static_cast<double>(std::log(std::erfc(-x * root_half) / 2));
    long double term = 1, sum = 0;
    for (int k = 1; k < 16; k += 2) sum += term *= -k / (x * x);
    return static_cast<double>(std::log1p(sum) - x * x / 2 -
                               std::log(-x * std::sqrt(2 * std::numbers::pi_v<long double>)));
  }
  // Where the square is rounded, its error is made good; from `end` on the result is 0 (and the square stays finite).
  static Expr expansion(Expr a) {
    const double end = is_double(a) ? 40 : 15;
    const Expr size = expansion::apply(ScalarOp::min, {abs(a), 1e18});
    const Expr e = half_erfcx(size * (1 / std::numbers::sqrt2));
    const Expr left = fma(a * -0.5, a, log(e));
    const Expr c = expansion::apply(ScalarOp::min, {a, end}), square = c * c, lost = fma(c, c, -square);
    const Expr right = log1p(-(exp(square * -0.5) * fma(lost, -0.5, 1.0) * e));
    return select(lt(a, 0.0), left, right);
  }
  // φ / Φ = exp(-a²/2 - y) / √(2π); far to the left, where that cancels, Laplace's continued fraction of it, t + 1 / (t
  // + 2 / (t + …)) with t = -a, as deep as the dtype asks.
  static auto derivative(const auto& g, const auto& a, const auto& y) {
    const bool wide = g.dtype() == float64;
    const double end = wide ? -7 : -4;
    const auto far = scalar(ScalarOp::lt, a, full_like(a, end)), t = select(far, -a, full_like(a, -end));
    auto fraction = t;
    for (int k = wide ? 14 : 9; k > 0; --k) fraction = t + double(k) / fraction;
    const auto near = select(far, zeros_like(a), a), log_ratio = square(near) * -0.5 - select(far, zeros_like(y), y);
    return g * select(far, fraction, exp(log_ratio) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  }
};

}  // namespace weft::kernel
