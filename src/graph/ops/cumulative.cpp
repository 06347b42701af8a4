// Cumulative: an axis folded up to each of its elements (cumulative sums and their like). Reads attrs.axes ([axis]),
// attrs.reducer and attrs.integers:
//   [0] reverse: from the last element backwards
//   [1] exclusive: up to, but without, the element itself; the first is the reducer's identity
//   [2] in logarithms: a sum of what the elements are logarithms of (reducer sum), i.e. logaddexp
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using kernel::Reducer;
using kernel::ReducerKind;

bool reverse(const Attrs& a) { return a.integers[0] != 0; }
bool exclusive(const Attrs& a) { return a.integers[1] != 0; }
bool in_logs(const Attrs& a) { return a.integers[2] != 0; }
size_t axis_of(const Attrs& a) { return static_cast<size_t>(a.axes[0]); }
bool is_sum(const Attrs& a) { return kernel::info(a.reducer).kind == ReducerKind::sum && !in_logs(a); }
std::string what(const Attrs& a) { return in_logs(a) ? "logcumsumexp" : "cum" + std::string(kernel::name(a.reducer)); }

std::vector<Shape> cumulative_shape(const Attrs& attrs, TypeSpan in) {
  if (attrs.axes.size() != 1 || attrs.integers.size() != 3)
    throw_invalid("cumulative", "takes one axis, and three switches");
  if (attrs.axes[0] < 0 || attrs.axes[0] >= in[0].rank())
    throw_invalid(what(attrs), fmt::format("axis {} is outside {}", attrs.axes[0], to_string(in[0])));
  return {in[0].shape};
}

std::vector<Dtype> cumulative_dtype(const Attrs& attrs, TypeSpan in) {
  const Dtype t = in[0].dtype;
  if (attrs.integers.size() == 3 && in_logs(attrs) && (!is_inexact(t) || attrs.reducer != Reducer::sum))
    throw_invalid("logcumsumexp", fmt::format("expected floats, got {}: cast them first", dtype_name(t)));
  if (!takes(attrs.reducer, real_of(t)) || kernel::components_of(attrs.reducer) > 1)
    throw_invalid("cumulative", fmt::format("{} is not defined on {}", kernel::name(attrs.reducer), dtype_name(t)));
  return {t};
}

Interval cumulative_interval(const Attrs& attrs, std::span<const Interval> in, const Type& result) {
  const Interval range = range_of(result.dtype);
  if (is_float(result.dtype) || kernel::info(attrs.reducer).kind != ReducerKind::extreme) return range;
  if (!exclusive(attrs)) return in[0];
  if (result.dtype == uint64) return {};  // the largest number's pattern is that of -1
  return attrs.reducer == Reducer::max ? Interval{range.min, in[0].max} : Interval{in[0].min, range.max};
}

// ---- derivatives ----

/// Returns elements [from, from + size) of the axis.
Value part(const Value& v, size_t axis, int64_t from, int64_t size) {
  return slice_axis(v, static_cast<int>(axis), from, size);
}

Value flipped(const Value& v, size_t axis) {
  std::vector<int64_t> start(v.shape().size(), 0), step(v.shape().size(), 1);
  start[axis] = std::max<int64_t>(v.shape()[axis].bound() - 1, 0);
  step[axis] = -1;
  return slice(v, start, v.shape(), step);
}

/// Returns the elements moved up by `by` positions, the first `by` filled.
Value moved_up(const Value& v, size_t axis, int64_t by, Number fill) {
  std::vector<int64_t> low(v.shape().size(), 0), high(v.shape().size(), 0);
  low[axis] = by;
  return pad(part(v, axis, 0, v.shape()[axis].bound() - by), low, high, fill);
}
Value moved_down(const Value& v, size_t axis, int64_t by) {
  std::vector<int64_t> low(v.shape().size(), 0), high(v.shape().size(), 0);
  high[axis] = by;
  return pad(part(v, axis, by, v.shape()[axis].bound() - by), low, high);
}

/// Returns the identity of the reducer; of a complex dtype its real part (the imaginary part is 0).
Number identity_of(const Attrs& a, Dtype t) {
  if (in_logs(a)) return Number::of_real(-INFINITY);
  return kernel::identity(a.reducer, real_of(t));
}

/// c = a ∘ b, with the derivatives of c by a and by b.
struct Combination {
  Value value, by_a, by_b;
};

Combination combination_of(const Attrs& attrs, const Value& a, const Value& b) {
  if (in_logs(attrs) && is_complex(a.dtype())) {
    const Value c = binary(Op::logaddexp, a, b), size = unary(Op::abs, unary(Op::real, c)),
                end = binary(Op::eq, size, full_like(size, INFINITY));
    const auto weight = [&](const Value& v) { return select(end, cast(binary(Op::eq, v, c), c.dtype()), exp(v - c)); };
    return {c, weight(a), weight(b)};
  }
  if (in_logs(attrs)) {
    const Value m = binary(Op::max, a, b), low = binary(Op::min, a, b);
    const Value infinite = binary(Op::eq, unary(Op::abs, m), full_like(m, INFINITY));
    const Value c = select(infinite, m, m + log(exp(low - m) + 1.0));
    const auto weight = [&](const Value& v) {
      return select(infinite,
                    cast(binary(Op::eq, v, m), v.dtype()) * cast(binary(Op::ne, m, full_like(m, -INFINITY)), v.dtype()),
                    exp(v - c));
    };
    return {c, weight(a), weight(b)};
  }
  const kernel::ScalarOp combine = kernel::combine(attrs.reducer);
  if (kernel::info(attrs.reducer).kind == ReducerKind::product) return {scalar(combine, a, b), b, a};
  const bool greatest = attrs.reducer == Reducer::max;  // of equal elements the later one counts
  const Value earlier = greatest ? binary(Op::lt, b, a) : binary(Op::lt, a, b);
  const Value one = full_like(a, 1), zero = zeros_like(a);
  return {scalar(combine, a, b), select(earlier, one, zero), select(earlier, zero, one)};
}

/// The cumulative reduction along an axis as log2(n) elementwise steps with their derivatives: level l combines
/// elements 2^l apart. It is exact where elements are zero or infinite, unlike a quotient of results.
struct Doubling {
  std::vector<Value> by_a, by_b;  // of each level, for the elements from `distance` on
  std::vector<int64_t> distance;
};

Doubling doubling(const Attrs& attrs, Value x, size_t axis) {
  const int64_t n = x.shape()[axis].bound();
  Doubling d;
  for (int64_t far = 1; far < n; far *= 2) {
    const Combination step = combination_of(attrs, part(x, axis, 0, n - far), part(x, axis, far, n - far));
    d.by_a.push_back(step.by_a);
    d.by_b.push_back(step.by_b);
    d.distance.push_back(far);
    x = concat({part(x, axis, 0, far), step.value}, static_cast<int>(axis));
  }
  return d;
}

void require_static(const Attrs& attrs, const Value& x) {
  if (!x.shape()[axis_of(attrs)].is_static())
    throw_invalid(what(attrs), "the derivative along a symbolic axis is not supported: " + to_string(x.type()));
}

/// Returns the array whose plain (forward, inclusive) cumulative reduction is the result.
Value plain(const Attrs& attrs, const Value& x, Number fill) {
  const size_t axis = axis_of(attrs);
  const Value v = reverse(attrs) ? flipped(x, axis) : x;
  return exclusive(attrs) ? moved_up(v, axis, 1, fill) : v;
}

Values cumulative_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  if (kernel::info(node.attrs().reducer).kind == ReducerKind::bitwise) return {Value{}};
  const Attrs& attrs = node.attrs();
  if (is_sum(attrs))
    return {cumulative(attrs.reducer, g[0], static_cast<int>(axis_of(attrs)), !reverse(attrs), exclusive(attrs))};
  require_static(attrs, x[0]);
  const size_t axis = axis_of(attrs);
  const int64_t n = x[0].shape()[axis].bound();
  if (n == 0) return {g[0]};
  const Doubling d = doubling(attrs, plain(attrs, x[0], identity_of(attrs, x[0].dtype())), axis);
  Value flow = reverse(attrs) ? flipped(g[0], axis) : g[0];
  for (size_t level = d.distance.size(); level-- > 0;) {
    const int64_t far = d.distance[level];
    const Value upper = part(flow, axis, far, n - far);
    const Value own = concat({part(flow, axis, 0, far), upper * d.by_b[level]}, static_cast<int>(axis));
    std::vector<int64_t> low(x[0].shape().size(), 0), high = low;
    high[axis] = far;
    flow = own + pad(upper * d.by_a[level], low, high);
  }
  if (exclusive(attrs)) flow = moved_down(flow, axis, 1);
  return {reverse(attrs) ? flipped(flow, axis) : flow};
}

Values cumulative_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) {
  if (kernel::info(node.attrs().reducer).kind == ReducerKind::bitwise || !t[0]) return {Value{}};
  const Attrs& attrs = node.attrs();
  if (is_sum(attrs)) return {make(Op::cumulative, {t[0]}, attrs)};
  require_static(attrs, x[0]);
  const size_t axis = axis_of(attrs);
  const int64_t n = x[0].shape()[axis].bound();
  if (n == 0) return {t[0]};
  const Doubling d = doubling(attrs, plain(attrs, x[0], identity_of(attrs, x[0].dtype())), axis);
  Value flow = plain(attrs, t[0], Number::of_real(0));
  for (size_t level = 0; level < d.distance.size(); ++level) {
    const int64_t far = d.distance[level];
    const Value next = part(flow, axis, 0, n - far) * d.by_a[level] + part(flow, axis, far, n - far) * d.by_b[level];
    flow = concat({part(flow, axis, 0, far), next}, static_cast<int>(axis));
  }
  return {reverse(attrs) ? flipped(flow, axis) : flow};
}

Values cumulative_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  Attrs attrs = node.attrs();
  attrs.axes = shifted(attrs.axes);
  return {make(Op::cumulative, {to_front(x[0], axes[0])}, std::move(attrs))};
}

Factors cumulative_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  std::vector<int> factors = factors_from(0, in[0].rank());
  factors[axis_of(attrs)] = -1;
  return {{factors}, {factors}};
}

Number combined(const Attrs& attrs, Dtype t, const Number& total, const Number& next) {
  if (in_logs(attrs)) {
    const double m = std::fmax(total.f, next.f), low = std::fmin(total.f, next.f);
    if (std::isnan(total.f) || std::isnan(next.f)) return Number::of_real(NAN);
    return Number::of_real(std::isinf(m) ? m : m + std::log1p(std::exp(low - m)));
  }
  const Number args[] = {total, next};
  const Number result = kernel::reference(kernel::combine(attrs.reducer), t, args);  // floats stay double here
  return is_float(t) ? result : kernel::round_to(result, t);
}

std::vector<HostTensor> cumulative_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  const Dtype t = out[0].dtype;
  HostTensor result = host(out[0]);
  const std::vector<int64_t> shape = bounds(out[0].shape);
  const size_t axis = axis_of(attrs);
  int64_t stride = 1;
  for (size_t k = axis + 1; k < shape.size(); ++k) stride *= int64_t{shape[k]};
  each_index(shape, [&](const auto& index, int64_t first) {
    if (index[axis] != 0) return;
    Number total = identity_of(attrs, t);
    for (int64_t k = 0; k < shape[axis]; ++k) {
      const auto at = static_cast<size_t>(first + (reverse(attrs) ? shape[axis] - 1 - k : k) * stride);
      const Number next = combined(attrs, t, total, in[0].data[at]);
      result.data[at] = kernel::round_to(exclusive(attrs) ? total : next, t);
      total = next;
    }
  });
  return {result};
}

constexpr auto cumulative_table = std::to_array<Row>({
    {Op::cumulative, "cumulative", 1, 1, cumulative_shape, cumulative_dtype, cumulative_interval, cumulative_vjp,
     cumulative_jvp, cumulative_vmap, cumulative_factors, -1, cumulative_reference, 4,
     "each element reduced with all before or after it along one axis", "reducer, axes, integers", "by the reducer"},
});
static_assert(complete(cumulative_table, Op::cumulative));

}  // namespace

std::span<const Row> cumulative_rows() { return cumulative_table; }

Value cumulative(Reducer reducer, const Value& v, int axis, bool backwards, bool exclusive, bool logs) {
  Attrs attrs;
  attrs.axes = {axis < 0 ? axis + v.type().rank() : axis};
  attrs.reducer = reducer;
  attrs.integers = {backwards, exclusive, logs};
  return make(Op::cumulative, {v}, std::move(attrs));
}

}  // namespace weft::graph
