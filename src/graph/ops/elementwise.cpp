// Elementwise operators. A new one is a line of `operators`: its scalar operator (kernel/scalar.h says what it computes
// and on which dtypes), and its derivative. Everything else an elementwise row needs is the same for all of them and is
// written once.
//
// The Jacobian of an elementwise operator is diagonal, so that one rule serves both directions: `derivative(g, x,
// y)[k]` is g · ∂y/∂x[k]. Reverse mode reads all of it for a cotangent g; forward mode sums the terms k with the
// tangent of x[k] as g.
#include <algorithm>
#include <array>
#include <concepts>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/complex/complex.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using kernel::ScalarOp;
using G = const Value&;
using X = std::span<const Value>;
using Derivative = Values(G g, X x, G y);

constexpr double two_over_sqrt_pi = 2 * std::numbers::inv_sqrtpi;

Value less(G a, G b) { return binary(Op::lt, a, b); }
Value less_equal(G a, G b) { return binary(Op::le, a, b); }
Value zero(G v) { return zeros_like(v); }

// ---- intervals: integers only (fit returns no bound for floats, and the dtype's range where the value may wrap) ----

using In = std::span<const Interval>;

/// Bit patterns of uint64 are not ordered as int64 is: no bound where an argument may exceed INT64_MAX.
bool ordered(In in, const Type& result) {
  return !is_float(result.dtype) &&
         (result.dtype != uint64 || std::all_of(in.begin(), in.end(), [](const Interval& i) { return i.min >= 0; }));
}
Interval corners(In in, const Type& result, wide_t (*f)(wide_t, wide_t)) {
  if (!ordered(in, result)) return {};
  const wide_t c[] = {f(in[0].min, in[1].min), f(in[0].min, in[1].max), f(in[0].max, in[1].min),
                      f(in[0].max, in[1].max)};
  return fit(result, *std::min_element(c, c + 4), *std::max_element(c, c + 4));
}

Interval neg_interval(const Attrs&, In in, const Type& r) {
  return ordered(in, r) ? fit(r, -wide_t{in[0].max}, -wide_t{in[0].min}) : Interval{};
}
Interval add_interval(const Attrs&, In in, const Type& r) {
  return corners(in, r, [](wide_t a, wide_t b) { return a + b; });
}
Interval sub_interval(const Attrs&, In in, const Type& r) {
  return corners(in, r, [](wide_t a, wide_t b) { return a - b; });
}
Interval mul_interval(const Attrs&, In in, const Type& r) {
  return corners(in, r, [](wide_t a, wide_t b) { return a * b; });
}
Interval max_interval(const Attrs&, In in, const Type& r) {
  return corners(in, r, [](wide_t a, wide_t b) { return std::max(a, b); });
}
Interval min_interval(const Attrs&, In in, const Type& r) {
  return corners(in, r, [](wide_t a, wide_t b) { return std::min(a, b); });
}

Interval abs_interval(const Attrs&, In in, const Type& r) {
  if (!ordered(in, r)) return {};
  const wide_t a = in[0].min, b = in[0].max;
  return fit(r, a > 0 ? a : b < 0 ? -b : 0, std::max(-a, b));
}
Interval square_interval(const Attrs&, In in, const Type& r) {
  if (!ordered(in, r)) return {};
  const wide_t a = in[0].min, b = in[0].max;
  return fit(r, a > 0 ? a * a : b < 0 ? b * b : 0, std::max(a * a, b * b));
}
Interval sign_interval(const Attrs&, In, const Type& r) { return fit(r, is_unsigned(r.dtype) ? 0 : -1, 1); }

/// By divisors that are all positive; others keep the dtype's range.
Interval floordiv_interval(const Attrs&, In in, const Type& r) {
  if (!ordered(in, r) || in[1].min <= 0) return range_of(r.dtype);
  return corners(in, r, [](wide_t a, wide_t b) { return a / b - (a % b < 0); });
}
Interval mod_interval(const Attrs&, In in, const Type& r) {
  if (!ordered(in, r) || in[1].min < 0) return range_of(r.dtype);
  const wide_t top = std::max<wide_t>(wide_t{in[1].max} - 1, 0);
  return fit(r, 0, in[0].min >= 0 ? std::min<wide_t>(top, in[0].max) : top);
}
Interval and_interval(const Attrs&, In in, const Type& r) {
  if (in[0].min < 0 || in[1].min < 0) return range_of(r.dtype);
  return fit(r, 0, std::min(in[0].max, in[1].max));
}
Interval shr_interval(const Attrs&, In in, const Type& r) {
  if (in[0].min < 0) return range_of(r.dtype);
  return fit(r, 0, in[0].max);
}

// ---- the operators ----

/// A derivative written as a lambda, or the reason why there is none.
struct Slope {
  Derivative* rule = nullptr;
  None reason = None::given;
  constexpr Slope(None why) : reason(why) {}
  template <std::convertible_to<Derivative*> F>
  constexpr Slope(F f) : rule(f) {}
};

struct Operator {
  Op op;
  std::string_view name;
  ScalarOp scalar;
  int arity;
  Column<IntervalRule> interval;
  Slope derivative;
  double ulp;
};

constexpr auto operators = std::to_array<Operator>({
    {Op::neg, "neg", ScalarOp::neg, 1, neg_interval, [](G g, X, G) { return Values{-g}; }, 0},
    {Op::abs, "abs", ScalarOp::abs, 1, abs_interval, [](G g, X x, G) { return Values{g * unary(Op::sign, x[0])}; }, 0},
    {Op::sign, "sign", ScalarOp::sign, 1, sign_interval, None::discrete, 0},
    {Op::square, "square", ScalarOp::square, 1, square_interval, [](G g, X x, G) { return Values{g * x[0] * 2}; }, 0},
    {Op::recip, "recip", ScalarOp::recip, 1, None::unbounded, [](G g, X, G y) { return Values{-(g * square(y))}; }, 0},
    {Op::sqrt, "sqrt", ScalarOp::sqrt, 1, None::unbounded, [](G g, X, G y) { return Values{g * 0.5 / y}; }, 0},
    {Op::rsqrt, "rsqrt", ScalarOp::rsqrt, 1, None::unbounded, [](G g, X, G y) { return Values{g * -0.5 * y * square(y)}; }, 2},
    {Op::exp, "exp", ScalarOp::exp, 1, None::unbounded, [](G g, X, G y) { return Values{g * y}; }, 2},
    {Op::exp2, "exp2", ScalarOp::exp2, 1, None::unbounded, [](G g, X, G y) { return Values{g * y * std::numbers::ln2}; }, 2},
    {Op::expm1, "expm1", ScalarOp::expm1, 1, None::unbounded, [](G g, X, G y) { return Values{g * (y + 1)}; }, 2},
    {Op::log, "log", ScalarOp::log, 1, None::unbounded, [](G g, X x, G) { return Values{g / x[0]}; }, 2},
    {Op::log2, "log2", ScalarOp::log2, 1, None::unbounded, [](G g, X x, G) { return Values{g * std::numbers::log2e / x[0]}; }, 2},
    {Op::log10, "log10", ScalarOp::log10, 1, None::unbounded, [](G g, X x, G) { return Values{g * std::numbers::log10e / x[0]}; }, 3},
    {Op::log1p, "log1p", ScalarOp::log1p, 1, None::unbounded, [](G g, X x, G) { return Values{g / (x[0] + 1)}; }, 2},
    {Op::sin, "sin", ScalarOp::sin, 1, None::unbounded, [](G g, X x, G) { return Values{g * unary(Op::cos, x[0])}; }, 2},
    {Op::cos, "cos", ScalarOp::cos, 1, None::unbounded, [](G g, X x, G) { return Values{-(g * unary(Op::sin, x[0]))}; }, 2},
    {Op::tan, "tan", ScalarOp::tan, 1, None::unbounded, [](G g, X, G y) { return Values{g * (square(y) + 1)}; }, 5},
    {Op::arcsin, "arcsin", ScalarOp::arcsin, 1, None::unbounded, [](G g, X x, G) { return Values{g * rsqrt((1.0 - x[0]) * (x[0] + 1))}; }, 3},
    {Op::arccos, "arccos", ScalarOp::arccos, 1, None::unbounded, [](G g, X x, G) { return Values{-(g * rsqrt((1.0 - x[0]) * (x[0] + 1)))}; }, 3},
    {Op::arctan, "arctan", ScalarOp::arctan, 1, None::unbounded, [](G g, X x, G) { return Values{g / (square(x[0]) + 1)}; }, 2},
    {Op::sinh, "sinh", ScalarOp::sinh, 1, None::unbounded, [](G g, X x, G) { return Values{g * unary(Op::cosh, x[0])}; }, 3},
    {Op::cosh, "cosh", ScalarOp::cosh, 1, None::unbounded, [](G g, X x, G) { return Values{g * unary(Op::sinh, x[0])}; }, 3},
    {Op::tanh, "tanh", ScalarOp::tanh, 1, None::unbounded, [](G g, X, G y) { return Values{g * (1.0 - square(y))}; }, 4},
    {Op::arcsinh, "arcsinh", ScalarOp::arcsinh, 1, None::unbounded, [](G g, X x, G) { return Values{g * rsqrt(square(x[0]) + 1)}; }, 4},
    {Op::arccosh, "arccosh", ScalarOp::arccosh, 1, None::unbounded, 
     [](G g, X x, G) {  // √(z² - 1) has another branch to the left of the imaginary axis
       if (g.dtype() == complex64) return Values{g * rsqrt(x[0] - 1) * rsqrt(x[0] + 1)};
       return Values{g * rsqrt((x[0] - 1) * (x[0] + 1))};
     },
     4},
    {Op::arctanh, "arctanh", ScalarOp::arctanh, 1, None::unbounded, [](G g, X x, G) { return Values{g / ((1.0 - x[0]) * (x[0] + 1))}; }, 4},
    {Op::erf, "erf", ScalarOp::erf, 1, None::unbounded, [](G g, X x, G) { return Values{g * two_over_sqrt_pi * exp(-square(x[0]))}; }, 4},
    {Op::erfinv, "erfinv", ScalarOp::erfinv, 1, None::unbounded, [](G g, X, G y) { return Values{g * (1 / two_over_sqrt_pi) * exp(square(y))}; }, 8},
    {Op::sigmoid, "sigmoid", ScalarOp::sigmoid, 1, None::unbounded, [](G g, X, G y) { return Values{g * y * (1.0 - y)}; }, 4},
    {Op::floor, "floor", ScalarOp::floor, 1, None::unbounded, None::discrete, 0},
    {Op::ceil, "ceil", ScalarOp::ceil, 1, None::unbounded, None::discrete, 0},
    {Op::trunc, "trunc", ScalarOp::trunc, 1, None::unbounded, None::discrete, 0},
    {Op::round, "round", ScalarOp::round, 1, None::unbounded, None::discrete, 0},
    {Op::bit_not, "bit_not", ScalarOp::bit_not, 1, dtype_interval, None::discrete, 0},

    {Op::add, "add", ScalarOp::add, 2, add_interval, [](G g, X, G) { return Values{g, g}; }, 0},
    {Op::sub, "sub", ScalarOp::sub, 2, sub_interval, [](G g, X, G) { return Values{g, -g}; }, 0},
    {Op::mul, "mul", ScalarOp::mul, 2, mul_interval, [](G g, X x, G) { return Values{g * x[1], g * x[0]}; }, 0},
    {Op::div, "div", ScalarOp::div, 2, None::unbounded, [](G g, X x, G y) { return Values{g / x[1], -(g * y) / x[1]}; }, 0},
    // Equal arguments: the second one gets it all, so that maximum(x, 0) has the slope 0 at 0. NaN: neither.
    {Op::max, "max", ScalarOp::max, 2, max_interval,
     [](G g, X x, G) { return Values{select(less(x[1], x[0]), g, zero(g)), select(less_equal(x[0], x[1]), g, zero(g))}; }, 0},
    {Op::min, "min", ScalarOp::min, 2, min_interval,
     [](G g, X x, G) { return Values{select(less(x[0], x[1]), g, zero(g)), select(less_equal(x[1], x[0]), g, zero(g))}; }, 0},
    // b a^(b-1), which is 0 for b = 0 whatever a is; log a only where a > 0.
    {Op::pow, "pow", ScalarOp::pow, 2, None::unbounded,
     [](G g, X x, G y) {
       if (g.dtype() == complex64) {
         const Value nought = binary(Op::eq, x[0], zero(x[0])), base = select(nought, full_like(x[0], 1), x[0]);
         return Values{g * x[1] * binary(Op::pow, x[0], x[1] - 1), select(nought, zero(g), g * y * log(base))};
       }
       const Value b_zero = binary(Op::eq, x[1], zero(x[1])), positive = less(zero(x[0]), x[0]);
       const Value factor = x[1] * binary(Op::pow, x[0], select(b_zero, zero(x[1]), x[1] - 1));
       return Values{g * factor, select(positive, g * y * log(select(positive, x[0], full_like(x[0], 1))), zero(g))};
     },
     8},
    // arctan2(y, x): one division by the square of the distance, scaled by the larger side so that it does not
    // overflow.
    {Op::arctan2, "arctan2", ScalarOp::arctan2, 2, None::unbounded,
     [](G g, X x, G) {
       const Value larger = binary(Op::max, unary(Op::abs, x[0]), unary(Op::abs, x[1])), a = x[0] / larger, b = x[1] / larger;
       const Value factor = g / ((square(a) + square(b)) * larger);
       return Values{factor * b, -(factor * a)};
     },
     3},
    // The error is relative to the larger argument.
    {Op::logaddexp, "logaddexp", ScalarOp::logaddexp, 2, None::unbounded,
     [](G g, X x, G y) {
       if (g.dtype() == complex64) return Values{g * exp(x[0] - y), g * exp(x[1] - y)};
       return Values{g * unary(Op::sigmoid, x[0] - x[1]), g * unary(Op::sigmoid, x[1] - x[0])};
     },
     4},
    {Op::floordiv, "floordiv", ScalarOp::floordiv, 2, floordiv_interval, None::discrete, 0},
    {Op::mod, "mod", ScalarOp::mod, 2, mod_interval, [](G g, X x, G) { return Values{g, -(g * binary(Op::floordiv, x[0], x[1]))}; }, 0},
    {Op::bit_and, "bit_and", ScalarOp::bit_and, 2, and_interval, None::discrete, 0},
    {Op::bit_or, "bit_or", ScalarOp::bit_or, 2, dtype_interval, None::discrete, 0},
    {Op::bit_xor, "bit_xor", ScalarOp::bit_xor, 2, dtype_interval, None::discrete, 0},
    {Op::shl, "shl", ScalarOp::shl, 2, dtype_interval, None::discrete, 0},
    {Op::shr, "shr", ScalarOp::shr, 2, shr_interval, None::discrete, 0},
    {Op::eq, "eq", ScalarOp::eq, 2, dtype_interval, None::discrete, 0},
    {Op::ne, "ne", ScalarOp::ne, 2, dtype_interval, None::discrete, 0},
    {Op::lt, "lt", ScalarOp::lt, 2, dtype_interval, None::discrete, 0},
    {Op::le, "le", ScalarOp::le, 2, dtype_interval, None::discrete, 0},
});

// ---- what all of them share ----

std::vector<Shape> equal_shapes(std::string_view name, TypeSpan in) {
  for (const Type& t : in)
    if (t.shape != in[0].shape)
      throw_invalid(name, "arguments must have one shape, got " + list(in) + ": broadcast them first");
  return {in[0].shape};
}

std::vector<Dtype> scalar_dtype(const Operator& o, TypeSpan in) {
  const kernel::ScalarInfo& info = kernel::info(o.scalar);
  const Dtype t = in[0].dtype;
  for (const Type& other : in)
    if (other.dtype != t) throw_invalid(o.name, "arguments must have one dtype, got " + list(in) + ": cast them first");
  const bool complex = t == complex64 && takes_complex(o.op);
  if (!complex && !(is_float(t) ? info.floats : is_integer(t) ? info.integers : t == bool_ && info.booleans)) {
    const char* expected = info.floats && !info.integers ? "a floating" : !info.floats ? "an integer" : "a numeric";
    throw_invalid(o.name, fmt::format("expected {} array, got {}: cast it first", expected, dtype_name(t)));
  }
  return {info.result == kernel::ScalarResult::boolean ? bool_ : t};
}

template <size_t k>
std::vector<Shape> shape_rule(const Attrs&, TypeSpan in) {
  return equal_shapes(operators[k].name, in);
}
template <size_t k>
std::vector<Dtype> dtype_rule(const Attrs&, TypeSpan in) {
  return scalar_dtype(operators[k], in);
}

Values derivative_vjp(const Node& node, X x, X y, X g) {
  return operators[static_cast<size_t>(node.op()) - static_cast<size_t>(Op::neg)].derivative.rule(g[0], x, y[0]);
}

Values derivative_jvp(const Node& node, X x, X y, X t) {
  Derivative* derivative = operators[static_cast<size_t>(node.op()) - static_cast<size_t>(Op::neg)].derivative.rule;
  Value total;
  for (size_t k = 0; k < x.size(); ++k) {
    if (!t[k]) continue;
    const Value term = derivative(t[k], x, y[0])[k];
    total = total ? total + term : term;
  }
  return {total};
}

Values elementwise_vmap(const Node& node, X x, std::span<const int> axes) {
  return {make(node.op(), all_batched(x, axes), node.attrs())};
}

Factors elementwise_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const std::vector<int> axes = factors_from(0, out[0].rank());
  return {std::vector<std::vector<int>>(in.size(), axes), {axes}};
}

/// kernel::reference at each element, rounded once to the result's dtype.
std::vector<HostTensor> apply(ScalarOp op, std::span<const HostTensor> in, const Type& result) {
  HostTensor out = host(result);
  const Dtype t = in.back().type.dtype;  // select's first argument is its condition
  std::array<Number, kernel::most_arguments> args;
  for (size_t at = 0; at < out.data.size(); ++at) {
    for (size_t k = 0; k < in.size(); ++k) args[k] = in[k].data[at];
    out.data[at] = kernel::round_to(kernel::reference(op, t, args.data()), result.dtype);
  }
  return {out};
}

template <size_t k>
std::vector<HostTensor> reference_rule(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  return apply(operators[k].scalar, in, out[0]);
}

template <size_t k>
constexpr Row row_of() {
  constexpr Operator o = operators[k];
  Row r{o.op,
        o.name,
        o.arity,
        o.arity,
        shape_rule<k>,
        dtype_rule<k>,
        o.interval,
        derivative_vjp,
        derivative_jvp,
        elementwise_vmap,
        elementwise_factors,
        static_cast<int>(o.scalar),
        reference_rule<k>,
        o.ulp};
  if (o.derivative.reason != None::given) {
    r.vjp = o.derivative.reason;
    r.jvp = o.derivative.reason;
  }
  return r;
}

// ---- select, and the operators that are not scalar functions ----

std::vector<Shape> select_shape(const Attrs&, TypeSpan in) { return equal_shapes("select", in); }
std::vector<Dtype> select_dtype(const Attrs&, TypeSpan in) {
  if (in[0].dtype != bool_)
    throw_invalid("select", std::string("the condition must be bool, got ") + dtype_name(in[0].dtype));
  if (in[1].dtype != in[2].dtype)
    throw_invalid("select", "both choices must have one dtype, got " + list(in.subspan(1)) + ": cast them first");
  return {in[1].dtype};
}
Interval select_interval(const Attrs&, In in, const Type&) { return hull(in.subspan(1)); }
Values select_vjp(const Node&, X x, X, X g) {
  return {{}, select(x[0], g[0], zero(g[0])), select(x[0], zero(g[0]), g[0])};
}
Values select_jvp(const Node&, X x, X y, X t) {
  const auto tangent = [&](size_t k) { return t[k] ? t[k] : zero(y[0]); };
  if (!t[1] && !t[2]) return {Value{}};
  return {select(x[0], tangent(1), tangent(2))};
}
std::vector<HostTensor> select_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  return apply(ScalarOp::select, in, out[0]);
}

std::vector<Shape> same_shape(const Attrs&, TypeSpan in) { return {in[0].shape}; }

std::vector<Dtype> cast_dtype(const Attrs& attrs, TypeSpan) { return {attrs.dtype}; }
Interval cast_interval(const Attrs&, In in, const Type& r) {
  if (is_float(r.dtype)) return {};
  if (r.dtype.size() == 8) return in[0];  // uint64 keeps the bit pattern
  const Interval range = range_of(r.dtype);
  return in[0].min >= range.min && in[0].max <= range.max ? in[0] : range;
}
/// Derivatives are cast as well, to integers too, as in MLX; a complex number is cast to its real part.
Values cast_vjp(const Node&, X x, X, X g) { return {cast(g[0], x[0].dtype())}; }
Values cast_jvp(const Node& node, X, X, X t) { return {cast(t[0], node.types()[0].dtype)}; }
std::vector<HostTensor> cast_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  for (size_t k = 0; k < result.data.size(); ++k)
    result.data[k] = kernel::reference_cast(in[0].data[k], in[0].type.dtype, out[0].dtype);
  return {result};
}

std::vector<Dtype> bitcast_dtype(const Attrs& attrs, TypeSpan in) {
  if (attrs.dtype.size() != in[0].dtype.size() || attrs.dtype == bool_ || in[0].dtype == bool_ ||
      attrs.dtype == complex64 || in[0].dtype == complex64)
    throw_invalid("bitcast", fmt::format("from {} to {}: both must be numbers of one width", dtype_name(in[0].dtype),
                                         dtype_name(attrs.dtype)));
  return {attrs.dtype};
}
std::vector<HostTensor> bitcast_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  for (size_t k = 0; k < result.data.size(); ++k)
    result.data[k] = number_of_bits(bits_of_number(in[0].data[k], in[0].type.dtype), out[0].dtype);
  return {result};
}

std::vector<HostTensor> copy_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan) { return {in[0]}; }

constexpr size_t operator_count = operators.size();

constexpr Row others[] = {
    {Op::select, "select", 3, 3, select_shape, select_dtype, select_interval, select_vjp, select_jvp, elementwise_vmap,
     elementwise_factors, static_cast<int>(ScalarOp::select), select_reference, 0},
    // reads dtype
    {Op::cast, "cast", 1, 1, same_shape, cast_dtype, cast_interval, cast_vjp, cast_jvp, elementwise_vmap,
     elementwise_factors, -1, cast_reference, 0},
    // reads dtype
    {Op::bitcast, "bitcast", 1, 1, same_shape, bitcast_dtype, dtype_interval, None::discrete, None::discrete,
     elementwise_vmap, elementwise_factors, -1, bitcast_reference, 0},
    {Op::stop_gradient, "stop_gradient", 1, 1, same_shape, first_dtype, first_interval, None::discrete, None::discrete,
     elementwise_vmap, elementwise_factors, -1, copy_reference, 0},
};

template <size_t... k>
constexpr auto all_rows(std::index_sequence<k...>) {
  return std::array<Row, operator_count + std::size(others)>{row_of<k>()..., others[0], others[1], others[2],
                                                             others[3]};
}
static_assert(std::size(others) == 4);
constexpr auto elementwise_table = all_rows(std::make_index_sequence<operator_count>());
static_assert(complete(elementwise_table, Op::neg));

}  // namespace

std::span<const Row> elementwise_rows() { return elementwise_table; }

}  // namespace weft::graph
