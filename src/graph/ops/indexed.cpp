// Gather and scatter by arrays of indices, in MLX's layout.
//
// gather  v, i0, i1 … reads axes (the axis of v that each index array runs along) and shape (sizes of the slice, one
//         for each axis of v).
//   result[i…, s…] = v[s + Σ ik[i…] along axes[k]]
// scatter v, i0, i1 …, u       reads axes and mode. u has the indices' shape, then the sizes of the slice.
//   result = v; then in ascending order of i…: result[s + Σ ik[i…] along axes[k]] = u[i…, s…] (or combined with it)
//
// Index arrays have one shape and any integer dtypes. An index below zero counts from the end, once. A slice that would
// still leave the array is moved inside by gather, and dropped whole by scatter. Along a symbolic axis, where slices
// have one element, this is so with respect to its bound: the builders put indices into the axis as it is.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/scatter_product.h"
#include "graph/regions/regions.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using Axes = std::vector<int64_t>;

void check_indices(const char* op, const Attrs& attrs, const Type& v, TypeSpan indices) {
  if (indices.size() != attrs.axes.size())
    throw_invalid(op,
                  fmt::format("{} index arrays for axes {}: one is needed for each", indices.size(), list(attrs.axes)));
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t axis = attrs.axes[k];
    if (axis < 0 || axis >= v.rank() || std::count(attrs.axes.begin(), attrs.axes.end(), axis) != 1)
      throw_invalid(op, fmt::format("axes {} must be distinct axes of {}", list(attrs.axes), to_string(v)));
    if (!is_integer(indices[k].dtype))
      throw_invalid(op, fmt::format("indices must be integers, got {}", to_string(indices[k])));
    if (indices[k].shape != indices[0].shape)
      throw_invalid(op, "index arrays must have one shape, got " + list(indices) + ": broadcast them first");
  }
}

void check_sizes(const char* op, const Attrs& attrs, const Type& v, const Shape& sizes) {
  bool fits = sizes.size() == v.shape.size();
  const auto indexed = [&](size_t k) {
    return std::count(attrs.axes.begin(), attrs.axes.end(), static_cast<int64_t>(k)) > 0;
  };
  for (size_t k = 0; fits && k < sizes.size(); ++k) {
    const bool part =
        v.shape[k].is_static() ? sizes[k].bound() >= 0 && sizes[k].bound() <= v.shape[k].bound() : sizes[k] == 1;
    fits = (sizes[k] == v.shape[k] && (v.shape[k].is_static() || !indexed(k))) ||
           (sizes[k].is_static() && part && (v.shape[k].is_static() || indexed(k)));
  }
  if (!fits) throw_invalid(op, fmt::format("a slice of {} does not fit into {}", weft::to_string(sizes), to_string(v)));
}

Shape join(const Shape& a, const Shape& b) {
  Shape out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

/// Returns the indices' shape; without index arrays there is one slice, at the origin.
Shape index_shape(TypeSpan indices) { return indices.empty() ? Shape{} : indices[0].shape; }
Shape index_shape(ValueSpan indices) { return indices.empty() ? Shape{} : indices[0].shape(); }

std::vector<Shape> gather_shape(const Attrs& attrs, TypeSpan in) {
  check_indices("gather", attrs, in[0], in.subspan(1));
  check_sizes("gather", attrs, in[0], attrs.shape);
  return {join(index_shape(in.subspan(1)), attrs.shape)};
}

TypeSpan scatter_indices(TypeSpan in) { return in.subspan(1, in.size() - 2); }
ValueSpan scatter_indices(ValueSpan in) { return in.subspan(1, in.size() - 2); }

/// Returns the shape of the updates without the indices' axes.
template <class Indices>
Shape slice_sizes(const Indices& indices, const Shape& updates) {
  const size_t lead = index_shape(indices).size();
  return lead <= updates.size() ? Shape(updates.begin() + static_cast<int64_t>(lead), updates.end()) : Shape{};
}

std::vector<Shape> scatter_shape(const Attrs& attrs, TypeSpan in) {
  const TypeSpan indices = scatter_indices(in);
  check_indices("scatter", attrs, in[0], indices);
  const Shape& updates = in.back().shape;
  const Shape sizes = slice_sizes(indices, updates);
  if (join(index_shape(indices), sizes) != updates || sizes.size() != in[0].shape.size())
    throw_invalid("scatter",
                  fmt::format("updates {} must have the indices' shape {}, then a size for each axis of {}",
                              to_string(in.back()), weft::to_string(index_shape(indices)), to_string(in[0])));
  check_sizes("scatter", attrs, in[0], sizes);
  return {in[0].shape};
}

std::vector<Dtype> gather_dtype(const Attrs&, TypeSpan in) { return {in[0].dtype}; }

std::vector<Dtype> scatter_dtype(const Attrs& attrs, TypeSpan in) {
  if (in.back().dtype != in[0].dtype)
    throw_invalid("scatter", fmt::format("updates {} must have the dtype of {}: cast them first", to_string(in.back()),
                                         to_string(in[0])));
  if (attrs.mode != ScatterMode::set && in[0].dtype == bool_)
    throw_invalid("scatter", fmt::format("bools cannot be combined by {}: cast them first", name(attrs.mode)));
  return {in[0].dtype};
}

Interval scatter_interval(const Attrs& attrs, std::span<const Interval> in, const Type& result) {
  if (attrs.mode == ScatterMode::add || attrs.mode == ScatterMode::prod) return range_of(result.dtype);
  const Interval both[] = {in.front(), in.back()};
  return hull(both);
}

// ---- derivatives ----

/// Returns indices counted from the start and clamped, so that gather reaches the elements that the scatter reached.
Values normalised(const Attrs& attrs, const Value& v, ValueSpan indices) {
  Values out;
  for (size_t k = 0; k < indices.size(); ++k) {
    const size_t axis = static_cast<size_t>(attrs.axes[k]);
    const int64_t n = v.shape()[axis].bound();
    Value i = indices[k];
    const Interval range = range_of(i.dtype());
    if (n > range.max) i = cast(i, n <= INT32_MAX ? int32 : int64);
    const auto number = [&](int64_t value) { return full(i.shape(), i.dtype(), Number::of_int(value)); };
    if (is_signed(i.dtype())) i = binary(Op::max, select(binary(Op::lt, i, number(0)), i + number(n), i), number(0));
    out.push_back(binary(Op::min, i, number(n - attrs.shape[axis].bound())));
  }
  return out;
}

Values gather_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  Values out(x.size());
  // Many additions to one element need float32 for any float dtype; bools are counted.
  const Value zeros = cast(zeros_like(x[0]), x[0].dtype() == bool_ ? int32 : compute_dtype(x[0].dtype()));
  out[0] = cast(scatter(ScatterMode::add, zeros, normalised(node.attrs(), x[0], x.subspan(1)),
                        cast(g[0], zeros.dtype()), node.attrs().axes),
                x[0].dtype());
  return out;
}

Values gather_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) {
  if (!t[0]) return {Value{}};
  Values inputs(x.begin(), x.end());
  inputs[0] = t[0];
  return {make(Op::gather, std::move(inputs), node.attrs())};
}

/// Returns which updates remain in the result, element by element. Each update's index is scattered in place of its
/// values; an update that was dropped or overwritten does not find its index again.
Value survivors(const Node& node, ValueSpan x) {
  const ValueSpan indices = scatter_indices(x);
  const Values list_of(indices.begin(), indices.end());
  const Shape& shape = x.back().shape();
  const Shape lead = index_shape(indices);
  const Dtype t = num_elements(lead) <= INT32_MAX ? int32 : int64;
  const Strides strides = row_major_strides(lead);
  Value number = full(shape, t, Number::of_int(0));
  for (size_t k = 0; k < lead.size(); ++k)
    number = number + iota(shape, static_cast<int>(k), t) * full(shape, t, Number::of_int(strides[k]));
  const Value owner =
      scatter(ScatterMode::set, full(x[0].shape(), t, Number::of_int(-1)), list_of, number, node.attrs().axes);
  return binary(Op::eq, gather(owner, list_of, node.attrs().axes, slice_sizes(indices, shape)), number);
}

/// Returns which updates were inside the array: for `add`, all of these count.
Value inside(const Node& node, ValueSpan x) {
  const ValueSpan indices = scatter_indices(x);
  const Shape& shape = x.back().shape();
  const Shape sizes = slice_sizes(indices, shape), lead = index_shape(indices);
  Value all;
  for (size_t k = 0; k < indices.size(); ++k) {
    const size_t axis = static_cast<size_t>(node.attrs().axes[k]);
    const int64_t n = x[0].shape()[axis].bound(), last = n - sizes[axis].bound();
    Value i = indices[k];
    if (n > range_of(i.dtype()).max) i = cast(i, n <= INT32_MAX ? int32 : int64);
    const auto number = [&](int64_t value) { return full(lead, i.dtype(), Number::of_int(value)); };
    Value ok = binary(Op::le, i, number(last));
    if (is_signed(i.dtype())) {
      const Value wrapped = select(binary(Op::lt, i, number(0)), i + number(n), i);
      ok = binary(Op::bit_and, binary(Op::le, number(0), wrapped), binary(Op::le, wrapped, number(last)));
    }
    all = all ? binary(Op::bit_and, all, ok) : ok;
  }
  if (!all) return full(shape, bool_, Number::of_int(1));
  return broadcast(reshape(all, join(lead, Shape(sizes.size(), Dim(1)))), shape);
}

/// The derivatives of the result of max, min or prod by the operand and by each update, in their shapes.
struct Shares {
  Value operand, updates;
};

/// Extremes: each operand element and update that equals the result has the whole derivative.
Shares extreme_shares(const Value& v, const Value& updates, const Values& indices, const Axes& axes, const Value& kept,
                      const Value& y) {
  const auto hit = [](const Value& a, const Value& b) { return cast(binary(Op::eq, a, b), a.dtype()); };
  return {hit(v, y),
          hit(updates, gather(y, indices, axes, slice_sizes(indices, updates.shape()))) * cast(kept, updates.dtype())};
}

/// Products: the derivative by a factor is the product of the others.
Shares product_shares(const Node& node, const Value& v, const Value& updates, const Values& indices,
                      const Value& kept) {
  Attrs slices;
  slices.axes = node.attrs().axes;
  slices.shape = slice_sizes(indices, updates.shape());
  return {scatter(ScatterMode::prod, full_like(v, 1), indices, updates, slices.axes),
          others_of_product(v, normalised(slices, v, indices), kept, updates, slices.axes)};
}

Shares shares(const Node& node, ValueSpan x, const Value& y) {
  const ValueSpan indices = scatter_indices(x);
  const Values list_of(indices.begin(), indices.end());
  const Value kept = inside(node, x);
  if (node.attrs().mode == ScatterMode::prod) return product_shares(node, x.front(), x.back(), list_of, kept);
  return extreme_shares(x.front(), x.back(), list_of, node.attrs().axes, kept, y);
}

bool linear(const Node& node) { return node.attrs().mode == ScatterMode::set || node.attrs().mode == ScatterMode::add; }

Values scatter_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  Values out(x.size());
  const ValueSpan indices = scatter_indices(x);
  const Values list_of(indices.begin(), indices.end());
  const Axes& axes = node.attrs().axes;
  const Value& updates = x.back();
  const bool adds = node.attrs().mode == ScatterMode::add;
  const Value reached = gather(g[0], list_of, axes, slice_sizes(indices, updates.shape()));
  if (!linear(node)) {
    const Shares s = shares(node, x, y[0]);
    out.front() = g[0] * s.operand;
    out.back() = reached * s.updates;
    return out;
  }
  out.front() = adds ? g[0] : scatter(ScatterMode::set, g[0], list_of, zeros_like(updates), axes);
  out.back() = select(adds ? inside(node, x) : survivors(node, x), reached, zeros_like(updates));
  return out;
}

Values scatter_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  if (!t.front() && !t.back()) return {Value{}};
  Values inputs(x.begin(), x.end());
  for (const size_t k : {size_t{0}, x.size() - 1}) inputs[k] = t[k] ? t[k] : zeros_like(x[k]);
  if (!linear(node)) {
    const Shares s = shares(node, x, y[0]);
    inputs.front() = inputs.front() * s.operand;
    inputs.back() = inputs.back() * s.updates;
    return {scatter(ScatterMode::add, inputs.front(), Values(inputs.begin() + 1, inputs.end() - 1), inputs.back(),
                    node.attrs().axes)};
  }
  return {make(Op::scatter, std::move(inputs), node.attrs())};
}

// ---- batching ----

bool any_batched(std::span<const int> axes) {
  return std::any_of(axes.begin(), axes.end(), [](int axis) { return axis >= 0; });
}

/// Returns the index arrays with a leading batch axis.
Values batched_indices(ValueSpan indices, std::span<const int> axes, Dim extent) {
  Values out;
  for (size_t k = 0; k < indices.size(); ++k) out.push_back(batched(indices[k], axes[k], extent));
  return out;
}

/// Returns an additional index array, which runs along the batch axis.
Value batch_index(const Values& indices) {
  const Shape& shape = indices[0].shape();
  return iota(shape, 0, shape[0].bound() <= INT32_MAX ? int32 : int64);
}

Shape with_axis(Shape shape, size_t at, Dim extent) {
  shape.insert(shape.begin() + static_cast<int64_t>(at), extent);
  return shape;
}

Values gather_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Attrs& at = node.attrs();
  const ValueSpan indices = x.subspan(1);
  const std::span<const int> index_axes = axes.subspan(1);
  const Dim extent = batch_extent(x, axes);
  const bool by_index = any_batched(index_axes);
  if (!by_index) {  // the batch axis of v is taken whole, after the indices' axes
    const Value out = gather(to_front(x[0], axes[0]), Values(indices.begin(), indices.end()), shifted(at.axes),
                             prepend(extent, at.shape));
    return {to_front(out, static_cast<int>(index_shape(indices).size()))};
  }
  Values all = batched_indices(indices, index_axes, extent);
  if (axes[0] < 0) return {gather(x[0], all, at.axes, at.shape)};
  const int64_t lead = all[0].type().rank();
  all.push_back(batch_index(all));
  Axes along = shifted(at.axes);
  along.push_back(0);
  return {squeeze(gather(to_front(x[0], axes[0]), all, along, prepend(Dim(1), at.shape)), {lead})};
}

Values scatter_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Attrs& at = node.attrs();
  const ValueSpan indices = scatter_indices(x);
  const std::span<const int> index_axes = axes.subspan(1, axes.size() - 2);
  const Dim extent = batch_extent(x, axes);
  const Value v = batched(x[0], axes.front(), extent), updates = batched(x.back(), axes.back(), extent);
  const int64_t lead = static_cast<int64_t>(x.back().shape().size()) - (axes.back() >= 0 ? 1 : 0) -
                       (v.type().rank() - 1);  // axes of the unbatched indices
  if (!any_batched(index_axes)) {              // the batch axis belongs to the slice: after the indices' axes
    Axes order;
    for (int64_t k = 1; k <= lead; ++k) order.push_back(k);
    order.push_back(0);
    for (int64_t k = lead + 1; k < updates.type().rank(); ++k) order.push_back(k);
    return {scatter(at.mode, v, Values(indices.begin(), indices.end()), permute(updates, order), shifted(at.axes))};
  }
  Values all = batched_indices(indices, index_axes, extent);
  all.push_back(batch_index(all));
  Axes along = shifted(at.axes);
  along.push_back(0);
  return {scatter(at.mode, v, all, reshape(updates, with_axis(updates.shape(), static_cast<size_t>(lead) + 1, Dim(1))),
                  along)};
}

// ---- factors: the indices' axes split together; axes of v that pass through whole do as well ----

Factors gather_factors(const Attrs& at, TypeSpan in, TypeSpan out) {
  const int lead = static_cast<int>(index_shape(in.subspan(1)).size());
  Factors f{{std::vector<int>(in[0].shape.size(), -1)}, {factors_from(0, out[0].rank())}};
  for (size_t k = 1; k < in.size(); ++k) f.inputs.push_back(factors_from(0, lead));
  for (size_t k = 0; k < in[0].shape.size(); ++k) {
    const bool passes = at.shape[k] == in[0].shape[k] &&
                        std::find(at.axes.begin(), at.axes.end(), static_cast<int64_t>(k)) == at.axes.end();
    (passes ? f.inputs[0][k] : f.outputs[0][k + static_cast<size_t>(lead)]) = passes ? lead + static_cast<int>(k) : -1;
  }
  return f;
}

Factors scatter_factors(const Attrs& at, TypeSpan in, TypeSpan) {
  const size_t lead = index_shape(scatter_indices(in)).size();
  const Shape sizes = slice_sizes(scatter_indices(in), in.back().shape);
  std::vector<int> slices(in[0].shape.size(), -1);
  for (size_t k = 0; k < slices.size(); ++k)
    if (sizes[k] == in[0].shape[k] &&
        std::find(at.axes.begin(), at.axes.end(), static_cast<int64_t>(k)) == at.axes.end())
      slices[k] = static_cast<int>(k);
  Factors f{{slices}, {slices}};
  for (size_t k = 1; k + 1 < in.size(); ++k) f.inputs.push_back(std::vector<int>(lead, -1));
  std::vector<int> updates(lead, -1);
  updates.insert(updates.end(), slices.begin(), slices.end());
  f.inputs.push_back(updates);
  return f;
}

// ---- reference ----

/// Where the slice of index tuple `at` begins in v. `inside` is false where it leaves the array; start is then moved
/// inside.
struct Origin {
  std::vector<int64_t> start;
  bool inside = true;
};

Origin origin(const Attrs& attrs, const std::vector<int64_t>& v, const Shape& sizes,
              std::span<const HostTensor> indices, int64_t at) {
  Origin o{std::vector<int64_t>(v.size(), 0)};
  for (size_t k = 0; k < indices.size(); ++k) {
    const size_t axis = static_cast<size_t>(attrs.axes[k]);
    const int64_t last = v[axis] - sizes[axis].bound();
    int64_t i = indices[k].data[static_cast<size_t>(at)].i;
    if (indices[k].type.dtype == uint64 && i < 0) i = INT64_MAX;  // outside of every array
    else if (i < 0) i += v[axis];
    o.inside = o.inside && i >= 0 && i <= last;
    o.start[axis] = std::clamp<int64_t>(i, 0, last);
  }
  return o;
}

/// f(element of the updates or of gather's result, element of v, inside) for all of them in order.
template <class F>
void each_element(const Attrs& attrs, const Type& v, const Shape& sizes, std::span<const HostTensor> indices, F f) {
  const std::vector<int64_t> extents = bounds(v.shape), slice = bounds(sizes);
  int64_t tuples = 1, next = 0;
  if (!indices.empty()) tuples = static_cast<int64_t>(indices[0].data.size());
  for (int64_t t = 0; t < tuples; ++t) {
    const Origin o = origin(attrs, extents, sizes, indices, t);
    each_index(slice, [&](const auto& index, int64_t) {
      std::vector<int64_t> where = index;
      for (size_t k = 0; k < where.size(); ++k) where[k] += o.start[k];
      f(static_cast<size_t>(next++), static_cast<size_t>(position(extents, where)), o.inside);
    });
  }
}

std::vector<HostTensor> gather_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  each_element(attrs, in[0].type, attrs.shape, in.subspan(1),
               [&](size_t to, size_t from, bool) { result.data[to] = in[0].data[from]; });
  return {result};
}

std::vector<HostTensor> scatter_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  const std::span<const HostTensor> indices = in.subspan(1, in.size() - 2);
  const size_t lead = indices.empty() ? 0 : indices[0].type.shape.size();
  const Shape& updates = in.back().type.shape;
  const Shape sizes(updates.begin() + static_cast<int64_t>(lead), updates.end());
  const Dtype t = out[0].dtype;
  HostTensor result = in[0];
  each_element(attrs, in[0].type, sizes, indices, [&](size_t from, size_t to, bool kept) {
    if (!kept) return;
    const Number args[] = {result.data[to], in.back().data[from]};
    result.data[to] = attrs.mode == ScatterMode::set ? args[1] : kernel::reference(combine(attrs.mode), t, args);
    if (!is_float(t)) result.data[to] = kernel::round_to(result.data[to], t);
  });
  for (Number& n : result.data) n = kernel::round_to(n, t);
  return {result};
}

constexpr auto indexed_table = std::to_array<Row>({
    {Op::gather, "gather", 1, -1, gather_shape, gather_dtype, first_interval, gather_vjp, gather_jvp, gather_vmap,
     gather_factors, -1, gather_reference, 0, "slices of the first input at indices, which are clamped", "axes, shape",
     "any; indices: integers"},
    {Op::scatter, "scatter", 2, -1, scatter_shape, scatter_dtype, scatter_interval, scatter_vjp, scatter_jvp,
     scatter_vmap, scatter_factors, -1, scatter_reference, 4,
     "the first input with updates set or combined at indices; those outside are dropped", "axes, mode",
     "any; indices: integers"},
});
static_assert(complete(indexed_table, Op::gather));

}  // namespace

kernel::ScalarOp combine(ScatterMode mode) {
  constexpr kernel::ScalarOp ops[] = {kernel::ScalarOp::add, kernel::ScalarOp::max, kernel::ScalarOp::min,
                                      kernel::ScalarOp::mul};
  check(mode != ScatterMode::set, "scatter", "set combines nothing");
  return ops[static_cast<size_t>(mode) - 1];
}

std::span<const Row> indexed_rows() { return indexed_table; }

}  // namespace weft::graph
