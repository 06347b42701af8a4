// Sorting as calls.
//
// sort v              integers: axis. Results: v sorted along the axis, ascending and stable, NaN last, complex numbers
//                     by real, then by imaginary parts; and each element's original position (uint32).
//                     integers: axis, first, count. The same positions of both results alone.
// searchsorted a, v   integers: 1 for the position after equals, 0 for the position before. a [b…, n] is sorted along
//                     its last axis; v [b…, m…] has its dtype. Result, in v's shape: how many elements of its row come
//                     before each value (uint32).
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/calls/call_rules.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

size_t sorted_axis(const Attrs& attrs) { return static_cast<size_t>(attrs.integers[0]); }

std::vector<Type> sort_types(const Attrs& attrs, TypeSpan in) {
  const Type& v = in[0];
  const int64_t axis = attrs.integers[0];
  if (axis < 0 || axis >= v.rank()) throw_invalid("sort", fmt::format("axis {} is outside {}", axis, to_string(v)));
  const Dim extent = v.shape[static_cast<size_t>(axis)];
  if (extent.bound() > int64_t{UINT32_MAX})
    throw_invalid("sort", fmt::format("axis {} of {} is longer than positions in uint32 reach", axis, to_string(v)));
  const SortWindow window = sort_window(attrs.integers, extent.bound());
  if (window.first < 0 || window.count < 0 || window.first > extent.bound() - window.count)
    throw_invalid("sort", fmt::format("positions {} to {} are outside axis {} of {}", window.first,
                                      window.first + window.count, axis, to_string(v)));
  Shape shape = v.shape;
  if (extent.is_static()) shape[window.axis] = window.count;
  else if (window.count != extent.bound())
    throw_invalid("sort", fmt::format("axis {} of {} is symbolic and can only be sorted whole", axis, to_string(v)));
  return {{shape, v.dtype}, {shape, uint32}};
}

/// The indices of v[…, order[…, i, …], …]: one array for each axis of v.
struct Positions {
  Values indices;
  std::vector<int64_t> axes;
  Shape ones;
};

Positions positions_along(const Type& v, const Value& order, size_t axis) {
  Positions p;
  for (size_t k = 0; k < v.shape.size(); ++k) {
    if (!(v.shape[k].is_static()))
      throw_invalid("sort", "the derivative over a symbolic axis is not supported: " + to_string(v));
    p.indices.push_back(k == axis ? order : iota(order.shape(), static_cast<int>(k), uint32));
    p.axes.push_back(static_cast<int64_t>(k));
    p.ones.push_back(1);
  }
  return p;
}

/// Returns v[…, order[…, i, …], …] along the axis.
Value along(const Value& v, const Value& order, size_t axis) {
  if (num_elements(order.shape()) == 0) return full(order.shape(), v.type().dtype, Number{});
  const Positions p = positions_along(v.type(), order, axis);
  return reshape(gather(v, p.indices, p.axes, p.ones), order.shape());
}

/// Each cotangent returns to its element's original position: by a gather through the inverse permutation, which is the
/// argsort of the permutation; of a window, by a scatter.
Values sort_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  if (!g[0]) return {Value{}};
  const size_t axis = sorted_axis(node.attrs());
  if (y[1].shape() == x[0].shape()) return {along(g[0], sort(y[1], static_cast<int>(axis)).order, axis)};
  const Value nothing = zeros_like(x[0]);
  if (num_elements(y[1].shape()) == 0) return {nothing};
  const Positions p = positions_along(x[0].type(), y[1], axis);
  Shape updates = y[1].shape();
  updates.insert(updates.end(), p.ones.begin(), p.ones.end());
  return {scatter(ScatterMode::add, nothing, p.indices, reshape(g[0], updates), p.axes)};
}

Values sort_jvp(const Node& node, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  return {along(t[0], y[1], sorted_axis(node.attrs())), Value{}};
}

Values sort_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  std::vector<int64_t> integers = node.attrs().integers;
  ++integers[0];
  return call("sort", {to_front(x[0], axes[0])}, std::move(integers));
}

Factors sort_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  std::vector<int> factors = factors_from(0, in[0].rank());
  factors[sorted_axis(attrs)] = -1;
  return {{factors}, {factors, factors}};
}

/// The values' own interval, and positions below the axis's length: the rule knows the result by its dtype only, so
/// that it bounds neither.
Interval sort_interval(const Attrs&, std::span<const Interval>, const Type& result) { return range_of(result.dtype); }

bool before(const Number& a, const Number& b, Dtype t) {
  if (is_float(t)) return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f;
  return t == uint64 ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
}

std::vector<HostTensor> sort_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor values = host(out[0]), order = host(out[1]);
  const size_t axis = sorted_axis(attrs);
  const std::vector<int64_t> shape = bounds(in[0].type.shape);
  const SortWindow window = sort_window(attrs.integers, shape[axis]);
  if (window.count == 0) return {values, order};
  int64_t stride = 1;
  for (size_t k = axis + 1; k < shape.size(); ++k) stride *= int64_t{shape[k]};
  each_index(shape, [&](const auto& index, int64_t first) {
    if (index[axis] != 0) return;
    const auto at = [&](int64_t k) { return static_cast<size_t>(first + k * stride); };
    // A row of the results begins behind as many whole rows as one of the operand.
    const int64_t outer = first / (stride * shape[axis]);
    const int64_t begin = first - outer * stride * (shape[axis] - window.count);
    std::vector<int64_t> positions(static_cast<size_t>(shape[axis]));
    std::iota(positions.begin(), positions.end(), 0);
    std::stable_sort(positions.begin(), positions.end(),
                     [&](int64_t a, int64_t b) { return before(in[0].data[at(a)], in[0].data[at(b)], out[0].dtype); });
    for (int64_t k = 0; k < window.count; ++k) {
      const int64_t position = positions[static_cast<size_t>(window.first + k)];
      const auto to = static_cast<size_t>(begin + k * stride);
      values.data[to] = in[0].data[at(position)];
      order.data[to] = Number::of_int(position);
    }
  });
  return {values, order};
}

std::vector<Type> search_types(const Attrs&, TypeSpan in) {
  const Type &a = in[0], &v = in[1];
  const bool batched =
      a.rank() >= 1 && v.rank() >= a.rank() - 1 && std::equal(a.shape.begin(), a.shape.end() - 1, v.shape.begin());
  if (!batched)
    throw_invalid("searchsorted",
                  fmt::format("values {} must begin with the axes of {} but the last", to_string(v), to_string(a)));
  if (a.dtype != v.dtype)
    throw_invalid("searchsorted", fmt::format("{} must have one dtype: cast one of them", list(in)));
  if (!is_float(a.dtype) && !is_integer(a.dtype) && a.dtype != bool_)
    throw_invalid("searchsorted", "values of " + to_string(a) + " have no order");
  if (!a.shape.back().is_static())
    throw_invalid("searchsorted", "the sorted axis of " + to_string(a) + " is symbolic: it must have a fixed length");
  if (a.shape.back().bound() > int64_t{UINT32_MAX})
    throw_invalid("searchsorted", "the sorted axis of " + to_string(a) + " is longer than positions in uint32 reach");
  return {{v.shape, uint32}};
}

Values search_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Values all = all_batched(x, axes);
  return {searchsorted(all[0], all[1], node.attrs().integers[0] != 0)};
}

Factors search_factors(const Attrs&, TypeSpan in, TypeSpan) {
  std::vector<int> values = factors_from(0, in[1].rank()), sorted = factors_from(0, in[0].rank());
  sorted.back() = -1;
  return {{sorted, values}, {values}};
}

std::vector<HostTensor> search_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  const int64_t n = in[0].type.shape.back().bound(), rows = n == 0 ? 0 : static_cast<int64_t>(in[0].data.size()) / n;
  const int64_t per_row = rows == 0 ? 0 : static_cast<int64_t>(in[1].data.size()) / rows;
  for (int64_t k = 0; k < rows * per_row; ++k) {
    const Number v = in[1].data[static_cast<size_t>(k)];
    int64_t position = 0;
    for (int64_t j = 0; j < n; ++j) {
      const Number a = in[0].data[static_cast<size_t>(k / per_row * n + j)];
      position += attrs.integers[0] ? !before(v, a, in[0].type.dtype) : before(a, v, in[0].type.dtype);
    }
    result.data[static_cast<size_t>(k)] = Number::of_int(position);
  }
  return {result};
}

constexpr auto sort_rules = std::to_array<CallRule>({
    {"sort", 1, 1, 1, sort_types, sort_interval, sort_vjp, sort_jvp, sort_vmap, sort_factors, sort_reference, 0, 2},
    {"searchsorted", 2, 2, 1, search_types, sort_interval, None::discrete, None::discrete, search_vmap, search_factors,
     search_reference, 0},
});
static_assert(complete_calls(sort_rules));

}  // namespace

SortWindow sort_window(std::span<const int64_t> integers, int64_t extent) {
  const auto axis = static_cast<size_t>(integers[0]);
  return integers.size() == 1 ? SortWindow{axis, 0, extent} : SortWindow{axis, integers[1], integers[2]};
}

Sorted sort(const Value& v, int axis) {
  Values out = call("sort", {v}, {axis});
  return {out[0], out[1]};
}

Value searchsorted(const Value& sorted, const Value& values, bool right) {
  return call("searchsorted", {sorted, values}, {right})[0];
}

std::span<const CallRule> sort_calls() { return sort_rules; }

}  // namespace weft::graph
