// weft/ops/indexing.h: elements along one axis, and slices at positions that are computed at run time.
#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

// Scatters single elements: update (i, j, …) goes to element (i, …, indices[i, j, …], …), with an index array for each
// axis.
array put(const char* op, graph::ScatterMode mode, const array& a, const array& indices, const array& values, int axis,
          const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  const bool none = num_elements(indices.shape()) == 0;  // an empty list has no dtype of its own
  if (!none) detail::require_integer(op, "indices", indices);
  const auto at = static_cast<size_t>(detail::one_axis(op, axis, a.ndim()));
  if (indices.ndim() != a.ndim())
    throw_invalid(
        op, "the indices must have the dimensions of the array, got " + describe(indices) + " for " + describe(a));
  Shape shape = a.shape();
  shape[at] = indices.shape()[at];
  for (size_t k = 0; k < shape.size(); ++k)
    if (indices.shape()[k] != shape[k] && indices.shape()[k] != 1)
      throw_invalid(op, "outside of axis " + std::to_string(at) +
                            " the indices must have the sizes of the array or 1, got " + describe(indices) + " for " +
                            describe(a));
  const graph::Value updates = detail::to_dtype(broadcast_to(values, shape, s).value(), a.dtype());
  if (none || num_elements(a.shape()) == 0) return a;  // no index is inside
  graph::Values index;
  std::vector<int64_t> axes;
  for (size_t k = 0; k < shape.size(); ++k) {
    index.push_back(k == at ? graph::broadcast(indices.value(), shape)
                            : graph::iota(shape, static_cast<int>(k), shape[k].bound() <= INT32_MAX ? int32 : int64));
    axes.push_back(static_cast<int64_t>(k));
  }
  Shape one = shape;
  one.insert(one.end(), shape.size(), Dim(1));
  return array(graph::scatter(mode, a.value(), index, graph::reshape(updates, one), axes));
}

}  // namespace

array put_along_axis(const array& a, const array& indices, const array& values, int axis, StreamOrDevice s) {
  return put("put_along_axis", graph::ScatterMode::set, a, indices, values, axis, s);
}
array scatter_add_axis(const array& a, const array& indices, const array& values, int axis, StreamOrDevice s) {
  return put("scatter_add_axis", graph::ScatterMode::add, a, indices, values, axis, s);
}

array take(const array& a, int index, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("take", s);
  const int64_t at = detail::one_axis("take", axis, a.ndim()), n = a.shape()[static_cast<size_t>(at)];
  if (index < -n || index >= n)
    throw_invalid("take", "index " + std::to_string(index) + " is out of range for axis " + std::to_string(at) +
                              " of " + describe(a));
  const graph::Value one = graph::slice_axis(a.value(), static_cast<int>(at), index < 0 ? index + n : index, 1);
  return array(graph::squeeze(one, {at}));
}
array take(const array& a, int index, StreamOrDevice s) { return take(reshape(a, {-1}, s), index, 0, s); }

array masked_scatter(const array& a, const array& mask, const array& values, StreamOrDevice s) {
  const detail::OnStream on_stream("masked_scatter", s);
  if (mask.dtype() != bool_) throw_invalid("masked_scatter", "the mask must be of dtype bool, got " + describe(mask));
  const bool fits = mask.ndim() <= a.ndim() && std::equal(mask.shape().begin(), mask.shape().end(), a.shape().begin());
  if (!fits)
    throw_invalid("masked_scatter",
                  "the mask must have the first sizes of the array, got " + describe(mask) + " for " + describe(a));
  const Shape rest(a.shape().begin() + static_cast<int64_t>(mask.ndim()), a.shape().end());
  if (values.ndim() > rest.size() + 1)
    throw_invalid("masked_scatter", "values " + describe(values) + " have too many dimensions for " + describe(a) +
                                        " after the axes of the mask");
  const auto n = static_cast<int64_t>(mask.size());
  Shape rows = rest, column(rest.size() + 1, Dim(1));
  rows.insert(rows.begin(), n);
  column[0] = n;
  const array flags = reshape(mask, {n}, s), from = reshape(a, rows, s), to = astype(values, a.dtype(), s);
  if (values.ndim() <= rest.size())
    return reshape(where(reshape(flags, column, s), broadcast_to(to, rest, s), from, s), a.shape(), s);
  Shape all = rest;
  all.insert(all.begin(), values.shape()[0]);
  if (n == 0 || values.shape()[0] == 0) return a;
  const array row = minimum(cumsum(astype(flags, int32, s), 0, false, false, s),
                            array(static_cast<int>(int64_t{values.shape()[0]} - 1)), s);
  return reshape(where(reshape(flags, column, s), take(broadcast_to(to, all, s), row, 0, s), from, s), a.shape(), s);
}

array dynamic_slice(const array& a, const array& start, const std::vector<int>& axes, const Shape& slice_size,
                    StreamOrDevice s) {
  const detail::OnStream on_stream("slice", s);
  detail::require_integer("slice", "start positions", start);
  if (start.ndim() > 1 || start.size() != axes.size())
    throw_invalid("slice", std::to_string(axes.size()) + " axes need as many start positions, got " + describe(start));
  const graph::Value flat = graph::reshape(start.value(), {static_cast<int64_t>(axes.size())});
  std::vector<array> indices;
  for (size_t k = 0; k < axes.size(); ++k)
    indices.emplace_back(graph::reshape(graph::slice_axis(flat, 0, static_cast<int64_t>(k), 1), {}));
  std::vector<int> at;
  for (int axis : axes) at.push_back(static_cast<int>(detail::one_axis("slice", axis, a.ndim())));
  return gather(a, indices, at, slice_size, s);
}

}  // namespace weft
