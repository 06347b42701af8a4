// Reduce: axes reduced by a reducer (kernel/reducer.h). Reads attrs.axes (ascending) and attrs.reducer. Inputs and
// results are the components of the reducer's state: argmax takes values with their indices, and gives the largest
// value with its index. Reductions of parts of an axis are therefore reduced again by the same operator.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"
#include "kernel/states.h"

namespace weft::graph {
namespace {

using kernel::Reducer;
using kernel::ReducerKind;

bool reduced(const Attrs& attrs, size_t axis) {
  return std::binary_search(attrs.axes.begin(), attrs.axes.end(), static_cast<int64_t>(axis));
}

std::vector<Shape> reduce_shape(const Attrs& attrs, TypeSpan in) {
  if (in.size() != kernel::components_of(attrs.reducer))
    throw_invalid(name(attrs.reducer), fmt::format("takes {} arrays, the components of its state, got {}",
                                                   kernel::components_of(attrs.reducer), list(in)));
  for (const Type& t : in)
    if (t.shape != in[0].shape) throw_invalid(name(attrs.reducer), "expected arrays of one shape, got " + list(in));
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
  return std::vector<Shape>(in.size(), out);
}

std::vector<Dtype> reduce_dtype(const Attrs& attrs, TypeSpan in) {
  const Dtype t = in[0].dtype;
  const kernel::ReducerInfo& reducer = kernel::info(attrs.reducer);
  const bool several = reducer.components.size() > 1;
  if (takes(attrs.reducer, several ? t : real_of(t))) {
    std::vector<Dtype> out;
    for (size_t k = 0; k < std::min(in.size(), reducer.components.size()); ++k) {
      out.push_back(kernel::component_dtype(attrs.reducer, k, t));
      if (in[k].dtype != out.back())
        throw_invalid(reducer.name, fmt::format("expected {} for component {} of its state, got {}: cast it first",
                                                dtype_name(out.back()), k, list(in)));
    }
    return out;
  }
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

/// Returns v of the reduced shape where an element is the one that argmax or argmin found, elsewhere 0.
Value at_index(const Value& v, const Node& node, ValueSpan x, const Value& index) {
  return select(binary(Op::eq, x[1], unreduce(index, node, x[1])), v, zeros_like(v));
}

/// Of a maximum and a sum Σ v·exp(x - maximum): the terms' exponentials. An infinite maximum counts as 0.
Value scales(const Node& node, const Value& x, const Value& maximum) {
  const Value infinite = binary(Op::eq, unary(Op::abs, maximum), full_like(maximum, INFINITY));
  return exp(x - unreduce(select(infinite, zeros_like(maximum), maximum), node, x));
}

/// Each maximum moves with the elements that equal it, and a sum by -sum as its maximum moves by 1.
Values scaled_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  const Value scale = scales(node, x[0], y[0]);
  Values out(x.size());
  const auto add = [](Value& total, const Value& v) { total = total ? total + v : v; };
  Value of_maximum = g[0];
  for (size_t k = 1; k < x.size(); ++k) {
    if (!g[k]) continue;
    out[k] = unreduce(g[k], node, x[0]) * scale;
    add(out[0], out[k] * x[k]);
    const Value moved = g[k] * y[k];
    of_maximum = (of_maximum ? of_maximum : zeros_like(moved)) - moved;
  }
  const auto [at, count] = extremes(node, x[0], y[0]);
  add(out[0], select(at, unreduce(divided(of_maximum, count), node, x[0]), zeros_like(x[0])));
  return out;
}

Values scaled_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const auto total = [&](const Value& v) { return sum(v, node.attrs().axes); };
  const Value scale = scales(node, x[0], y[0]);
  Values out(x.size());
  if (t[0]) {
    const auto [at, count] = extremes(node, x[0], y[0]);
    out[0] = divided(total(select(at, t[0], zeros_like(t[0]))), count);
  }
  for (size_t k = 1; k < x.size(); ++k) {
    if (t[0]) out[k] = total(t[0] * x[k] * scale) - out[0] * y[k];
    if (t[k]) out[k] = out[k] ? out[k] + total(t[k] * scale) : total(t[k] * scale);
  }
  return out;
}

/// How the squares of a state's differences move with an element's sum, count and sum of differences. The other results
/// move with their own component alone: the distances from the mean, times the counts, add up to 0.
struct MomentSlopes {
  Value by_sum, by_count, by_difference;
};

/// With count n, mean m, differences r and distance d from the mean M of all N, whose differences are R: Σ d (2r + n d)
/// has the slopes a/n - 2R/N, d² - m a/n + 2R M/N and 2d, where a = 2 (r + n d).
MomentSlopes moment_slopes(const Node& node, ValueSpan x, ValueSpan y) {
  const auto counted = [](const Value& n) { return binary(Op::max, n, full_like(n, 1)); };
  const Value count = counted(x[1]), all = counted(y[1]), mean = y[0] / all;
  const Value own = x[0] / count, distance = own - unreduce(mean, node, x[0]);
  const Value each = (x[2] + x[1] * distance) * 2.0 / count, left = y[2] * 2.0 / all;
  return {each - unreduce(left, node, x[0]), square(distance) - own * each + unreduce(left * mean, node, x[0]),
          distance * 2.0};
}

Values moments_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  Values out;
  for (const Value& v : g) out.push_back(v ? unreduce(v, node, x[0]) : Value{});
  if (!g[3]) return out;
  const auto [by_sum, by_count, by_difference] = moment_slopes(node, x, y);
  const Value squares = out[3];
  const auto add = [&](size_t k, const Value& slope) { out[k] = out[k] ? out[k] + squares * slope : squares * slope; };
  add(0, by_sum), add(1, by_count), add(2, by_difference);
  return out;
}

Values moments_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  Values out;
  for (const Value& v : t) out.push_back(v ? sum(v, node.attrs().axes) : Value{});
  const auto [by_sum, by_count, by_difference] = moment_slopes(node, x, y);
  const Value slopes[] = {by_sum, by_count, by_difference};
  for (size_t k = 0; k < std::size(slopes); ++k)
    if (t[k]) {
      const Value moved = sum(t[k] * slopes[k], node.attrs().axes);
      out[3] = out[3] ? out[3] + moved : moved;
    }
  return out;
}

Values reduce_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  switch (kernel::info(node.attrs().reducer).kind) {
    case ReducerKind::sum: return {unreduce(g[0], node, x[0])};
    case ReducerKind::product: return {unreduce(g[0], node, x[0]) * product_of_others(node, x[0])};
    case ReducerKind::extreme: {
      const auto [at, count] = extremes(node, x[0], y[0]);
      return {select(at, unreduce(divided(g[0], count), node, x[0]), zeros_like(x[0]))};
    }
    case ReducerKind::located: return {g[0] ? at_index(unreduce(g[0], node, x[0]), node, x, y[1]) : Value{}, Value{}};
    case ReducerKind::scaled: return scaled_vjp(node, x, y, g);
    case ReducerKind::moments: return moments_vjp(node, x, y, g);
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
    case ReducerKind::located: return {t[0] ? total(at_index(t[0], node, x, y[1])) : Value{}, Value{}};
    case ReducerKind::scaled: return scaled_jvp(node, x, y, t);
    case ReducerKind::moments: return moments_jvp(node, x, y, t);
    case ReducerKind::bitwise: break;
  }
  return {Value{}};
}

Values reduce_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return reduce_state(node.attrs().reducer, all_batched(x, axes), shifted(node.attrs().axes));
}

/// A sum can be split along the axes that it sums; other reducers need their axes whole.
Factors reduce_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  std::vector<int> input = factors_from(0, in[0].rank()), output;
  for (size_t k = 0; k < in[0].shape.size(); ++k) {
    if (!reduced(attrs, k)) output.push_back(static_cast<int>(k));
    else if (kernel::info(attrs.reducer).kind != ReducerKind::sum) input[k] = -1;
  }
  return {std::vector<std::vector<int>>(in.size(), input), std::vector<std::vector<int>>(in.size(), output)};
}

std::vector<HostTensor> reduce_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results;
  std::vector<Dtype> dtypes;
  for (const Type& type : out) {
    HostTensor& result = results.emplace_back(host(type));
    dtypes.push_back(type.dtype);
    std::fill(result.data.begin(), result.data.end(), kernel::identity(attrs.reducer, type.dtype, results.size() - 1));
  }
  const std::vector<int64_t> to = bounds(out[0].shape);
  each_index(bounds(in[0].type.shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where;
    for (size_t k = 0; k < index.size(); ++k)
      if (!reduced(attrs, k)) where.push_back(index[k]);
    const auto result = static_cast<size_t>(position(to, where));
    std::vector<Number> total, element;
    for (size_t k = 0; k < results.size(); ++k) {
      total.push_back(results[k].data[result]);
      element.push_back(in[k].data[static_cast<size_t>(at)]);
    }
    total = kernel::combine_reference(attrs.reducer, dtypes, total, element);
    for (size_t k = 0; k < results.size(); ++k) results[k].data[result] = total[k];
  });
  for (HostTensor& result : results)
    for (Number& n : result.data) n = kernel::round_to(n, result.type.dtype);
  return results;
}

constexpr auto reduce_table = std::to_array<Row>({
    {Op::reduce, "reduce", 1, kernel::most_components, reduce_shape, reduce_dtype, reduce_interval, reduce_vjp,
     reduce_jvp, reduce_vmap, reduce_factors, -1, reduce_reference, 4,
     "the elements along axes combined by a reducer, inputs and results the components of its state; equal extremes "
     "share the derivative",
     "reducer, axes", "by the reducer"},
});
static_assert(complete(reduce_table, Op::reduce));

}  // namespace

std::span<const Row> reduce_rows() { return reduce_table; }

}  // namespace weft::graph
