// Windows over an axis: what convolution, pooling and strided views are written with. A window reads each element where
// it lies; its transpose is the overlap-add, which is movement alone where windows do not overlap, else a short sum of
// shifted arrays.
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

// Up to this many shifted arrays are added one by one, in one kernel; more are reduced.
constexpr int64_t longest_sum = 16;

size_t axis_of(const Attrs& attrs) { return static_cast<size_t>(attrs.axes[0]); }

std::vector<Shape> window_shape(const Attrs& attrs, TypeSpan in) {
  const Shape& from = in[0].shape;
  if (attrs.axes.size() != 1 || attrs.axes[0] < 0 || attrs.axes[0] >= static_cast<int64_t>(from.size()))
    throw_invalid("window", fmt::format("axis {} is not an axis of {}", list(attrs.axes), to_string(in[0])));
  const size_t axis = axis_of(attrs);
  if (attrs.window.size() != 3 || attrs.window[0] < 1 || attrs.window[1] < 1 || attrs.window[2] < 1)
    throw_invalid("window", fmt::format("size, step and dilation must be at least 1, got {}", list(attrs.window)));
  if (!from[axis].is_static())
    throw_invalid("window",
                  fmt::format("axis {} of {} is symbolic: windows need a static length", axis, to_string(in[0])));
  const wide_t span = wide_t{attrs.window[0] - 1} * attrs.window[2] + 1;
  const int64_t n = from[axis].bound();
  if (span > n)
    throw_invalid("window", fmt::format("axis {} of {}: {} elements with dilation {} do not fit; pad the array first",
                                        axis, to_string(in[0]), attrs.window[0], attrs.window[2]));
  Shape out = from;
  out[axis] = (n - static_cast<int64_t>(span)) / attrs.window[1] + 1;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(attrs.window[0]));
  return {out};
}

/// Adds m rows that `axis` (extent count) is followed by, row k moved by k·shift positions: (count, m) → (count +
/// (m-1)·shift).
Value overlap_add(const Value& v, size_t axis, int64_t shift) {
  const int64_t count = v.shape()[axis], m = v.shape()[axis + 1], length = count + (m - 1) * shift;
  const size_t rank = v.shape().size();
  if (m <= longest_sum) {
    Value total;
    for (int64_t k = 0; k < m; ++k) {
      std::vector<int64_t> low(rank - 1, 0), high(rank - 1, 0);
      low[axis] = k * shift;
      high[axis] = length - count - low[axis];
      const Value part =
          pad(squeeze(slice_axis(v, static_cast<int>(axis) + 1, k, 1), {static_cast<int64_t>(axis) + 1}), low, high);
      total = total ? total + part : part;
    }
    return total;
  }
  // A shear: rows are padded by `shift` and the flattened array is cut into rows again, so that each row begins `shift`
  // positions after the one before.
  std::vector<int64_t> order(rank), low(rank, 0), high(rank, 0);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[axis + 1]);
  high[axis + 1] = length + shift - count;
  const Value rows = pad(permute(v, order), low, high);
  Shape flat = rows.shape(), cut = rows.shape();
  flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(axis));
  flat[axis] = m * (length + shift);
  cut[axis + 1] = length;
  const Value sheared = reshape(slice_axis(reshape(rows, flat), static_cast<int>(axis), 0, m * length), cut);
  return sum(sheared, {static_cast<int64_t>(axis)});
}

/// Cuts or zero-pads the axis to `length`.
Value fit_axis(const Value& v, size_t axis, int64_t length) {
  const int64_t n = v.shape()[axis];
  if (n >= length) return slice_axis(v, static_cast<int>(axis), 0, length);
  std::vector<int64_t> low(v.shape().size(), 0), high = low;
  high[axis] = length - n;
  return pad(v, low, high);
}

/// The transpose of window, (count, size) → n: element (o, k) is added at o·step + k·dilation. Windows are cut into
/// pieces of `step` elements; piece a of window o lands on piece o + a. So ⌈span / step⌉ shifted arrays are added, and
/// one if windows do not overlap.
Values window_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const size_t axis = axis_of(node.attrs());
  const int64_t size = node.attrs().window[0], count = g[0].shape()[axis], n = x[0].shape()[axis];
  const int64_t dilation = size == 1 ? 1 : node.attrs().window[2];
  const int64_t step = count == 1 ? (size - 1) * dilation + 1 : node.attrs().window[1];
  const int64_t common = std::gcd(step, dilation), s = step / common, d = dilation / common;
  Value v;
  if (s == 1) {
    v = overlap_add(g[0], axis, d);
  } else {
    const int64_t span = (size - 1) * d + 1, pieces = (span + s - 1) / s;
    Value broadcast_like = fit_axis(dilate(g[0], axis + 1, d), axis + 1, pieces * s);
    Shape cut = broadcast_like.shape(), joined = x[0].shape();
    cut[axis + 1] = pieces;
    cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(axis) + 2, Dim(s));
    joined[axis] = (count + pieces - 1) * s;
    v = reshape(overlap_add(reshape(broadcast_like, cut), axis, 1), joined);
  }
  return {fit_axis(dilate(v, axis, common), axis, n)};
}

Values window_jvp(const Node& node, ValueSpan, ValueSpan, ValueSpan t) {
  return {make(Op::window, {t[0]}, node.attrs())};
}

Values window_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  Attrs attrs = node.attrs();
  attrs.axes = shifted(attrs.axes);
  return {make(Op::window, {to_front(x[0], axes[0])}, std::move(attrs))};
}

Factors window_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  Factors f{{factors_from(0, in[0].rank())}, {factors_from(0, in[0].rank())}};
  f.inputs[0][axis_of(attrs)] = f.outputs[0][axis_of(attrs)] = -1;
  f.outputs[0].insert(f.outputs[0].begin() + static_cast<std::ptrdiff_t>(axis_of(attrs)) + 1, -1);
  return f;
}

std::vector<HostTensor> window_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  const std::vector<int64_t> from = bounds(in[0].type.shape);
  const size_t axis = axis_of(attrs);
  each_index(bounds(out[0].shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where = index;
    where[axis] = index[axis] * attrs.window[1] + index[axis + 1] * attrs.window[2];
    where.erase(where.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    result.data[static_cast<size_t>(at)] = in[0].data[static_cast<size_t>(position(from, where))];
  });
  return {result};
}

constexpr auto window_table = std::to_array<Row>({
    {Op::window, "window", 1, 1, window_shape, first_dtype, first_interval, window_vjp, window_jvp, window_vmap,
     window_factors, -1, window_reference, 0,
     "sliding windows along one axis, their elements as a new axis; its derivative adds where they overlap",
     "axes, window"},
});
static_assert(complete(window_table, Op::window));

}  // namespace

std::span<const Row> window_rows() { return window_table; }

}  // namespace weft::graph
