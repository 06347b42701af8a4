// Sorting as calls.
//
// sort v              integers: axis. Results: v sorted along the axis, ascending and stable, NaN last, complex numbers
//                     by real, then by imaginary parts; and each element's original position (uint32).
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
  if (!extent.is_static())
    throw_invalid("sort",
                  fmt::format("axis {} of {} is symbolic: sort along an axis of fixed length", axis, to_string(v)));
  if (extent.bound() > int64_t{UINT32_MAX})
    throw_invalid("sort", fmt::format("axis {} of {} is longer than positions in uint32 reach", axis, to_string(v)));
  return {v, {v.shape, uint32}};
}

/// Returns v[…, order[…, i, …], …] along the axis.
Value along(const Value& v, const Value& order, size_t axis) {
  if (num_elements(v.shape()) == 0) return v;
  Values indices;
  std::vector<int64_t> axes;
  Shape ones;
  for (size_t k = 0; k < v.shape().size(); ++k) {
    if (!(v.shape()[k].is_static()))
      throw_invalid("sort", "the derivative over a symbolic axis is not supported: " + to_string(v.type()));
    indices.push_back(k == axis ? order : iota(order.shape(), static_cast<int>(k), uint32));
    axes.push_back(static_cast<int64_t>(k));
    ones.push_back(1);
  }
  return reshape(gather(v, indices, axes, ones), order.shape());
}

/// Each cotangent returns to its element's original position, by a gather through the inverse permutation, which is the
/// argsort of the permutation.
Values sort_vjp(const Node& node, ValueSpan, ValueSpan y, ValueSpan g) {
  if (!g[0]) return {Value{}};
  const size_t axis = sorted_axis(node.attrs());
  return {along(g[0], sort(y[1], static_cast<int>(axis)).order, axis)};
}

Values sort_jvp(const Node& node, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  return {along(t[0], y[1], sorted_axis(node.attrs())), Value{}};
}

Values sort_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Sorted s = sort(to_front(x[0], axes[0]), static_cast<int>(node.attrs().integers[0]) + 1);
  return {s.values, s.order};
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
  const std::vector<int64_t> shape = bounds(out[0].shape);
  int64_t stride = 1;
  for (size_t k = axis + 1; k < shape.size(); ++k) stride *= int64_t{shape[k]};
  each_index(shape, [&](const auto& index, int64_t first) {
    if (index[axis] != 0) return;
    const auto at = [&](int64_t k) { return static_cast<size_t>(first + k * stride); };
    std::vector<int64_t> positions(static_cast<size_t>(shape[axis]));
    std::iota(positions.begin(), positions.end(), 0);
    std::stable_sort(positions.begin(), positions.end(),
                     [&](int64_t a, int64_t b) { return before(in[0].data[at(a)], in[0].data[at(b)], out[0].dtype); });
    for (size_t k = 0; k < positions.size(); ++k) {
      values.data[at(static_cast<int64_t>(k))] = in[0].data[at(positions[k])];
      order.data[at(static_cast<int64_t>(k))] = Number::of_int(positions[k]);
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
    {"sort", 1, 1, 1, sort_types, sort_interval, sort_vjp, sort_jvp, sort_vmap, sort_factors, sort_reference, 0},
    {"searchsorted", 2, 2, 1, search_types, sort_interval, None::discrete, None::discrete, search_vmap, search_factors,
     search_reference, 0},
});
static_assert(complete_calls(sort_rules));

}  // namespace

Sorted sort(const Value& v, int axis) {
  Values out = call("sort", {v}, {axis});
  return {out[0], out[1]};
}

Value searchsorted(const Value& sorted, const Value& values, bool right) {
  return call("searchsorted", {sorted, values}, {right})[0];
}

std::span<const CallRule> sort_calls() { return sort_rules; }

}  // namespace weft::graph
