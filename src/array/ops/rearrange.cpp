// weft/ops/shape.h: flips, rolls, padding, splits and diagonals, as movement operators.
#include <algorithm>
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

array one_slice(const array& a, int64_t axis, int64_t start, int64_t size) {
  return array(graph::slice_axis(a.value(), static_cast<int>(axis), start, size));
}

array roll_axis(const array& a, int64_t shift, int64_t axis) {
  const int64_t n = a.shape()[static_cast<size_t>(axis)];
  if (n == 0) return a;
  const int64_t from = ((-shift) % n + n) % n;  // index of the element that comes first
  if (from == 0) return a;
  return array(graph::concat({one_slice(a, axis, from, n - from).value(), one_slice(a, axis, 0, from).value()},
                             static_cast<int>(axis)));
}

// Pads with a scalar. A constant is an attribute of the pad; any other value is selected by position.
array pad_constant(const array& a, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
                   const array& pad_value) {
  if (pad_value.ndim() != 0) throw_invalid("pad", "the padding must be a scalar, got " + describe(pad_value));
  const graph::Value value = detail::to_dtype(pad_value.value(), a.dtype());
  if (value.node->op() == graph::Op::constant)
    return array(graph::pad(a.value(), low, high, value.node->attrs().number));
  const graph::Value inside = graph::pad(graph::full(a.shape(), bool_, Number::of_int(1)), low, high);
  return array(graph::select(inside, graph::pad(a.value(), low, high), graph::broadcast(value, inside.shape())));
}

array pad_edge(const array& a, int64_t axis, int64_t low, int64_t high) {
  const int64_t n = a.shape()[static_cast<size_t>(axis)];
  if (n == 0)
    throw_invalid("pad", "the empty axis " + std::to_string(axis) + " of " + describe(a) + " has no edge to repeat");
  const auto repeated = [&](int64_t from, int64_t times) {
    Shape shape = a.shape();
    shape[static_cast<size_t>(axis)] = times;
    return graph::broadcast(one_slice(a, axis, from, 1).value(), shape);
  };
  graph::Values parts;
  if (low > 0) parts.push_back(repeated(0, low));
  parts.push_back(a.value());
  if (high > 0) parts.push_back(repeated(n - 1, high));
  return array(graph::concat(parts, static_cast<int>(axis)));
}

// Pads one axis with its own elements, mirrored as often as the widths need; `skip` 1 leaves the edge out of the
// reflection, 0 repeats it.
array pad_mirrored(const array& a, int64_t axis, int64_t low, int64_t high, int64_t skip) {
  const int64_t n = a.shape()[static_cast<size_t>(axis)], most = n - skip;
  const int at = static_cast<int>(axis);
  if (n == 0)
    throw_invalid("pad", "the empty axis " + std::to_string(axis) + " of " + describe(a) + " has nothing to mirror");
  if (most == 0) return pad_edge(a, axis, low, high);
  if (low <= most && high <= most) {
    graph::Values parts;
    if (low > 0) parts.push_back(flip(one_slice(a, axis, skip, low), at).value());
    parts.push_back(a.value());
    if (high > 0) parts.push_back(flip(one_slice(a, axis, n - skip - high, high), at).value());
    return array(graph::concat(parts, at));
  }
  // The result is a part of a periodic sequence: the axis, then the axis reversed without the skipped edges. As many
  // periods are built as the result covers.
  graph::Values way{a.value()};
  if (n > 2 * skip) way.push_back(flip(one_slice(a, axis, skip, n - 2 * skip), at).value());
  const graph::Value period = graph::concat(way, at);
  const int64_t length = 2 * most, first = (length - low % length) % length,
                times = (first + low + n + high + length - 1) / length;
  Shape wide = period.shape(), flat = period.shape();
  wide.insert(wide.begin() + axis, Dim(times));
  flat[static_cast<size_t>(axis)] = times * length;
  const graph::Value repeated = graph::reshape(graph::broadcast(graph::expand_dims(period, {axis}), wide), flat);
  return one_slice(array(repeated), axis, first, low + n + high);
}

std::vector<array> each(const std::vector<array>& arrays, array (*f)(const array&, StreamOrDevice),
                        const StreamOrDevice& s) {
  std::vector<array> result;
  for (const array& a : arrays) result.push_back(f(a, s));
  return result;
}

}  // namespace

array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  const detail::OnStream on_stream("flip", s);
  std::vector<int64_t> start(a.ndim(), 0), step(a.ndim(), 1);
  for (int64_t axis : detail::sorted_axes("flip", axes, a.ndim())) {
    const auto k = static_cast<size_t>(axis);
    if (a.shape()[k] == 0 || a.shape()[k] == 1) continue;
    start[k] = int64_t{a.shape()[k]} - 1;
    step[k] = -1;
  }
  return array(graph::slice(a.value(), start, a.shape(), step));
}
array flip(const array& a, int axis, StreamOrDevice s) { return flip(a, std::vector<int>{axis}, s); }
array flip(const array& a, StreamOrDevice s) { return flip(a, detail::all_axes(a), s); }

array roll(const array& a, const Shape& shift, const std::vector<int>& axes, StreamOrDevice s) {
  const detail::OnStream on_stream("roll", s);
  if (shift.size() != axes.size() && shift.size() != 1)
    throw_invalid("roll", std::to_string(shift.size()) + " shifts for " + std::to_string(axes.size()) +
                              " axes: give one for each, or one for all");
  array result = a;
  for (size_t k = 0; k < axes.size(); ++k)
    result = roll_axis(result, shift[shift.size() == 1 ? 0 : k], detail::one_axis("roll", axes[k], a.ndim()));
  return result;
}
array roll(const array& a, const Shape& shift, StreamOrDevice s) {
  const detail::OnStream on_stream("roll", s);
  int64_t total = 0;
  for (const Dim& d : shift) total += int64_t{d};
  return reshape(roll_axis(reshape(a, {-1}, s), total, 0), a.shape(), s);
}
array roll(const array& a, int shift, StreamOrDevice s) { return roll(a, Shape{shift}, s); }
array roll(const array& a, int shift, int axis, StreamOrDevice s) {
  return roll(a, Shape{shift}, std::vector<int>{axis}, s);
}
array roll(const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s) {
  return roll(a, Shape{shift}, axes, s);
}
array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s) {
  int64_t total = 0;  // several shifts along one axis add up
  for (const Dim& d : shift) total += int64_t{d};
  return roll(a, Shape{total}, std::vector<int>{axis}, s);
}

array atleast_1d(const array& a, StreamOrDevice s) { return a.ndim() == 0 ? reshape(a, {1}, s) : a; }
array atleast_2d(const array& a, StreamOrDevice s) { return a.ndim() >= 2 ? a : expand_dims(atleast_1d(a, s), 0, s); }
array atleast_3d(const array& a, StreamOrDevice s) { return a.ndim() >= 3 ? a : expand_dims(atleast_2d(a, s), 2, s); }
std::vector<array> atleast_1d(const std::vector<array>& a, StreamOrDevice s) { return each(a, atleast_1d, s); }
std::vector<array> atleast_2d(const std::vector<array>& a, StreamOrDevice s) { return each(a, atleast_2d, s); }
std::vector<array> atleast_3d(const std::vector<array>& a, StreamOrDevice s) { return each(a, atleast_3d, s); }

std::vector<array> unstack(const array& a, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("unstack", s);
  const int64_t at = detail::one_axis("unstack", axis, a.ndim()), n = a.shape()[static_cast<size_t>(at)];
  std::vector<array> parts;
  for (int64_t k = 0; k < n; ++k) parts.push_back(squeeze(one_slice(a, at, k, 1), static_cast<int>(at), s));
  return parts;
}
std::vector<array> unstack(const array& a, StreamOrDevice s) { return unstack(a, 0, s); }

// With rows and columns flattened, a diagonal is every (columns + 1)-th element.
array diagonal(const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  const detail::OnStream on_stream("diagonal", s);
  if (a.ndim() < 2) throw_invalid("diagonal", "the array must have at least two dimensions, got " + describe(a));
  const int64_t first = detail::one_axis("diagonal", axis1, a.ndim());
  const int64_t second = detail::one_axis("diagonal", axis2, a.ndim());
  if (first == second)
    throw_invalid("diagonal", "the two axes must be different, got " + std::to_string(axis1) + " twice");
  std::vector<int64_t> order;
  for (int64_t k = 0; k < static_cast<int64_t>(a.ndim()); ++k)
    if (k != first && k != second) order.push_back(k);
  order.insert(order.end(), {first, second});
  const graph::Value planes = graph::permute(a.value(), order);
  const int64_t rows = a.shape()[static_cast<size_t>(first)], columns = a.shape()[static_cast<size_t>(second)];
  const int64_t row = std::max(-offset, 0), column = std::max(offset, 0);
  const int64_t n = std::max<int64_t>(std::min(rows - row, columns - column), 0);
  Shape flat(planes.shape().begin(), planes.shape().end() - 2);
  flat.push_back(rows * columns);
  std::vector<int64_t> start(flat.size(), 0), step(flat.size(), 1);
  Shape sizes = flat;
  sizes.back() = n;
  start.back() = n == 0 ? 0 : row * columns + column;
  step.back() = columns + 1;
  return array(graph::slice(graph::reshape(planes, flat), start, sizes, step));
}

array diag(const array& a, int k, StreamOrDevice s) {
  const detail::OnStream on_stream("diag", s);
  if (a.ndim() == 2) return diagonal(a, k, 0, 1, s);
  if (a.ndim() != 1) throw_invalid("diag", "a vector or a matrix is needed, got " + describe(a));
  const int extra = std::abs(k), n = static_cast<int>(a.size()) + extra;
  array values(graph::pad(a.value(), {0}, {extra}));  // indexed by row above the main diagonal, by column below it
  values = k >= 0 ? reshape(values, {n, 1}, s) : reshape(values, {1, n}, s);
  return where(eye(n, n, k, bool_, s), values, zeros_like(values, s), s);
}

array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s) {
  return sum(astype(diagonal(a, offset, axis1, axis2, s), dtype, s), -1, false, s);
}
array trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  return trace(a, offset, axis1, axis2, a.dtype(), s);
}
array trace(const array& a, StreamOrDevice s) { return trace(a, 0, 0, 1, s); }

array pad(const array& a, const std::vector<int>& axes, const Shape& low_pad_size, const Shape& high_pad_size,
          const array& pad_value, const std::string& mode, StreamOrDevice s) {
  const detail::OnStream on_stream("pad", s);
  if (axes.size() != low_pad_size.size() || axes.size() != high_pad_size.size())
    throw_invalid("pad", "one width before and one after are needed for each of " + std::to_string(axes.size()) +
                             " axes, got " + to_string(low_pad_size) + " and " + to_string(high_pad_size));
  detail::sorted_axes("pad", axes, a.ndim());  // names each at most once
  std::vector<int64_t> low(a.ndim(), 0), high(a.ndim(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto at = static_cast<size_t>(detail::one_axis("pad", axes[k], a.ndim()));
    low[at] = low_pad_size[k];
    high[at] = high_pad_size[k];
    if (low[at] < 0 || high[at] < 0)
      throw_invalid("pad", "pad widths must not be negative, got " + to_string(low_pad_size) + " and " +
                               to_string(high_pad_size));
  }
  if (mode == "constant") return pad_constant(a, low, high, pad_value);
  if (mode != "edge" && mode != "reflect" && mode != "symmetric")
    throw_invalid("pad", "mode is \"constant\", \"edge\", \"reflect\" or \"symmetric\", got \"" + mode + "\"");
  array result = a;
  for (size_t k = 0; k < a.ndim(); ++k) {
    const auto axis = static_cast<int64_t>(k);
    if (low[k] == 0 && high[k] == 0) continue;
    result = mode == "edge" ? pad_edge(result, axis, low[k], high[k])
                            : pad_mirrored(result, axis, low[k], high[k], mode == "reflect" ? 1 : 0);
  }
  return result;
}

array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const array& pad_value,
          const std::string& mode, StreamOrDevice s) {
  if (pad_width.size() != a.ndim())
    throw_invalid("pad", std::to_string(pad_width.size()) + " pad widths given for " + describe(a) +
                             ": one pair for each axis is needed");
  Shape low, high;
  for (const auto& [before, after] : pad_width) {
    low.emplace_back(before);
    high.emplace_back(after);
  }
  return pad(a, detail::all_axes(a), low, high, pad_value, mode, s);
}
array pad(const array& a, const std::pair<int, int>& pad_width, const array& pad_value, const std::string& mode,
          StreamOrDevice s) {
  return pad(a, std::vector<std::pair<int, int>>(a.ndim(), pad_width), pad_value, mode, s);
}
array pad(const array& a, int pad_width, const array& pad_value, const std::string& mode, StreamOrDevice s) {
  return pad(a, std::pair<int, int>{pad_width, pad_width}, pad_value, mode, s);
}

}  // namespace weft
