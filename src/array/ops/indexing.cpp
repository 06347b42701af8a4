// weft/ops/indexing.h: slices, gathers and scatters.
#include <algorithm>
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

// Broadcasts the index arrays to one shape; each may have its own integer dtype.
graph::Values common_indices(const char* op, const std::vector<array>& indices) {
  if (indices.empty()) return {};
  graph::Values values;
  for (const array& index : indices) {
    detail::require_integer(op, "indices", index);
    values.push_back(index.value());
  }
  return detail::broadcast_together(op, std::move(values));
}

std::vector<int64_t> indexed_axes(const char* op, const array& a, const std::vector<array>& indices,
                                  const std::vector<int>& axes) {
  if (indices.size() != axes.size())
    throw_invalid(op, std::to_string(indices.size()) + " index arrays for " + std::to_string(axes.size()) + " axes");
  // As in MLX, gather and scatter count axes from the front only, and throw std::invalid_argument for any other axis.
  for (int axis : axes)
    if (axis < 0 || axis >= static_cast<int>(a.ndim()))
      throw_invalid(
          op, "axis " + std::to_string(axis) + " is not one of the axes, counted from the front, of " + describe(a));
  detail::sorted_axes(op, axes, a.ndim());  // throws where an axis is named twice
  return {axes.begin(), axes.end()};
}

array scattered(const char* op, graph::ScatterMode mode, const array& a, const std::vector<array>& indices,
                const array& updates, const std::vector<int>& axes, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  const std::vector<int64_t> at = indexed_axes(op, a, indices, axes);
  const graph::Values index = common_indices(op, indices);
  const size_t lead = index.empty() ? 0 : index[0].shape().size();
  if (updates.ndim() != lead + a.ndim())
    throw_invalid(op, "updates must have the dimensions of the indices and of the array, " + std::to_string(lead) +
                          " + " + std::to_string(a.ndim()) + ", got " + describe(updates));
  bool fits = index.empty() || std::equal(index[0].shape().begin(), index[0].shape().end(), updates.shape().begin());
  for (size_t k = 0; k < a.ndim(); ++k) fits = fits && updates.shape()[lead + k].bound() <= a.shape()[k].bound();
  if (!fits)
    throw_invalid(op, "updates " + describe(updates) + " do not fit: they start with the indices' shape " +
                          to_string(index.empty() ? Shape{} : index[0].shape()) + ", and slices are no larger than " +
                          describe(a));
  if (index.empty()) return updates.shape() == a.shape() ? astype(updates, a.dtype(), s) : a;
  return array(graph::scatter(mode, a.value(), index, detail::to_dtype(updates.value(), a.dtype()), at));
}

/// Returns `src` with the slice replaced by combine(slice, update); without `combine`, by the update.
array updated(const char* op, array (*combine)(const array&, const array&, StreamOrDevice), const array& src,
              const array& update, const Shape& start, const Shape& stop, const Shape& strides, StreamOrDevice s) {
  const detail::OnStream on_stream(op, s);
  const array target = slice(src, start, stop, strides, s);
  array values = astype(broadcast_to(update, target.shape(), s), src.dtype(), s);
  if (combine) values = astype(combine(target, values, s), src.dtype(), s);
  const graph::Value& region = target.value();
  if (region == src.value()) return values;  // the slice is the whole array
  return array(graph::assign(src.value(), values.value(), region.node->attrs().start, region.node->attrs().step));
}

}  // namespace

array slice_update(const array& src, const array& update, Shape start, Shape stop, Shape strides, StreamOrDevice s) {
  return updated("slice_update", nullptr, src, update, start, stop, strides, s);
}
array slice_update_add(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                       StreamOrDevice s) {
  return updated("slice_update_add", add, src, update, start, stop, strides, s);
}
array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                        StreamOrDevice s) {
  return updated("slice_update_prod", multiply, src, update, start, stop, strides, s);
}
array slice_update_max(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                       StreamOrDevice s) {
  return updated("slice_update_max", maximum, src, update, start, stop, strides, s);
}
array slice_update_min(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                       StreamOrDevice s) {
  return updated("slice_update_min", minimum, src, update, start, stop, strides, s);
}
array slice_update(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) {
  return updated("slice_update", nullptr, src, update, start, stop, Shape(src.ndim(), Dim(1)), s);
}
array slice_update_add(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) {
  return updated("slice_update_add", add, src, update, start, stop, Shape(src.ndim(), Dim(1)), s);
}
array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) {
  return updated("slice_update_prod", multiply, src, update, start, stop, Shape(src.ndim(), Dim(1)), s);
}
array slice_update_max(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) {
  return updated("slice_update_max", maximum, src, update, start, stop, Shape(src.ndim(), Dim(1)), s);
}
array slice_update_min(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s) {
  return updated("slice_update_min", minimum, src, update, start, stop, Shape(src.ndim(), Dim(1)), s);
}

array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes, StreamOrDevice s) {
  const detail::OnStream on_stream("slice_update", s);
  detail::require_integer("slice_update", "start positions", start);
  if (start.ndim() > 1 || start.size() != axes.size())
    throw_invalid("slice_update",
                  std::to_string(axes.size()) + " axes need as many start positions, got " + describe(start));
  if (update.ndim() != src.ndim())
    throw_invalid("slice_update", "the update must have the dimensions of the array, got " + describe(update) +
                                      " for " + describe(src));
  std::vector<array> indices;
  const graph::Value flat = graph::reshape(start.value(), {static_cast<int64_t>(axes.size())});
  for (size_t k = 0; k < axes.size(); ++k)
    indices.emplace_back(graph::reshape(graph::slice_axis(flat, 0, static_cast<int64_t>(k), 1), {}));
  for (int& axis : axes) axis = static_cast<int>(detail::one_axis("slice_update", axis, src.ndim()));
  return scattered("slice_update", graph::ScatterMode::set, src, indices, update, axes, s);
}

array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes, const Shape& slice_sizes,
             StreamOrDevice s) {
  const detail::OnStream on_stream("gather", s);
  const std::vector<int64_t> at = indexed_axes("gather", a, indices, axes);
  bool fits = slice_sizes.size() == a.ndim();
  for (size_t k = 0; fits && k < a.ndim(); ++k)
    fits = slice_sizes[k].bound() >= 0 && slice_sizes[k].bound() <= a.shape()[k].bound();
  if (!fits) throw_invalid("gather", "slice sizes " + to_string(slice_sizes) + " do not fit " + describe(a));
  const graph::Values index = common_indices("gather", indices);
  if (index.empty()) return slice(a, Shape(a.ndim(), Dim(0)), slice_sizes, s);
  return array(graph::gather(a.value(), index, at, slice_sizes));
}

array take(const array& a, const array& indices, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("take", s);
  detail::require_integer("take", "indices", indices);
  const auto at = static_cast<size_t>(detail::one_axis("take", axis, a.ndim()));
  if (a.shape()[at] == 0 && num_elements(indices.shape()) > 0)
    throw_invalid("take", "cannot take elements from the empty axis of " + describe(a));
  return array(graph::take(a.value(), indices.value(), static_cast<int>(at)));
}
array take(const array& a, const array& indices, StreamOrDevice s) { return take(flatten(a, s), indices, 0, s); }

array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("take_along_axis", s);
  detail::require_integer("take_along_axis", "indices", indices);
  const auto at = static_cast<size_t>(detail::one_axis("take_along_axis", axis, a.ndim()));
  if (indices.ndim() != a.ndim())
    throw_invalid("take_along_axis", "the indices must have the dimensions of the array, got " + describe(indices) +
                                         " for " + describe(a));
  Shape common_a = a.shape(), common_index = indices.shape();
  common_a[at] = common_index[at] = 1;
  Shape common;
  try {
    common = broadcast_shapes(common_a, common_index);
  } catch (const std::invalid_argument&) {
    throw_invalid("take_along_axis", "outside of axis " + std::to_string(at) + " the shapes must broadcast, got " +
                                         describe(a) + " and " + describe(indices));
  }
  Shape from = common, to = common;
  from[at] = a.shape()[at];
  to[at] = indices.shape()[at];
  if (from[at] == 0 && num_elements(to) > 0)
    throw_invalid("take_along_axis", "cannot take elements from the empty axis of " + describe(a));
  // Result (i, j, …) reads element (i, …, indices[i, j, …], …): one index array for each axis that is longer than 1.
  const graph::Value source = graph::broadcast(a.value(), from), index = graph::broadcast(indices.value(), to);
  graph::Values index_arrays;
  std::vector<int64_t> axes;
  for (size_t k = 0; k < from.size(); ++k) {
    if (k != at && from[k] == 1) continue;
    index_arrays.push_back(
        k == at ? index : graph::iota(to, static_cast<int>(k), from[k].bound() <= INT32_MAX ? int32 : int64));
    axes.push_back(static_cast<int64_t>(k));
  }
  return array(graph::reshape(graph::gather(source, index_arrays, axes, Shape(from.size(), Dim(1))), to));
}

array scatter(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
              StreamOrDevice s) {
  return scattered("scatter", graph::ScatterMode::set, a, indices, updates, axes, s);
}
array scatter_add(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                  StreamOrDevice s) {
  return scattered("scatter_add", graph::ScatterMode::add, a, indices, updates, axes, s);
}

array scatter_max(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                  StreamOrDevice s) {
  return scattered("scatter_max", graph::ScatterMode::max, a, indices, updates, axes, s);
}
array scatter_min(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes,
                  StreamOrDevice s) {
  return scattered("scatter_min", graph::ScatterMode::min, a, indices, updates, axes, s);
}
array scatter_prod(const array& a, const std::vector<array>& indices, const array& updates,
                   const std::vector<int>& axes, StreamOrDevice s) {
  return scattered("scatter_prod", graph::ScatterMode::prod, a, indices, updates, axes, s);
}

array where(const array& condition, const array& x, const array& y, StreamOrDevice s) {
  const detail::OnStream on_stream("where", s);
  const Dtype dtype = promote_types(x.dtype(), y.dtype());
  const auto v =
      detail::broadcast_together("where", {detail::to_dtype(condition.value(), bool_),
                                           detail::to_dtype(x.value(), dtype), detail::to_dtype(y.value(), dtype)});
  return array(graph::select(v[0], v[1], v[2]));
}

}  // namespace weft
