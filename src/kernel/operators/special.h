#pragma once
// Special functions. What the C library lacks is written for float32 and float64, in functions that are whole in
// float64. Polynomials of rows are of our own: least squares of the relative error, reweighted towards its maximum.
#include <limits>

#include "kernel/operators/row.h"

namespace weft::kernel {

template <>
struct Row<ScalarOp::erf> : UnaryFunction {
  static constexpr std::string_view meaning = "the error function of a";
  static constexpr Columns columns{.flops = 24, .ulp = 1.5, .compiled_ulp = 4, .float64 = "erf"};
  static double reference(double a) { return std::erf(a); }
  static Expr expansion(Expr a) { return expansion::erf(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) {
    return g * (2 * std::numbers::inv_sqrtpi) * exp(-square(a));
  }
};

template <>
struct Row<ScalarOp::erfinv> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse error function of a";
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
  static constexpr std::string_view meaning = "1 / (1 + exp(-a))";
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
  static constexpr std::string_view meaning = "the logarithm of the standard normal distribution function at a";
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

/// Σ c_k (a²/64)^k for |a| <= 8 and Σ d_k (16/|a| - 1)^k / √|a| beyond: exponentially scaled Bessel functions, of I₀(a)
/// and I₁(a) / a. In float64 the first is of degree 14 and the second of degree 22.
struct ScaledBessel {
  Expr size, eighth, near, far;
  explicit ScaledBessel(Expr a) : size(abs(a)), eighth(size * 0.125), near(eighth * eighth), far(16.0 / size - 1.0) {}
  Expr join(Expr inner, Expr outer) const { return select(le(size, 8.0), exp(-size) * inner, outer / sqrt(size)); }
};

/// The value of the modified Bessel function I_order(a) exp(-|a|) for a >= 0 by its power series, from 30 on by its
/// asymptotic one.
inline long double scaled_bessel(int order, long double a) {
  long double term = 1, sum = 1;
  if (a < 30) {
    for (int k = 1; term > sum * 1e-22L; ++k) sum += term *= a * a / 4 / (k * (k + order));
    return sum * (order ? a / 2 : 1) * std::exp(-a);
  }
  for (int k = 1; k < 30; ++k) sum += term *= ((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * a);
  return sum / std::sqrt(2 * std::numbers::pi_v<long double> * a);
}

/// I₀(a) exp(-|a|). The largest errors over four million values are 3.82 ulp in float32 and 4.0 in float64.
template <>
struct Row<ScalarOp::i0e> : UnaryFunction {
  static constexpr std::string_view meaning = "exp(-abs(a)) I₀(a), with the modified Bessel function I₀";
  static constexpr Columns columns{.flops = 60, .ulp = 4.5, .compiled_ulp = 6, .a = {-12, 12}};
  static double reference(double a) { return static_cast<double>(scaled_bessel(0, std::fabs(a))); }
  static Expr expansion(Expr a) {
    const ScaledBessel b(a);
    if (is_double(a))
      return b.join(
          horner(b.near, {1.531950923294614e-05, 9.709609483500307e-05, 0.0012619989234318688, 0.01099903132491855,
                          0.08353168005467944, 0.5218402836906156, 2.641922658048657, 10.56765715262973,
                          32.36345721947355, 72.81777772216655, 113.77777778232026, 113.7777777775633,
                          64.00000000000504, 15.999999999999956, 1.0}),
          horner(b.far,
                 {8.972321994224885e-11,   3.9402217726520747e-11, -6.428735031941905e-10, -2.9623703509394236e-10,
                  2.1511640575723235e-09,  1.1398342337449177e-09, -4.518196750894309e-09, -3.1771099294291042e-09,
                  6.515854564436995e-09,   7.367703635157836e-09,  -5.016378577566356e-09, -1.3341020073628963e-08,
                  -6.8560914455635885e-09, 7.538741163614455e-09,  2.1567536779116965e-08, 3.932812222881927e-08,
                  8.872020454970433e-08,   2.9735967892977754e-07, 1.483847672600825e-06,  1.114303379744805e-05,
                  0.00013621607438969906,  0.0033605519836677924,  0.4021765094450081}));
    return b.join(
        horner(b.near,
               {0.15641550719738007, 0.35870033502578735, 2.8343844413757324, 10.432717323303223, 32.421878814697266,
                72.80220794677734, 113.78024291992188, 113.7775650024414, 64.00000762939453, 16.0, 1.0}),
        horner(b.far, {1.0892112101146267e-07, 3.6217980436958896e-07, 1.4756611790289753e-06, 1.1112744687125087e-05,
                       0.00013621739344671369, 0.0033605555072426796, 0.40217649936676025}));
  }
  static auto derivative(const auto& g, const auto& a, const auto& y) {
    return g * (scalar(ScalarOp::i1e, a) - scalar(ScalarOp::sign, a) * y);
  }
};

/// I₁(a) exp(-|a|). The largest errors over four million values are 3.27 ulp in float32 and 3.0 in float64.
template <>
struct Row<ScalarOp::i1e> : UnaryFunction {
  static constexpr std::string_view meaning = "exp(-abs(a)) I₁(a), with the modified Bessel function I₁";
  static constexpr Columns columns{.flops = 60, .ulp = 4.5, .compiled_ulp = 6, .a = {-12, 12}};
  static double reference(double a) { return std::copysign(static_cast<double>(scaled_bessel(1, std::fabs(a))), a); }
  static Expr expansion(Expr a) {
    const ScaledBessel b(a);
    const auto with_sign = [&](Expr v) { return select(lt(a, 0.0), -v, v); };
    if (is_double(a))
      return b.join(
          a * horner(b.near, {5.008343253390694e-07, 3.531616515101775e-06, 4.835374045943238e-05,
                              0.00045860536871262413, 0.003796551263364612, 0.026092271382666652, 0.14677334681359008,
                              0.6604786209729206, 2.31167550333507, 6.068148145613428, 11.377777778001326,
                              14.222222222210668, 10.66666666666697, 3.999999999999997, 0.5}),
          with_sign(horner(
              b.far,
              {-9.343096852313983e-11,  -3.683417631744798e-11,  6.70437448703357e-10,    2.796296991456131e-10,
               -2.2495566957853746e-09, -1.0948454677620127e-09, 4.751223507949418e-09,   3.1299962352766973e-09,
               -6.938112104381595e-09,  -7.476549306020184e-09,  5.570993898464778e-09,   1.3973604382025793e-08,
               6.847073607428436e-09,   -8.41358997018053e-09,   -2.339381936505327e-08,  -4.3131192209530354e-08,
               -1.0001081454895142e-07, -3.4838541789782534e-07, -1.8349102434868989e-06, -1.5038547206262745e-05,
               -0.00021923576383157449, -0.009749577193235676,   0.38939845902587233})));
    return b.join(a * horner(b.near, {0.006879648193717003, 0.018967103213071823, 0.15552255511283875,
                                      0.6540427803993225, 2.3146259784698486, 6.067306041717529, 11.377923011779785,
                                      14.222208023071289, 10.666666984558105, 4.0, 0.5}),
                  with_sign(horner(b.far, {-1.237208664406353e-07, -4.205118386835238e-07, -1.8241206589664216e-06,
                                           -1.5004608940216713e-05, -0.0002192377723986283, -0.0097495811060071,
                                           0.389398455619812})));
  }
  // i0e(a) - (sign a + 1/a) y; where a is 0, y / a is 1/2.
  static auto derivative(const auto& g, const auto& a, const auto& y) {
    const auto nought = scalar(ScalarOp::eq, a, zeros_like(a));
    const auto quotient = select(nought, full_like(a, 0.5), y / select(nought, full_like(a, 1), a));
    return g * (scalar(ScalarOp::i0e, a) - scalar(ScalarOp::sign, a) * y - quotient);
  }
};

}  // namespace weft::kernel
