// Elementwise operators. A new one is a row of kernel/operators. The other columns of the graph's table are the same
// for all of them and are written here.
//
// The Jacobian of an elementwise operator is diagonal, so that one rule serves both directions: `derivative` gives g ·
// ∂y/∂x[k] for each argument k. Reverse mode reads all of it for a cotangent g; forward mode sums the terms k with the
// tangent of x[k] as g.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/complex/complex.h"
#include "graph/rows.h"
#include "kernel/operators/rows.h"

namespace weft::graph {
namespace {

using kernel::ScalarOp;
using G = const Value&;
using X = std::span<const Value>;

using In = std::span<const Interval>;

// ---- what all of them share ----

std::vector<Shape> equal_shapes(std::string_view name, TypeSpan in) {
  for (const Type& t : in)
    if (t.shape != in[0].shape)
      throw_invalid(name, "arguments must have one shape, got " + list(in) + ": broadcast them first");
  return std::vector<Shape>(1, in[0].shape);
}

template <ScalarOp op, Op node>
std::vector<Shape> shape_rule(const Attrs&, TypeSpan in) {
  return equal_shapes(row(node).name, in);
}

std::vector<Dtype> scalar_dtype(const kernel::ScalarInfo& info, Op op, TypeSpan in) {
  const Dtype t = in[0].dtype;
  for (const Type& other : in)
    if (other.dtype != t)
      throw_invalid(info.name, "arguments must have one dtype, got " + list(in) + ": cast them first");
  if (!takes(info, t) && !(is_complex(t) && takes_complex(op))) {
    const char* expected = info.floats && !info.integers ? "a floating" : !info.floats ? "an integer" : "a numeric";
    throw_invalid(info.name, fmt::format("expected {} array, got {}: cast it first", expected, dtype_name(t)));
  }
  return {info.result == kernel::ScalarResult::boolean ? bool_ : t};
}
template <ScalarOp op, Op node>
std::vector<Dtype> dtype_rule(const Attrs&, TypeSpan in) {
  return scalar_dtype(kernel::info(op), node, in);
}

/// g times the derivative of the result by each argument.
template <ScalarOp op>
Values derivative(G g, X x, G y) {
  if constexpr (kernel::Row<op>::columns.arity == 1) {
    return {kernel::Row<op>::derivative(g, x[0], y)};
  } else {
    const std::array<Value, 2> both = kernel::Row<op>::derivative(g, x[0], x[1], y);
    return {both[0], both[1]};
  }
}

template <ScalarOp op>
Values derivative_vjp(const Node&, X x, X y, X g) {
  return derivative<op>(g[0], x, y[0]);
}

template <ScalarOp op>
Values derivative_jvp(const Node&, X x, X y, X t) {
  Value total;
  for (size_t k = 0; k < x.size(); ++k) {
    if (!t[k]) continue;
    const Value term = derivative<op>(t[k], x, y[0])[k];
    total = total ? total + term : term;
  }
  return {total};
}

/// The interval of an operator on integers or bools.
template <ScalarOp op>
Interval interval_rule(const Attrs&, In in, const Type& result) {
  if constexpr (requires { &kernel::Row<op>::interval; })
    return kernel::Row<op>::interval({result.dtype, in[0], in.size() > 1 ? in[1] : Interval{0, 0}});
  else return range_of(result.dtype);
}

Values elementwise_vmap(const Node& node, X x, std::span<const int> axes) {
  return {make(node.op(), all_batched(x, axes), node.attrs())};
}

Factors elementwise_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const std::vector<int> axes = factors_from(0, out[0].rank());
  return {std::vector<std::vector<int>>(in.size(), axes), {axes}};
}

/// Applies kernel::reference to each element and rounds once to the result's dtype.
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

template <ScalarOp op>
std::vector<HostTensor> reference_rule(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  return apply(op, in, out[0]);
}

/// The derivative of a scalar operator without a rule of its own: zero, because it is constant or a step function.
template <ScalarOp op, Op node>
constexpr Row row_of(std::string_view name) {
  constexpr kernel::Columns columns = kernel::Row<op>::columns;
  constexpr bool of_one = requires(const Value& v) { kernel::Row<op>::derivative(v, v, v); };
  constexpr bool of_two = requires(const Value& v) { kernel::Row<op>::derivative(v, v, v, v); };
  Row r{node,
        name,
        columns.arity,
        columns.arity,
        shape_rule<op, node>,
        dtype_rule<op, node>,
        columns.integers || columns.booleans ? Column<IntervalRule>(interval_rule<op>) : None::unbounded,
        None::discrete,
        None::discrete,
        elementwise_vmap,
        elementwise_factors,
        static_cast<int>(op),
        reference_rule<op>,
        columns.compiled_ulp,
        kernel::Row<op>::meaning};
  if constexpr (of_one || of_two) {
    r.vjp = derivative_vjp<op>;
    r.jvp = derivative_jvp<op>;
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
  return {{}, select(x[0], g[0], zeros_like(g[0])), select(x[0], zeros_like(g[0]), g[0])};
}
Values select_jvp(const Node&, X x, X y, X t) {
  const auto tangent = [&](size_t k) { return t[k] ? t[k] : zeros_like(y[0]); };
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
      is_complex(attrs.dtype) || is_complex(in[0].dtype))
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

constexpr Row elementwise_table[] = {
#define WEFT_ROW(name) row_of<ScalarOp::name, Op::name>(#name),
    WEFT_ELEMENTWISE_OPERATORS(WEFT_ROW)
#undef WEFT_ROW
        {Op::select, "select", 3, 3, select_shape, select_dtype, select_interval, select_vjp, select_jvp,
         elementwise_vmap, elementwise_factors, static_cast<int>(ScalarOp::select), select_reference, 0,
         kernel::Row<ScalarOp::select>::meaning},
    {Op::cast, "cast", 1, 1, same_shape, cast_dtype, cast_interval, cast_vjp, cast_jvp, elementwise_vmap,
     elementwise_factors, -1, cast_reference, 0,
     "the elements converted: floats to integers toward 0 and saturated, integers to integers wrapped", "dtype"},
    {Op::bitcast, "bitcast", 1, 1, same_shape, bitcast_dtype, dtype_interval, None::discrete, None::discrete,
     elementwise_vmap, elementwise_factors, -1, bitcast_reference, 0,
     "the bits as elements of another dtype of the same width", "dtype"},
    {Op::stop_gradient, "stop_gradient", 1, 1, same_shape, first_dtype, first_interval, None::discrete, None::discrete,
     elementwise_vmap, elementwise_factors, -1, copy_reference, 0, "a copy without derivatives"},
};
static_assert(complete(elementwise_table, Op::neg));

}  // namespace

std::span<const Row> elementwise_rows() { return elementwise_table; }

}  // namespace weft::graph
