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

}  // namespace weft::kernel
