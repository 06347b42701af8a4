#pragma once
#include <vector>

#include "weft/array.h"

/// Reads and replaces elements by position. Part of weft/ops.h; weft/indexing.h has NumPy's notation.
///
/// Index arrays are of any integer dtype; another one throws std::invalid_argument. A negative index counts from the
/// end. Where elements are read, an index out of range is clamped to the nearest element; where they are written, an
/// update out of range is dropped. Results have the dtype of the first array, to which updates are cast.
namespace weft {

/// Returns `src` with src[start:stop:strides] replaced by `update`, which is broadcast to the slice. Slices are those
/// of `slice`.
WEFT_API array slice_update(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                            StreamOrDevice s = {});
WEFT_API array slice_update(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns `src` with `update` added to the slice.
WEFT_API array slice_update_add(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_add(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns `src` with the slice multiplied by `update`.
WEFT_API array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                 StreamOrDevice s = {});
WEFT_API array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns `src` with the larger of the slice and `update` in the slice.
WEFT_API array slice_update_max(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_max(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns `src` with the smaller of the slice and `update` in the slice.
WEFT_API array slice_update_min(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_min(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns `src` with the slice of update's shape that begins at `start` replaced by `update`. `start` is an integer
/// array with one position for each of `axes`, computed on the device: other positions trace nothing again.
WEFT_API array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes,
                            StreamOrDevice s = {});
/// Returns slices of `a`: result[i…, s…] = a[s…, with indices[k][i…] added along axes[k]]. The shape is the broadcast
/// shape of the indices, then `slice_sizes` (one for each axis of `a`). Axes count from the front; another one throws
/// std::invalid_argument.
WEFT_API array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes,
                      const Shape& slice_sizes, StreamOrDevice s = {});
inline array gather(const array& a, const array& indices, int axis, const Shape& slice_sizes, StreamOrDevice s = {}) {
  return gather(a, std::vector<array>{indices}, std::vector<int>{axis}, slice_sizes, s);
}
/// Returns the elements of `a` at `indices` along the axis: that axis of `a` is replaced by the axes of `indices`.
WEFT_API array take(const array& a, const array& indices, int axis, StreamOrDevice s = {});
/// Returns the elements of the flattened array at `indices`, in the shape of `indices`.
WEFT_API array take(const array& a, const array& indices, StreamOrDevice s = {});
/// Returns element `index` along the axis (of the flattened array), without that axis. Throws std::invalid_argument for
/// an index out of range.
WEFT_API array take(const array& a, int index, int axis, StreamOrDevice s = {});
WEFT_API array take(const array& a, int index, StreamOrDevice s = {});
/// Returns result[…, j, …] = a[…, indices[…, j, …], …] along the axis. `indices` has the rank of `a`; other axes
/// broadcast.
WEFT_API array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s = {});
/// Returns `a` with slices replaced: result[s…, with indices[k][i…] added along axes[k]] = updates[i…, s…]. `updates`
/// has the broadcast shape of the indices, then the size of a slice along each axis of `a`. Of several updates of one
/// element the last one stays.
WEFT_API array scatter(const array& a, const std::vector<array>& indices, const array& updates,
                       const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// Returns `a` with `updates` added at the positions of `scatter`; repeated positions add up.
WEFT_API array scatter_add(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter_add(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_add(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// Returns `a` multiplied by `updates` at the positions of `scatter`.
WEFT_API array scatter_prod(const array& a, const std::vector<array>& indices, const array& updates,
                            const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter_prod(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_prod(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// Returns the larger of `a` and `updates` at the positions of `scatter`.
WEFT_API array scatter_max(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter_max(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_max(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// Returns the smaller of `a` and `updates` at the positions of `scatter`.
WEFT_API array scatter_min(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter_min(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_min(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// Returns `a` with result[…, indices[…, j, …], …] = values[…, j, …] along the axis. `indices` has the rank of `a`,
/// other axes a's sizes or 1, and an integer dtype unless it is empty; `values` broadcast to them.
WEFT_API array put_along_axis(const array& a, const array& indices, const array& values, int axis,
                              StreamOrDevice s = {});
/// Returns `a` with values[…, j, …] added to element indices[…, j, …] along the axis, as put_along_axis.
WEFT_API array scatter_add_axis(const array& a, const array& indices, const array& values, int axis,
                                StreamOrDevice s = {});
/// Returns `a` with the elements where `mask` (bool) is true replaced by those of `values` one after the other, in
/// row-major order. The mask covers the first axes of `a`. `values` has the remaining axes, with one more in front that
/// holds a row for each true element; without it every true element gets the same values.
WEFT_API array masked_scatter(const array& a, const array& mask, const array& values, StreamOrDevice s = {});
/// Returns x where `condition` is true (not 0) and y elsewhere, broadcast together, in the promoted dtype of x and y.
WEFT_API array where(const array& condition, const array& x, const array& y, StreamOrDevice s = {});

}  // namespace weft
