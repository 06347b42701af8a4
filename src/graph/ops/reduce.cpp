// Reduce: axes reduced by a reducer (kernel/reducer.h). Reads attrs.axes (ascending) and attrs.reducer.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using kernel::Reducer;
using kernel::ReducerKind;

bool reduced(const Attrs& attrs, size_t axis) {
  return std::binary_search(attrs.axes.begin(), attrs.axes.end(), static_cast<int64_t>(axis));
}

std::vector<Shape> reduce_shape(const Attrs& attrs, TypeSpan in) {
  int64_t previous = -1;
  for (int64_t axis : attrs.axes) {
    if (axis <= previous || axis >= in[0].rank())
      throw_invalid(name(attrs.reducer), fmt::format("axes {} of {} must be distinct, ascending and within the array",
                                                     list(attrs.axes), to_string(in[0])));
    previous = axis;
  }
  Shape out;
  for (size_t k = 0; k < in[0].shape.size(); ++k)
    if (!reduced(attrs, k)) out.push_back(in[0].shape[k]);
  return {out};
}

std::vector<Dtype> reduce_dtype(const Attrs& attrs, TypeSpan in) {
  const Dtype t = in[0].dtype;
  const kernel::ReducerInfo& reducer = kernel::info(attrs.reducer);
  if (takes(attrs.reducer, t == complex64 ? float32 : t)) return {t};
  if (!reducer.floats && !reducer.integers)
    throw_invalid(reducer.name,
                  fmt::format("expected a bool array, got {}: compare it with zero first", dtype_name(t)));
  throw_invalid(reducer.name, fmt::format("expected {} array, got {}: cast it first",
                                          reducer.floats ? "a numeric" : "an integer", dtype_name(t)));
}

Interval reduce_interval(const Attrs& attrs, std::span<const Interval> in, const Type& result) {
  const Interval range = range_of(result.dtype);
  // The result's type does not tell how many elements are reduced, so only extremes have bounds.
  if (is_float(result.dtype) || kernel::info(attrs.reducer).kind != ReducerKind::extreme) return range;
  // A reduction over nothing gives the identity, an end of the range.
  return attrs.reducer == Reducer::max ? Interval{range.min, in[0].max} : Interval{in[0].min, range.max};
}

/// Returns v of the reduced shape repeated along the reduced axes.
Value unreduce(const Value& v, const Node& node, const Value& like) {
  return broadcast(expand_dims(v, node.attrs().axes), like.shape());
}

/// For max and min: elements that equal the extreme share its derivative.
struct Extremes {
  Value at, count;  // where they are, and how many of them
};

Extremes extremes(const Node& node, const Value& x, const Value& y) {
  const Value at = binary(Op::eq, x, unreduce(y, node, x));
  return {at, sum(cast(at, is_integer(x.dtype()) && x.dtype().size() < 4 ? int32 : x.dtype()), node.attrs().axes)};
}

/// Returns each extreme's share of v, rounded down for integers.
Value divided(const Value& v, const Value& count) {
  return is_integer(v.dtype()) ? cast(binary(Op::floordiv, cast(v, count.dtype()), count), v.dtype())
                               : v * (1.0 / count);
}

/// Returns for each element the product of the other elements that are reduced with it. It uses no division, so that it
/// is exact where elements are zero and can be differentiated again. In a tree of halves, the product of the others is
/// that of the other half times the product outside of both.
Value product_of_others(const Node& node, const Value& x) {
  const std::vector<int64_t>& axes = node.attrs().axes;
  std::vector<int64_t> order, inverse(x.shape().size());
  Shape rest;
  int64_t n = 1;
  for (size_t k = 0; k < x.shape().size(); ++k) {
    if (reduced(node.attrs(), k)) continue;
    order.push_back(static_cast<int64_t>(k));
    rest.push_back(x.shape()[k]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  for (size_t k = 0; k < order.size(); ++k) inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  for (int64_t axis : axes) {
    const Dim extent = x.shape()[static_cast<size_t>(axis)];
    if (!extent.is_static())
      throw_invalid("prod", "the derivative along a symbolic axis is not supported: " + to_string(x.type()));
    n *= extent.bound();
  }
  if (n == 0) return x;

  const int last = static_cast<int>(rest.size());
  const Value front = permute(x, order);
  Shape flat = rest;
  flat.push_back(n);
  int64_t width = 1;
  while (width < n) width *= 2;
  std::vector<int64_t> low(flat.size(), 0), high(flat.size(), 0);
  high.back() = width - n;
  const auto half = [&](const Value& v, int which) {
    const int64_t h = v.shape().back().bound() / 2;
    return slice_axis(v, last, which * h, h);
  };
  Values levels{pad(reshape(front, flat), low, high, Number::of_real(1))};
  while (levels.back().shape().back().bound() > 1) levels.push_back(half(levels.back(), 0) * half(levels.back(), 1));
  Value outside = full_like(levels.back(), 1);
  for (size_t k = levels.size() - 1; k-- > 0;)
    outside = concat({outside * half(levels[k], 1), outside * half(levels[k], 0)}, last);
  return permute(reshape(slice_axis(outside, last, 0, n), front.shape()), inverse);
}

Values reduce_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  switch (kernel::info(node.attrs().reducer).kind) {
    case ReducerKind::sum: return {unreduce(g[0], node, x[0])};
    case ReducerKind::product: return {unreduce(g[0], node, x[0]) * product_of_others(node, x[0])};
    case ReducerKind::extreme: {
      const auto [at, count] = extremes(node, x[0], y[0]);
      return {select(at, unreduce(divided(g[0], count), node, x[0]), zeros_like(x[0]))};
    }
    case ReducerKind::bitwise: break;
  }
  return {Value{}};
}

Values reduce_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const auto total = [&](const Value& v) { return sum(v, node.attrs().axes); };
  switch (kernel::info(node.attrs().reducer).kind) {
    case ReducerKind::sum: return {total(t[0])};
    case ReducerKind::product: return {total(t[0] * product_of_others(node, x[0]))};
    case ReducerKind::extreme: {
      const auto [at, count] = extremes(node, x[0], y[0]);
      return {divided(total(select(at, t[0], zeros_like(t[0]))), count)};
    }
    case ReducerKind::bitwise: break;
  }
  return {Value{}};
}

Values reduce_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {reduce(node.attrs().reducer, to_front(x[0], axes[0]), shifted(node.attrs().axes))};
}

/// A sum can be split along the axes that it sums; other reducers need their axes whole.
Factors reduce_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  Factors f{{factors_from(0, in[0].rank())}, {{}}};
  for (size_t k = 0; k < in[0].shape.size(); ++k) {
    if (!reduced(attrs, k)) f.outputs[0].push_back(static_cast<int>(k));
    else if (kernel::info(attrs.reducer).kind != ReducerKind::sum) f.inputs[0][k] = -1;
  }
  return f;
}

std::vector<HostTensor> reduce_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  const Dtype t = out[0].dtype;
  HostTensor result = host(out[0]);
  std::fill(result.data.begin(), result.data.end(), kernel::identity(attrs.reducer, t));
  const std::vector<int64_t> to = bounds(out[0].shape);
  each_index(bounds(in[0].type.shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where;
    for (size_t k = 0; k < index.size(); ++k)
      if (!reduced(attrs, k)) where.push_back(index[k]);
    Number& total = result.data[static_cast<size_t>(position(to, where))];
    const Number args[] = {total, in[0].data[static_cast<size_t>(at)]};
    total = kernel::reference(kernel::combine(attrs.reducer), t, args);  // floats stay double here
    if (!is_float(t)) total = kernel::round_to(total, t);
  });
  for (Number& n : result.data) n = kernel::round_to(n, t);
  return {result};
}

constexpr auto reduce_table = std::to_array<Row>({
    {Op::reduce, "reduce", 1, 1, reduce_shape, reduce_dtype, reduce_interval, reduce_vjp, reduce_jvp, reduce_vmap,
     reduce_factors, -1, reduce_reference, 4,
     "the elements along axes combined by a reducer; equal extremes share the derivative", "reducer, axes",
     "by the reducer"},
});
static_assert(complete(reduce_table, Op::reduce));

}  // namespace

std::span<const Row> reduce_rows() { return reduce_table; }

}  // namespace weft::graph
