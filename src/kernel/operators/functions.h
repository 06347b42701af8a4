#pragma once
// Elementary functions, which kernel/expand writes in basic operators.
#include "kernel/operators/row.h"

namespace weft::kernel {

template <>
struct Row<ScalarOp::recip> : Elementwise {
  static constexpr std::string_view meaning = "1 / a";
  static constexpr Columns columns{.flops = 4, .a = {0.2, 3}};
  static double reference(double a) { return 1 / a; }
  static Expr expansion(Expr a) { return 1.0 / a; }
  static auto derivative(const auto& g, const auto&, const auto& y) { return -(g * square(y)); }
};

template <>
struct Row<ScalarOp::rsqrt> : UnaryFunction {
  static constexpr std::string_view meaning = "1 / √a";
  static constexpr Columns columns{.flops = 8, .ulp = 1.5, .compiled_ulp = 2, .a = {0.2, 3}};
  static double reference(double a) { return 1 / std::sqrt(a); }
  static Expr expansion(Expr a) {
    if (a.emitter->has().special_functions && !is_double(a)) return expansion::apply(ScalarOp::rsqrt, {a});
    return 1.0 / expansion::sqrt(a);
  }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * -0.5 * y * square(y); }
};

template <>
struct Row<ScalarOp::square> : Elementwise {
  static constexpr std::string_view meaning = "a²";
  static constexpr Columns columns{.integers = true};
  static double reference(double a) { return a * a; }
  static uint64_t integers(const Integers& v) { return v.ua * v.ua; }
  static Interval interval(const Intervals& v) {
    if (!v.ordered()) return v.any();
    const wide_t a = v.a.min, b = v.a.max;
    return v.fit(a > 0 ? a * a : b < 0 ? b * b : 0, std::max(a * a, b * b));
  }
  static Expr expansion(Expr a) { return a * a; }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * a * 2; }
};

/// 0 for NaN and for -0.
template <>
struct Row<ScalarOp::sign> : Elementwise {
  static constexpr std::string_view meaning = "-1, 0 or 1 by the sign of a; 0 for NaN";
  static constexpr Columns columns{.integers = true, .flops = 3, .jumps = Jumps::half_integers};
  static double reference(double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
  static uint64_t integers(const Integers& v) {
    return static_cast<uint64_t>(v.is_signed ? (v.a > 0) - (v.a < 0) : v.a != 0);
  }
  static Interval interval(const Intervals& v) { return v.fit(is_unsigned(v.type) ? 0 : -1, 1); }
  static Expr expansion(Expr a) {
    const Type& type = a.emitter->type(a.value);
    const bool has_negative = !is_unsigned(type.dtype);
    const Expr zero{a.emitter, a.emitter->constant(type, Number::of_int(0))};
    const Expr positive = select(lt(zero, a), 1.0, zero);
    return has_negative ? select(lt(a, zero), -1.0, positive) : positive;
  }
};

template <>
struct Row<ScalarOp::exp> : UnaryFunction {
  static constexpr std::string_view meaning = "e to the power a";
  static constexpr Columns columns{.flops = 12, .ulp = 1, .compiled_ulp = 2, .float64 = "exp"};
  static double reference(double a) { return std::exp(a); }
  static Expr expansion(Expr a, Precision precision) { return expansion::exp(a, precision); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * y; }
};

template <>
struct Row<ScalarOp::exp2> : Elementwise {
  static constexpr std::string_view meaning = "2 to the power a";
  static constexpr Columns columns{.flops = 11, .ulp = 1, .compiled_ulp = 2, .float64 = "exp2"};
  static double reference(double a) { return std::exp2(a); }
  static Expr expansion(Expr a) { return expansion::exp2(a); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * y * std::numbers::ln2; }
};

template <>
struct Row<ScalarOp::expm1> : UnaryFunction {
  static constexpr std::string_view meaning = "exp(a) - 1, accurate near 0";
  static constexpr Columns columns{.flops = 18, .ulp = 1.5, .compiled_ulp = 2, .float64 = "expm1"};
  static double reference(double a) { return std::expm1(a); }
  static Expr expansion(Expr a) { return expansion::expm1(a); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * (y + 1); }
};

template <>
struct Row<ScalarOp::log> : UnaryFunction {
  static constexpr std::string_view meaning = "the natural logarithm of a";
  static constexpr Columns columns{.flops = 18, .ulp = 1, .compiled_ulp = 2, .float64 = "log", .a = {0.2, 3}};
  static double reference(double a) { return std::log(a); }
  static Expr expansion(Expr a) { return expansion::log(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g / a; }
};

template <>
struct Row<ScalarOp::log2> : UnaryFunction {
  static constexpr std::string_view meaning = "the logarithm of a to base 2";
  static constexpr Columns columns{.flops = 18, .ulp = 1, .compiled_ulp = 2, .float64 = "log2", .a = {0.2, 3}};
  static double reference(double a) { return std::log2(a); }
  static Expr expansion(Expr a) { return expansion::log2(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * std::numbers::log2e / a; }
};

template <>
struct Row<ScalarOp::log10> : UnaryFunction {
  static constexpr std::string_view meaning = "the logarithm of a to base 10";
  static constexpr Columns columns{.flops = 20, .ulp = 2, .compiled_ulp = 3, .float64 = "log10", .a = {0.2, 3}};
  static double reference(double a) { return std::log10(a); }
  static Expr expansion(Expr a) { return expansion::log10(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * std::numbers::log10e / a; }
};

template <>
struct Row<ScalarOp::log1p> : UnaryFunction {
  static constexpr std::string_view meaning = "log(1 + a), accurate near 0";
  static constexpr Columns columns{.flops = 22, .ulp = 1.5, .compiled_ulp = 2, .float64 = "log1p", .a = {-0.7, 3}};
  static double reference(double a) { return std::log1p(a); }
  static Expr expansion(Expr a) { return expansion::log1p(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g / (a + 1); }
};

template <>
struct Row<ScalarOp::sin> : UnaryFunction {
  static constexpr std::string_view meaning = "the sine of a";
  static constexpr Columns columns{.flops = 30, .ulp = 2, .compiled_ulp = 2, .float64 = "sin"};
  static double reference(double a) { return std::sin(a); }
  static Expr expansion(Expr a) { return expansion::sin(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * scalar(ScalarOp::cos, a); }
};

template <>
struct Row<ScalarOp::cos> : UnaryFunction {
  static constexpr std::string_view meaning = "the cosine of a";
  static constexpr Columns columns{.flops = 30, .ulp = 2, .compiled_ulp = 2, .float64 = "cos"};
  static double reference(double a) { return std::cos(a); }
  static Expr expansion(Expr a) { return expansion::cos(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return -(g * scalar(ScalarOp::sin, a)); }
};

template <>
struct Row<ScalarOp::tan> : UnaryFunction {
  static constexpr std::string_view meaning = "the tangent of a";
  static constexpr Columns columns{.flops = 36, .ulp = 4.5, .compiled_ulp = 5, .float64 = "tan", .a = {-1.2, 1.2}};
  static double reference(double a) { return std::tan(a); }
  static Expr expansion(Expr a) { return expansion::tan(a); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * (square(y) + 1); }
};

template <>
struct Row<ScalarOp::arcsin> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse sine of a";
  static constexpr Columns columns{.flops = 24, .ulp = 3, .compiled_ulp = 3, .float64 = "asin", .a = {-0.9, 0.9}};
  static double reference(double a) { return std::asin(a); }
  static Expr expansion(Expr a) { return expansion::arcsin(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * rsqrt((1.0 - a) * (a + 1)); }
};

template <>
struct Row<ScalarOp::arccos> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse cosine of a";
  static constexpr Columns columns{.flops = 26, .ulp = 2.5, .compiled_ulp = 3, .float64 = "acos", .a = {-0.9, 0.9}};
  static double reference(double a) { return std::acos(a); }
  static Expr expansion(Expr a) { return expansion::arccos(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return -(g * rsqrt((1.0 - a) * (a + 1))); }
};

template <>
struct Row<ScalarOp::arctan> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse tangent of a";
  static constexpr Columns columns{.flops = 26, .ulp = 2, .compiled_ulp = 2, .float64 = "atan"};
  static double reference(double a) { return std::atan(a); }
  static Expr expansion(Expr a) { return expansion::arctan(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g / (square(a) + 1); }
};

template <>
struct Row<ScalarOp::sinh> : UnaryFunction {
  static constexpr std::string_view meaning = "the hyperbolic sine of a";
  static constexpr Columns columns{.flops = 26, .ulp = 3, .compiled_ulp = 3, .float64 = "sinh"};
  static double reference(double a) { return std::sinh(a); }
  static Expr expansion(Expr a) { return expansion::sinh(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * scalar(ScalarOp::cosh, a); }
};

template <>
struct Row<ScalarOp::cosh> : UnaryFunction {
  static constexpr std::string_view meaning = "the hyperbolic cosine of a";
  static constexpr Columns columns{.flops = 22, .ulp = 3, .compiled_ulp = 3, .float64 = "cosh"};
  static double reference(double a) { return std::cosh(a); }
  static Expr expansion(Expr a) { return expansion::cosh(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * scalar(ScalarOp::sinh, a); }
};

template <>
struct Row<ScalarOp::tanh> : UnaryFunction {
  static constexpr std::string_view meaning = "the hyperbolic tangent of a";
  static constexpr Columns columns{.flops = 20, .ulp = 2.5, .compiled_ulp = 4, .float64 = "tanh"};
  static double reference(double a) { return std::tanh(a); }
  static Expr expansion(Expr a, Precision precision) { return expansion::tanh(a, precision); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * (1.0 - square(y)); }
};

template <>
struct Row<ScalarOp::arcsinh> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse hyperbolic sine of a";
  static constexpr Columns columns{.flops = 34, .ulp = 4, .compiled_ulp = 4, .float64 = "asinh"};
  static double reference(double a) { return std::asinh(a); }
  static Expr expansion(Expr a) { return expansion::arcsinh(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * rsqrt(square(a) + 1); }
};

template <>
struct Row<ScalarOp::arccosh> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse hyperbolic cosine of a";
  static constexpr Columns columns{.flops = 34, .ulp = 4, .compiled_ulp = 4, .float64 = "acosh", .a = {1.2, 4}};
  static double reference(double a) { return std::acosh(a); }
  static Expr expansion(Expr a) { return expansion::arccosh(a); }
  // √(z² - 1) has another branch to the left of the imaginary axis.
  static auto derivative(const auto& g, const auto& a, const auto&) {
    if (is_complex(g.dtype())) return g * rsqrt(a - 1) * rsqrt(a + 1);
    return g * rsqrt((a - 1) * (a + 1));
  }
};

template <>
struct Row<ScalarOp::arctanh> : UnaryFunction {
  static constexpr std::string_view meaning = "the inverse hyperbolic tangent of a";
  static constexpr Columns columns{.flops = 30, .ulp = 4, .compiled_ulp = 4, .float64 = "atanh", .a = {-0.9, 0.9}};
  static double reference(double a) { return std::atanh(a); }
  static Expr expansion(Expr a) { return expansion::arctanh(a); }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g / ((1.0 - a) * (a + 1)); }
};

/// pow(a, b)
template <>
struct Row<ScalarOp::pow> : Elementwise {
  static constexpr std::string_view meaning = "a to the power b; its derivative by b is 0 where a ≤ 0";
  static constexpr Columns columns{
      .arity = 2, .flops = 50, .ulp = 8, .compiled_ulp = 8, .float64 = "pow", .a = {0.3, 2}};
  static double reference(double a, double b) { return std::pow(a, b); }
  static Expr expansion(Expr a, Expr b) { return expansion::pow(a, b); }
  // b a^(b-1), which is 0 for b = 0 whatever a is; log a only where a > 0.
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto& y) {
    if (is_complex(g.dtype())) {
      const auto nought = scalar(ScalarOp::eq, a, zeros_like(a)), base = select(nought, full_like(a, 1), a);
      return std::array{g * b * scalar(ScalarOp::pow, a, b - 1), select(nought, zeros_like(g), g * y * log(base))};
    }
    const auto b_zero = scalar(ScalarOp::eq, b, zeros_like(b)), positive = scalar(ScalarOp::lt, zeros_like(a), a);
    const auto slope = b * scalar(ScalarOp::pow, a, select(b_zero, zeros_like(b), b - 1));
    return std::array{g * slope, select(positive, g * y * log(select(positive, a, full_like(a, 1))), zeros_like(g))};
  }
};

/// arctan2(y, x), here of (a, b).
template <>
struct Row<ScalarOp::arctan2> : BinaryFunction {
  static constexpr std::string_view meaning = "the angle of the point (b, a)";
  static constexpr Columns columns{
      .arity = 2, .flops = 32, .ulp = 3, .compiled_ulp = 3, .float64 = "atan2", .b = {0.3, 2}};
  static double reference(double a, double b) { return std::atan2(a, b); }
  static Expr expansion(Expr a, Expr b) { return expansion::arctan2(a, b); }
  // One division by the square of the distance, scaled by the larger side so that it does not overflow.
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) {
    const auto larger = scalar(ScalarOp::max, scalar(ScalarOp::abs, a), scalar(ScalarOp::abs, b)), y = a / larger,
               x = b / larger;
    const auto slope = g / ((square(y) + square(x)) * larger);
    return std::array{slope * x, -(slope * y)};
  }
};

/// log(exp(a) + exp(b)) = max + log1p(exp(-|a - b|)); equal arguments, infinite ones among them, are log(2) above both.
template <>
struct Row<ScalarOp::logaddexp> : BinaryFunction {
  static constexpr std::string_view meaning = "log(exp(a) + exp(b)), without overflow";
  static constexpr Columns columns{
      .arity = 2, .flops = 40, .ulp = 4, .compiled_ulp = 4, .scale = ErrorScale::arguments, .float64 = "flogaddexp"};
  static double reference(double a, double b) {
    if (a == b) return a + std::numbers::ln2;
    return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
  static Expr expansion(Expr a, Expr b, Precision precision) { return expansion::logaddexp(a, b, precision); }
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto& y) {
    if (is_complex(g.dtype())) return std::array{g * exp(a - y), g * exp(b - y)};
    return std::array{g * scalar(ScalarOp::sigmoid, a - b), g * scalar(ScalarOp::sigmoid, b - a)};
  }
};

/// a log(b); 0 where a is 0, unless b is NaN. The largest error over three million pairs is 1.71 ulp.
template <>
struct Row<ScalarOp::xlogy> : BinaryFunction {
  static constexpr std::string_view meaning = "a log(b), 0 where a is 0 and b is not NaN";
  static constexpr Columns columns{.arity = 2, .flops = 20, .ulp = 2, .compiled_ulp = 3, .b = {0.2, 3}};
  static double reference(double a, double b) { return a == 0 && !std::isnan(b) ? 0 : a * std::log(b); }
  static Expr expansion(Expr a, Expr b) {
    const Expr none = eq(a, 0.0) & eq(b, b);
    return select(none, 0.0, a * log(select(none, 1.0, b)));
  }
  // By b it is a / b, and 0 where a is 0; by a it is log b, and 0 where a is 0 and the logarithm is not a number.
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) {
    const auto nought = scalar(ScalarOp::eq, a, zeros_like(a)), one = full_like(b, 1), outside = select(nought, b, one),
               lost = scalar(ScalarOp::le, outside, zeros_like(b));
    return std::array{select(lost, zeros_like(g), g * log(select(lost, one, b))), g * a / select(nought, one, b)};
  }
};

}  // namespace weft::kernel
