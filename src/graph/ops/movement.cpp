// Movement: reshape, permute, broadcast, slice, pad, concat. Linear in their inputs, and each other's transposes.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

// ---- shapes ----

/// The products of static extents between symbolic axes, and the symbols in order.
struct Runs {
  std::vector<int64_t> products{1};
  std::vector<const Symbol*> symbols;
};

Runs runs_of(const Shape& shape) {
  Runs runs;
  for (const Dim& d : shape) {
    if (d.is_static()) {
      runs.products.back() *= d.bound();
    } else {
      runs.symbols.push_back(d.symbol());
      runs.products.push_back(1);
    }
  }
  return runs;
}

std::vector<Shape> reshape_shape(const Attrs& attrs, TypeSpan in) {
  const Runs from = runs_of(in[0].shape), to = runs_of(attrs.shape);
  if (from.symbols != to.symbols)
    throw_invalid("reshape", fmt::format("{} to {}: a symbolic axis must stay an axis of its own, in its place",
                                         to_string(in[0]), weft::to_string(attrs.shape)));
  if (from.products == to.products) return {attrs.shape};
  if (from.symbols.empty())
    throw_invalid("reshape", fmt::format("{} has {} elements, {} would have {}", to_string(in[0]), from.products[0],
                                         weft::to_string(attrs.shape), to.products[0]));
  throw_invalid("reshape",
                fmt::format("{} to {}: the axes before and after a symbolic axis must keep their number of elements",
                            to_string(in[0]), weft::to_string(attrs.shape)));
}

std::vector<Shape> permute_shape(const Attrs& attrs, TypeSpan in) {
  std::vector<int64_t> sorted = attrs.axes, every(in[0].shape.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(every.begin(), every.end(), 0);
  if (sorted != every)
    throw_invalid("permute",
                  fmt::format("axes {} are not an order of the axes of {}", list(attrs.axes), to_string(in[0])));
  Shape out;
  for (int64_t axis : attrs.axes) out.push_back(in[0].shape[static_cast<size_t>(axis)]);
  return {out};
}

std::vector<Shape> broadcast_shape(const Attrs& attrs, TypeSpan in) {
  const Shape& from = in[0].shape;
  bool fits = from.size() <= attrs.shape.size();
  for (size_t k = 0; fits && k < from.size(); ++k) {
    const Dim& d = from[from.size() - 1 - k];
    fits = d == 1 || d == attrs.shape[attrs.shape.size() - 1 - k];
  }
  if (!fits)
    throw_invalid("broadcast", fmt::format("{} does not broadcast to {}: only axes of extent 1 repeat",
                                           to_string(in[0]), weft::to_string(attrs.shape)));
  return std::vector<Shape>(1, attrs.shape);
}

/// Returns whether a slice takes the whole of axis k.
bool whole_axis(const Attrs& attrs, const Shape& from, size_t k) {
  return attrs.start[k] == 0 && attrs.step[k] == 1 && attrs.shape[k] == from[k];
}

std::vector<Shape> slice_shape(const Attrs& attrs, TypeSpan in) {
  const Shape& from = in[0].shape;
  const size_t rank = from.size();
  if (attrs.start.size() != rank || attrs.step.size() != rank || attrs.shape.size() != rank)
    throw_invalid("slice", fmt::format("start, size and step are needed for each axis of {}", to_string(in[0])));
  for (size_t k = 0; k < rank; ++k) {
    if (whole_axis(attrs, from, k)) continue;
    if (!from[k].is_static())
      throw_invalid("slice", fmt::format("axis {} of {} is symbolic and can only be kept whole", k, to_string(in[0])));
    const int64_t n = from[k].bound(), size = attrs.shape[k].bound(), start = attrs.start[k], step = attrs.step[k];
    const wide_t last = wide_t{start} + wide_t{step} * (size - 1);
    const bool fits =
        size == 0 ? start >= 0 && start <= n : size > 0 && start >= 0 && start < n && last >= 0 && last < n;
    if (step == 0 || !fits)
      throw_invalid("slice", fmt::format("axis {} of {}: start {}, size {}, step {} leaves the array", k,
                                         to_string(in[0]), start, size, step));
  }
  return {attrs.shape};
}

std::vector<Shape> pad_shape(const Attrs& attrs, TypeSpan in) {
  Shape out = in[0].shape;
  if (attrs.low.size() != out.size() || attrs.high.size() != out.size())
    throw_invalid("pad", fmt::format("amounts before and after are needed for each axis of {}", to_string(in[0])));
  for (size_t k = 0; k < out.size(); ++k) {
    const int64_t low = attrs.low[k], high = attrs.high[k];
    if (low == 0 && high == 0) continue;
    if (low < 0 || high < 0)
      throw_invalid("pad", fmt::format("axis {} of {}: {} before and {} after; amounts must not be negative", k,
                                       to_string(in[0]), low, high));
    if (!out[k].is_static())
      throw_invalid("pad", fmt::format("axis {} of {} is symbolic and cannot be padded", k, to_string(in[0])));
    out[k] = out[k].bound() + low + high;
  }
  return {out};
}

std::vector<Shape> concat_shape(const Attrs& attrs, TypeSpan in) {
  const Shape& first = in[0].shape;
  if (attrs.axes.size() != 1 || attrs.axes[0] < 0 || attrs.axes[0] >= static_cast<int64_t>(first.size()))
    throw_invalid("concat", fmt::format("axis {} is not an axis of {}", list(attrs.axes), to_string(in[0])));
  const size_t axis = static_cast<size_t>(attrs.axes[0]);
  int64_t total = 0;
  for (const Type& t : in) {
    bool fits = t.shape.size() == first.size();
    for (size_t k = 0; fits && k < first.size(); ++k) fits = k == axis || t.shape[k] == first[k];
    if (!fits) throw_invalid("concat", fmt::format("all axes but {} must be equal, got {}", axis, list(in)));
    if (!t.shape[axis].is_static())
      throw_invalid("concat",
                    fmt::format("axis {} of {} is symbolic: arrays cannot be joined along it", axis, to_string(t)));
    total += t.shape[axis].bound();
  }
  Shape out = first;
  out[axis] = total;
  return {out};
}

std::vector<Dtype> concat_dtype(const Attrs&, TypeSpan in) {
  for (const Type& t : in)
    if (t.dtype != in[0].dtype)
      throw_invalid("concat", "arrays must have one dtype, got " + list(in) + ": cast them first");
  return {in[0].dtype};
}

// ---- derivatives ----

Values reshape_vjp(const Node&, ValueSpan x, ValueSpan, ValueSpan g) { return {reshape(g[0], x[0].shape())}; }
Values broadcast_vjp(const Node&, ValueSpan x, ValueSpan, ValueSpan g) { return {sum_to(g[0], x[0].shape())}; }

Values permute_vjp(const Node& node, ValueSpan, ValueSpan, ValueSpan g) {
  std::vector<int64_t> inverse(node.attrs().axes.size());
  for (size_t k = 0; k < inverse.size(); ++k)
    inverse[static_cast<size_t>(node.attrs().axes[k])] = static_cast<int64_t>(k);
  return {permute(g[0], inverse)};
}

/// Adds v to zeros of another extent along the axis, element j at start + j·step. Unlike padding, this allows a
/// symbolic number of elements.
Value placed(const Value& v, size_t axis, Dim extent, int64_t start, int64_t step) {
  std::vector<int64_t> order{static_cast<int64_t>(axis)};
  for (int64_t k = 0; k < v.type().rank(); ++k)
    if (k != order[0]) order.push_back(k);
  Shape whole = v.shape(), updates{v.shape()[axis]};
  whole[axis] = extent;
  for (size_t k = 0; k < v.shape().size(); ++k) updates.push_back(k == axis ? Dim(1) : v.shape()[k]);
  const Shape count{v.shape()[axis]};
  const Value at =
      iota(count, 0, int64) * full(count, int64, Number::of_int(step)) + full(count, int64, Number::of_int(start));
  return scatter(ScatterMode::add, full(whole, v.dtype(), Number::of_int(0)), {at}, reshape(permute(v, order), updates),
                 {order[0]});
}

Values slice_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const Attrs& a = node.attrs();
  const size_t rank = a.shape.size();
  Value v = g[0];
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t k = 0; k < rank; ++k) {
    if (whole_axis(a, x[0].shape(), k)) continue;
    if (!v.shape()[k].is_static()) {
      v = placed(v, k, x[0].shape()[k], a.start[k], a.step[k]);
      continue;
    }
    const int64_t size = v.shape()[k];
    low[k] = a.start[k];
    if (a.step[k] < 0 && size > 0) {
      std::vector<int64_t> start(rank, 0), step(rank, 1);
      start[k] = size - 1;
      step[k] = -1;
      v = slice(v, start, v.shape(), step);
      low[k] += (size - 1) * a.step[k];
    }
    v = dilate(v, k, std::abs(a.step[k]));
    high[k] = x[0].shape()[k].bound() - low[k] - v.shape()[k].bound();
  }
  return {pad(v, low, high)};
}

Values pad_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  return {slice(g[0], node.attrs().low, x[0].shape())};
}

Values concat_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const int axis = static_cast<int>(node.attrs().axes[0]);
  Values out;
  int64_t at = 0;
  for (const Value& v : x) {
    const Dim size = v.shape()[static_cast<size_t>(axis)];
    out.push_back(slice_axis(g[0], axis, at, size));
    at += size.bound();
  }
  return out;
}

/// Linear operators apply themselves to tangents.
Values linear_jvp(const Node& node, ValueSpan, ValueSpan, ValueSpan t) {
  return {make(node.op(), {t[0]}, node.attrs())};
}

Values pad_jvp(const Node& node, ValueSpan, ValueSpan, ValueSpan t) {
  return {pad(t[0], node.attrs().low, node.attrs().high)};
}

Values concat_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) {
  Values tangents(t.begin(), t.end());
  for (size_t k = 0; k < x.size(); ++k)
    if (!tangents[k]) tangents[k] = zeros_like(x[k]);
  return {make(Op::concat, tangents, node.attrs())};
}

// ---- batching: one more axis in front ----

Values reshape_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {reshape(to_front(x[0], axes[0]), prepend(batch_extent(x, axes), node.attrs().shape))};
}

Values permute_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {permute(to_front(x[0], axes[0]), prepend(0, shifted(node.attrs().axes)))};
}

Values broadcast_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Value v = to_front(x[0], axes[0]);
  const Shape& to = node.attrs().shape;
  Shape aligned(to.size() + 2 - v.shape().size(),
                Dim(1));  // the batch axis goes first, extents 1 between it and the array's own axes
  aligned[0] = v.shape()[0];
  aligned.insert(aligned.end(), v.shape().begin() + 1, v.shape().end());
  return {broadcast(reshape(v, aligned), prepend(v.shape()[0], to))};
}

Values slice_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Attrs& a = node.attrs();
  return {
      slice(to_front(x[0], axes[0]), prepend(0, a.start), prepend(batch_extent(x, axes), a.shape), prepend(1, a.step))};
}

Values pad_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Attrs& a = node.attrs();
  return {pad(to_front(x[0], axes[0]), prepend(0, a.low), prepend(0, a.high), a.number)};
}

Values concat_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {concat(all_batched(x, axes), static_cast<int>(node.attrs().axes[0]) + 1)};
}

// ---- factors ----

Factors reshape_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const std::vector<int64_t> from = bounds(in[0].shape), to = bounds(out[0].shape);
  Factors f{{std::vector<int>(from.size(), -1)}, {std::vector<int>(to.size(), -1)}};
  if (num_elements(in[0].shape) == 0) return f;
  int next = 0;
  for (const ix::ReshapeGroup& group : ix::reshape_groups(from, to)) {
    // The outermost axes of a group that merges or splits can be split together: contiguous parts stay contiguous.
    const auto outermost = [](const std::vector<int64_t>& extents, int begin, int end) {
      while (begin < end && extents[static_cast<size_t>(begin)] == 1) ++begin;
      return begin < end ? begin : -1;
    };
    const int i = outermost(from, group.from_begin, group.from_end), o = outermost(to, group.to_begin, group.to_end);
    if (i < 0 || o < 0) continue;
    f.inputs[0][static_cast<size_t>(i)] = f.outputs[0][static_cast<size_t>(o)] = next++;
  }
  return f;
}

Factors permute_factors(const Attrs& attrs, TypeSpan in, TypeSpan) {
  Factors f{{factors_from(0, in[0].rank())}, {{}}};
  for (int64_t axis : attrs.axes) f.outputs[0].push_back(static_cast<int>(axis));
  return f;
}

Factors broadcast_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  Factors f{{{}}, {factors_from(0, out[0].rank())}};
  const size_t extra = out[0].shape.size() - in[0].shape.size();
  for (size_t k = 0; k < in[0].shape.size(); ++k)
    f.inputs[0].push_back(in[0].shape[k] == out[0].shape[k + extra] ? static_cast<int>(k + extra) : -1);
  return f;
}

/// Axes that are kept whole by the operator share a factor; the others cannot be split.
template <class Whole>
Factors same_axes(TypeSpan in, TypeSpan out, Whole whole) {
  std::vector<int> axes = factors_from(0, out[0].rank());
  for (size_t k = 0; k < axes.size(); ++k)
    if (!whole(k)) axes[k] = -1;
  return {std::vector<std::vector<int>>(in.size(), axes), {axes}};
}

Factors slice_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  return same_axes(in, out, [&](size_t k) { return whole_axis(attrs, in[0].shape, k); });
}
Factors pad_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  return same_axes(in, out, [&](size_t k) { return attrs.low[k] == 0 && attrs.high[k] == 0; });
}
Factors concat_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  return same_axes(in, out, [&](size_t k) { return static_cast<int64_t>(k) != attrs.axes[0]; });
}

// ---- values ----

Interval pad_interval(const Attrs& attrs, std::span<const Interval> in, const Type& result) {
  if (is_float(result.dtype)) return {};
  const Interval both[] = {in[0], {attrs.number.i, attrs.number.i}};
  return hull(both);
}
Interval concat_interval(const Attrs&, std::span<const Interval> in, const Type&) { return hull(in); }

std::vector<HostTensor> reshape_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  return {{out[0], in[0].data}};
}

/// out[index] = in[source(index)].
template <class Source>
std::vector<HostTensor> pick(const HostTensor& in, const Type& type, Source source) {
  HostTensor out = host(type);
  const std::vector<int64_t> from = bounds(in.type.shape);
  each_index(bounds(type.shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where(from.size());
    source(index, where);
    out.data[static_cast<size_t>(at)] = in.data[static_cast<size_t>(position(from, where))];
  });
  return {out};
}

std::vector<HostTensor> permute_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  return pick(in[0], out[0], [&](const auto& index, auto& where) {
    for (size_t k = 0; k < index.size(); ++k) where[static_cast<size_t>(attrs.axes[k])] = index[k];
  });
}

std::vector<HostTensor> broadcast_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  const Shape& from = in[0].type.shape;
  return pick(in[0], out[0], [&](const auto& index, auto& where) {
    for (size_t k = 0; k < where.size(); ++k) where[k] = from[k] == 1 ? 0 : index[k + index.size() - where.size()];
  });
}

std::vector<HostTensor> slice_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  return pick(in[0], out[0], [&](const auto& index, auto& where) {
    for (size_t k = 0; k < index.size(); ++k) where[k] = attrs.start[k] + index[k] * attrs.step[k];
  });
}

/// Copies `in` into `out` at an offset along each axis.
void copy_into(const HostTensor& in, const std::vector<int64_t>& offset, HostTensor& out) {
  const std::vector<int64_t> to = bounds(out.type.shape);
  each_index(bounds(in.type.shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where = index;
    for (size_t k = 0; k < where.size(); ++k) where[k] += offset[k];
    out.data[static_cast<size_t>(position(to, where))] = in.data[static_cast<size_t>(at)];
  });
}

std::vector<HostTensor> pad_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  std::fill(result.data.begin(), result.data.end(), attrs.number);
  copy_into(in[0], attrs.low, result);
  return {result};
}

std::vector<HostTensor> concat_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  std::vector<int64_t> offset(out[0].shape.size(), 0);
  const size_t axis = static_cast<size_t>(attrs.axes[0]);
  for (const HostTensor& part : in) {
    copy_into(part, offset, result);
    offset[axis] += part.type.shape[axis].bound();
  }
  return {result};
}

// The table of rows, each with the attributes that it reads.
constexpr auto movement_table = std::to_array<Row>({
    {Op::reshape, "reshape", 1, 1, reshape_shape, first_dtype, first_interval, reshape_vjp, linear_jvp, reshape_vmap,
     reshape_factors, -1, reshape_reference, 0, "the elements in row-major order under another shape", "shape, packed"},
    {Op::permute, "permute", 1, 1, permute_shape, first_dtype, first_interval, permute_vjp, linear_jvp, permute_vmap,
     permute_factors, -1, permute_reference, 0, "axis k of the result is axis `axes[k]` of a", "axes"},
    {Op::broadcast, "broadcast", 1, 1, broadcast_shape, first_dtype, first_interval, broadcast_vjp, linear_jvp,
     broadcast_vmap, broadcast_factors, -1, broadcast_reference, 0,
     "axes that are missing or of size 1 are repeated; its derivative sums over them", "shape"},
    {Op::slice, "slice", 1, 1, slice_shape, first_dtype, first_interval, slice_vjp, linear_jvp, slice_vmap,
     slice_factors, -1, slice_reference, 0, "elements start, start + step, … of each axis", "start, shape, step"},
    {Op::pad, "pad", 1, 1, pad_shape, first_dtype, pad_interval, pad_vjp, pad_jvp, pad_vmap, pad_factors, -1,
     pad_reference, 0, "`number` is added before and after each axis", "low, high, number"},
    {Op::concat, "concat", 1, -1, concat_shape, concat_dtype, concat_interval, concat_vjp, concat_jvp, concat_vmap,
     concat_factors, -1, concat_reference, 0, "the inputs joined along one axis", "axes"},
});
static_assert(complete(movement_table, Op::reshape));

}  // namespace

std::span<const Row> movement_rows() { return movement_table; }

}  // namespace weft::graph
