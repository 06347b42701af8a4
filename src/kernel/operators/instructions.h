#pragma once
// Basic operators: instructions that every target has. Those of the graph are array functions by other names (add for
// `add`, negative for `neg`, …), with promotion rules of their own.
#include "kernel/operators/row.h"

namespace weft::kernel {

template <>
struct Row<ScalarOp::neg> : Elementwise {
  static constexpr std::string_view meaning = "-a";
  static constexpr Columns columns{.integers = true};
  static double reference(double a) { return -a; }
  static uint64_t integers(const Integers& v) { return 0 - v.ua; }
  static Interval interval(const Intervals& v) {
    return v.ordered() ? v.fit(-wide_t{v.a.max}, -wide_t{v.a.min}) : v.any();
  }
  static auto derivative(const auto& g, const auto&, const auto&) { return -g; }
};

template <>
struct Row<ScalarOp::abs> : Elementwise {
  static constexpr std::string_view meaning = "the magnitude of a; its derivative at 0 is 0";
  static constexpr Columns columns{.integers = true, .jumps = Jumps::half_integers};
  static double reference(double a) { return std::fabs(a); }
  static uint64_t integers(const Integers& v) { return v.is_signed && v.a < 0 ? 0 - v.ua : v.ua; }
  static Interval interval(const Intervals& v) {
    if (!v.ordered()) return v.any();
    const wide_t a = v.a.min, b = v.a.max;
    return v.fit(a > 0 ? a : b < 0 ? -b : 0, std::max(-a, b));
  }
  static auto derivative(const auto& g, const auto& a, const auto&) { return g * scalar(ScalarOp::sign, a); }
};

template <>
struct Row<ScalarOp::add> : Elementwise {
  static constexpr std::string_view meaning = "a + b";
  static constexpr Columns columns{.arity = 2, .integers = true};
  static double reference(double a, double b) { return a + b; }
  static uint64_t integers(const Integers& v) { return v.ua + v.ub; }
  static Interval interval(const Intervals& v) {
    return v.corners([](wide_t a, wide_t b) { return a + b; });
  }
  static auto derivative(const auto& g, const auto&, const auto&, const auto&) { return std::array{g, g}; }
};

template <>
struct Row<ScalarOp::sub> : Elementwise {
  static constexpr std::string_view meaning = "a - b";
  static constexpr Columns columns{.arity = 2, .integers = true};
  static double reference(double a, double b) { return a - b; }
  static uint64_t integers(const Integers& v) { return v.ua - v.ub; }
  static Interval interval(const Intervals& v) {
    return v.corners([](wide_t a, wide_t b) { return a - b; });
  }
  static auto derivative(const auto& g, const auto&, const auto&, const auto&) { return std::array{g, -g}; }
};

template <>
struct Row<ScalarOp::mul> : Elementwise {
  static constexpr std::string_view meaning = "a · b";
  static constexpr Columns columns{.arity = 2, .integers = true};
  static double reference(double a, double b) { return a * b; }
  static uint64_t integers(const Integers& v) { return v.ua * v.ub; }
  static Interval interval(const Intervals& v) {
    return v.corners([](wide_t a, wide_t b) { return a * b; });
  }
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) { return std::array{g * b, g * a}; }
};

template <>
struct Row<ScalarOp::div> : Elementwise {
  static constexpr std::string_view meaning = "a / b";
  static constexpr Columns columns{.arity = 2, .flops = 4, .b = {0.6, 1.7, -5, 5}};
  static double reference(double a, double b) { return a / b; }
  static auto derivative(const auto& g, const auto&, const auto& b, const auto& y) {
    return std::array{g / b, -(g * y) / b};
  }
};

/// IEEE 754-2019: NaN wins, and -0 is less than +0.
template <>
struct Row<ScalarOp::max> : Elementwise {
  static constexpr std::string_view meaning =
      "the larger of a and b, NaN where either is NaN; where they are equal, b gets the derivative";
  static constexpr Columns columns{.arity = 2, .integers = true};
  static double reference(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
  static uint64_t integers(const Integers& v) { return v.less() ? v.ub : v.ua; }
  static Interval interval(const Intervals& v) {
    return v.corners([](wide_t a, wide_t b) { return std::max(a, b); });
  }
  // Of equal arguments the second one gets the whole derivative, so that that of maximum(x, 0) is 0 at 0. NaN: neither.
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) {
    return std::array{select(scalar(ScalarOp::lt, b, a), g, zeros_like(g)),
                      select(scalar(ScalarOp::le, a, b), g, zeros_like(g))};
  }
};

template <>
struct Row<ScalarOp::min> : Elementwise {
  static constexpr std::string_view meaning =
      "the smaller of a and b, NaN where either is NaN; where they are equal, b gets the derivative";
  static constexpr Columns columns{.arity = 2, .integers = true};
  static double reference(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
  static uint64_t integers(const Integers& v) { return v.less() ? v.ua : v.ub; }
  static Interval interval(const Intervals& v) {
    return v.corners([](wide_t a, wide_t b) { return std::min(a, b); });
  }
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) {
    return std::array{select(scalar(ScalarOp::lt, a, b), g, zeros_like(g)),
                      select(scalar(ScalarOp::le, b, a), g, zeros_like(g))};
  }
};

/// Rounds once: float32 is not computed through double, which would round twice.
template <>
struct Row<ScalarOp::fma> : Instruction {
  static constexpr std::string_view meaning = "a · b + c, rounded once";
  static constexpr Columns columns{.arity = 3, .flops = 2};
  static double reference(double a, double b, double c, bool narrow) {
    return narrow ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)) : std::fma(a, b, c);
  }
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&, const auto&) {
    return std::array{g * b, g * a, g};
  }
};

template <>
struct Row<ScalarOp::floordiv> : Elementwise {
  static constexpr std::string_view meaning = "a / b rounded down; of integers 0 where b is 0";
  static constexpr Columns columns{
      .arity = 2, .integers = true, .flops = 8, .b = {0.6, 1.7, -5, 5}, .jumps = Jumps::whole_quotients};
  static double reference(double a, double b, bool narrow) {
    return std::floor(narrow ? static_cast<float>(a / b) : a / b);
  }
  static uint64_t integers(const Integers& v) {
    if (v.b == 0) return 0;
    if (!v.is_signed) return v.ua / v.ub;
    if (v.b == -1) return 0 - v.ua;
    return static_cast<uint64_t>(v.a / v.b - (v.a % v.b != 0 && (v.a % v.b < 0) != (v.b < 0)));
  }
  static Interval interval(const Intervals& v) {
    if (!v.ordered() || v.b.min <= 0) return v.any();
    return v.corners([](wide_t a, wide_t b) { return a / b - (a % b < 0); });
  }
};

/// The result has the divisor's sign, as in Python; for floats, the addition is the only rounding.
template <>
struct Row<ScalarOp::mod> : Elementwise {
  static constexpr std::string_view meaning =
      "the remainder of floordiv, with the sign of b; of integers 0 where b is 0";
  static constexpr Columns columns{
      .arity = 2, .integers = true, .flops = 10, .b = {0.6, 1.7, -5, 5}, .jumps = Jumps::whole_quotients};
  static double reference(double a, double b) {
    const double r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  static uint64_t integers(const Integers& v) {
    if (v.b == 0 || (v.is_signed && v.b == -1)) return 0;
    if (!v.is_signed) return v.ua % v.ub;
    return static_cast<uint64_t>(v.a % v.b + (v.a % v.b != 0 && (v.a % v.b < 0) != (v.b < 0) ? v.b : 0));
  }
  static Interval interval(const Intervals& v) {
    if (!v.ordered() || v.b.min < 0) return v.any();
    const wide_t top = std::max<wide_t>(wide_t{v.b.max} - 1, 0);
    return v.fit(0, v.a.min >= 0 ? std::min<wide_t>(top, v.a.max) : top);
  }
  static auto derivative(const auto& g, const auto& a, const auto& b, const auto&) {
    return std::array{g, -(g * scalar(ScalarOp::floordiv, a, b))};
  }
};

template <>
struct Row<ScalarOp::sqrt> : UnaryFunction {
  static constexpr std::string_view meaning = "the square root of a";
  static constexpr Columns columns{.flops = 4, .a = {0.2, 3}};
  static double reference(double a) { return std::sqrt(a); }
  static auto derivative(const auto& g, const auto&, const auto& y) { return g * 0.5 / y; }
};

template <>
struct Row<ScalarOp::floor> : Elementwise {
  static constexpr std::string_view meaning = "a rounded down";
  static constexpr Columns columns{.jumps = Jumps::half_integers};
  static double reference(double a) { return std::floor(a); }
};

template <>
struct Row<ScalarOp::ceil> : Elementwise {
  static constexpr std::string_view meaning = "a rounded up";
  static constexpr Columns columns{.jumps = Jumps::half_integers};
  static double reference(double a) { return std::ceil(a); }
};

template <>
struct Row<ScalarOp::trunc> : Elementwise {
  static constexpr std::string_view meaning = "a rounded toward 0";
  static constexpr Columns columns{.jumps = Jumps::half_integers};
  static double reference(double a) { return std::trunc(a); }
};

/// Half to even.
template <>
struct Row<ScalarOp::round> : Elementwise {
  static constexpr std::string_view meaning = "a rounded to nearest, halves to even";
  static constexpr Columns columns{.jumps = Jumps::half_integers};
  static double reference(double a) { return std::nearbyint(a); }
};

template <>
struct Row<ScalarOp::bit_and> : Elementwise {
  static constexpr std::string_view meaning = "the bits set in both";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .booleans = true};
  static uint64_t integers(const Integers& v) { return v.ua & v.ub; }
  static Interval interval(const Intervals& v) {
    return v.a.min < 0 || v.b.min < 0 ? v.any() : v.fit(0, std::min(v.a.max, v.b.max));
  }
};

template <>
struct Row<ScalarOp::bit_or> : Elementwise {
  static constexpr std::string_view meaning = "the bits set in either";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .booleans = true};
  static uint64_t integers(const Integers& v) { return v.ua | v.ub; }
};

template <>
struct Row<ScalarOp::bit_xor> : Elementwise {
  static constexpr std::string_view meaning = "the bits set in exactly one";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .booleans = true};
  static uint64_t integers(const Integers& v) { return v.ua ^ v.ub; }
};

template <>
struct Row<ScalarOp::bit_not> : Elementwise {
  static constexpr std::string_view meaning = "the complement of each bit; of bools: not";
  static constexpr Columns columns{.floats = false, .integers = true, .booleans = true};
  static uint64_t integers(const Integers& v) { return v.type == bool_ ? v.ua == 0 : ~v.ua; }
};

template <>
struct Row<ScalarOp::shl> : Elementwise {
  static constexpr std::string_view meaning = "a shifted left by b bits";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .b = {0, 0, 0, 40, false}};
  static uint64_t integers(const Integers& v) { return v.ub >= v.type.size() * 8u ? 0 : v.ua << v.ub; }
};

/// Shifts in the sign of signed integers, else 0.
template <>
struct Row<ScalarOp::shr> : Elementwise {
  static constexpr std::string_view meaning = "a shifted right by b bits, the sign coming in where a has one";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .b = {0, 0, 0, 40, false}};
  static uint64_t integers(const Integers& v) {
    const bool gone = v.ub >= v.type.size() * 8u;
    if (!v.is_signed) return gone ? 0 : v.ua >> v.ub;
    return static_cast<uint64_t>(v.a >> (gone ? 63 : v.ub));
  }
  static Interval interval(const Intervals& v) { return v.a.min < 0 ? v.any() : v.fit(0, v.a.max); }
};

template <>
struct Row<ScalarOp::eq> : Elementwise {
  static constexpr std::string_view meaning = "whether a = b";
  static constexpr Columns columns{.arity = 2, .result = ScalarResult::boolean, .integers = true, .booleans = true};
  static bool reference(double a, double b) { return a == b; }
  static uint64_t integers(const Integers& v) { return v.a == v.b; }
};

template <>
struct Row<ScalarOp::ne> : Elementwise {
  static constexpr std::string_view meaning = "whether a ≠ b; true where either is NaN";
  static constexpr Columns columns{.arity = 2, .result = ScalarResult::boolean, .integers = true, .booleans = true};
  static bool reference(double a, double b) { return a != b; }
  static uint64_t integers(const Integers& v) { return v.a != v.b; }
};

template <>
struct Row<ScalarOp::lt> : Elementwise {
  static constexpr std::string_view meaning = "whether a < b";
  static constexpr Columns columns{.arity = 2, .result = ScalarResult::boolean, .integers = true, .booleans = true};
  static bool reference(double a, double b) { return a < b; }
  static uint64_t integers(const Integers& v) { return v.less(); }
};

template <>
struct Row<ScalarOp::le> : Elementwise {
  static constexpr std::string_view meaning = "whether a ≤ b";
  static constexpr Columns columns{.arity = 2, .result = ScalarResult::boolean, .integers = true, .booleans = true};
  static bool reference(double a, double b) { return a <= b; }
  static uint64_t integers(const Integers& v) { return v.less() || v.a == v.b; }
};

/// select(condition, then, otherwise). The condition is bool for any dtype, so the table's own `reference` handles it.
template <>
struct Row<ScalarOp::select> : Instruction {
  static constexpr std::string_view meaning = "b where the condition a is true, else c";
  static constexpr Columns columns{.arity = 3, .integers = true, .booleans = true};
};

/// The upper half of an unsigned product.
template <>
struct Row<ScalarOp::mulhi> : Instruction {
  static constexpr std::string_view meaning = "the upper half of the product a · b";
  static constexpr Columns columns{.arity = 2, .floats = false, .integers = true, .only = is_unsigned, .flops = 2};
  static uint64_t integers(const Integers& v) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(v.ua) * v.ub) >> (v.type.size() * 8));
  }
};

/// ldexp(a, n) = a 2^floor(n) on float32, rounded once; n not infinite. In double the product is exact, whatever comes
/// out in float32.
template <>
struct Row<ScalarOp::ldexp> : Instruction {
  static constexpr std::string_view meaning = "a · 2^floor(b), rounded once";
  static constexpr Columns columns{.arity = 2, .only = [](Dtype t) { return t != float64; }};
  static double reference(double a, double b) {
    return std::isnan(b) ? b : std::ldexp(a, static_cast<int>(std::fmin(std::fmax(std::floor(b), -400), 400)));
  }
  static auto derivative(const auto& g, const auto&, const auto& b, const auto&) {
    return std::array{scalar(ScalarOp::ldexp, g, b), zeros_like(b)};
  }
};

}  // namespace weft::kernel
