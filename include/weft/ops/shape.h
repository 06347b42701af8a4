#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Changes the shape of an array, or the order of its elements. Part of weft/ops.h. Results have a's dtype; those of
/// several arrays the promoted one. Axes may be negative: -1 is the last.
namespace weft {

/// Returns the elements in row-major order as `shape`. One size may be -1: it is inferred from the others.
WEFT_API array reshape(const array& a, Shape shape, StreamOrDevice s = {});
/// Returns the axes start_axis … end_axis (all by default) merged into one; a scalar becomes [1].
WEFT_API array flatten(const array& a, int start_axis, int end_axis = -1, StreamOrDevice s = {});
WEFT_API array flatten(const array& a, StreamOrDevice s = {});
/// Returns the axis split into axes of the sizes `shape`, one of which may be -1.
WEFT_API array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s = {});
/// Returns the array without the named axes of size 1 (by default all of that size). Throws std::invalid_argument for
/// an axis of another size.
WEFT_API array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array squeeze(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array squeeze(const array& a, StreamOrDevice s = {});
/// Returns the array with axes of size 1 inserted at the positions `axes` of the result.
WEFT_API array expand_dims(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array expand_dims(const array& a, int axis, StreamOrDevice s = {});
/// Returns the axes in another order: axis k of the result is axis axes[k] of `a`, each named once. Without axes the
/// order is reversed.
WEFT_API array transpose(const array& a, std::vector<int> axes, StreamOrDevice s = {});
inline array transpose(const array& a, std::initializer_list<int> axes, StreamOrDevice s = {}) {
  return transpose(a, std::vector<int>(axes), s);
}
WEFT_API array transpose(const array& a, StreamOrDevice s = {});
/// Returns the array with two axes exchanged.
WEFT_API array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});
/// Returns the array with axis `source` moved to position `destination`; the others keep their order.
WEFT_API array moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
/// Returns `a` broadcast to `shape`: axes that are missing or of size 1 repeat. Sizes count from the last axis.
WEFT_API array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
/// Returns all arrays broadcast to their common shape. They keep their dtypes.
WEFT_API std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s = {});
/// Returns the array with the order of the elements reversed along the axes (by default all).
WEFT_API array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array flip(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array flip(const array& a, StreamOrDevice s = {});
/// Returns the elements moved by `shift` along the axes; those that leave at one end enter at the other. Several axes
/// take one shift each, or all the same. Without axes the flattened array is rolled.
WEFT_API array roll(const array& a, int shift, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, StreamOrDevice s = {});
WEFT_API array roll(const array& a, int shift, int axis, StreamOrDevice s = {});
WEFT_API array roll(const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, const std::vector<int>& axes, StreamOrDevice s = {});
/// Returns each array with at least one axis: a scalar becomes [1].
WEFT_API array atleast_1d(const array& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_1d(const std::vector<array>& a, StreamOrDevice s = {});
/// Returns each array with at least two axes: a vector [n] becomes [1, n].
WEFT_API array atleast_2d(const array& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_2d(const std::vector<array>& a, StreamOrDevice s = {});
/// Returns each array with at least three axes: [n] becomes [1, n, 1] and [n, m] becomes [n, m, 1].
WEFT_API array atleast_3d(const array& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_3d(const std::vector<array>& a, StreamOrDevice s = {});
/// Returns elements (i, i + offset) of the matrices along axis1 and axis2, as the last axis of the result.
WEFT_API array diagonal(const array& a, int offset = 0, int axis1 = 0, int axis2 = 1, StreamOrDevice s = {});
/// Returns the arrays joined along the axis (0 by default), in the promoted dtype. All other sizes must be equal.
WEFT_API array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s = {});
WEFT_API array concatenate(std::vector<array> arrays, StreamOrDevice s = {});
/// Returns the arrays joined along a new axis (0 by default), in the promoted dtype. Their shapes must be equal.
WEFT_API array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s = {});
WEFT_API array stack(const std::vector<array>& arrays, StreamOrDevice s = {});
/// Returns the parts of `a` along the axis (0 by default): `num_splits` equal ones (std::invalid_argument where the
/// size does not divide), or those that begin at 0 and at each of `indices`.
WEFT_API std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, int num_splits, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, const Shape& indices, StreamOrDevice s = {});
/// Returns the slices along the axis (0 by default), without that axis.
WEFT_API std::vector<array> unstack(const array& a, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> unstack(const array& a, StreamOrDevice s = {});
/// Returns each element repeated `repeats` times in a row along the axis; without an axis of the flattened array.
WEFT_API array repeat(const array& a, int repeats, int axis, StreamOrDevice s = {});
WEFT_API array repeat(const array& a, int repeats, StreamOrDevice s = {});
/// Returns the whole array repeated reps[k] times along axis k. Missing axes of either, in front, count as 1.
WEFT_API array tile(const array& a, std::vector<int> reps, StreamOrDevice s = {});
/// Returns the array with low_pad_size[k] elements added before and high_pad_size[k] after axis axes[k]. Their values
/// by mode: "constant" (pad_value, a scalar), "edge" (the nearest element), "reflect" (mirrored without the edge) or
/// "symmetric" (mirrored with it).
WEFT_API array pad(const array& a, const std::vector<int>& axes, const Shape& low_pad_size, const Shape& high_pad_size,
                   const array& pad_value = array(0), const std::string& mode = "constant", StreamOrDevice s = {});
/// Returns the array padded by a pair (before, after) for each axis, by one pair for all axes, or by one width on all
/// sides.
WEFT_API array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
WEFT_API array pad(const array& a, const std::pair<int, int>& pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
WEFT_API array pad(const array& a, int pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
/// Returns a[start[0]:stop[0]:strides[0], …]: one number for each axis, with NumPy's meaning of negative ones and of
/// stops beyond the end. Strides default to 1 and must not be 0. A symbolic stop (a Dim of a Symbol) makes a symbolic
/// axis.
WEFT_API array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s = {});
WEFT_API array slice(const array& a, Shape start, Shape stop, StreamOrDevice s = {});
/// Returns the slice of `slice_size` (one size for each axis of `a`) that begins at `start`, whose k-th element is the
/// position along axis axes[k]; other axes begin at 0. `start` is an integer array that is read when the slice is
/// computed, so other positions trace nothing again. A slice that would leave the array is moved inside.
WEFT_API array dynamic_slice(const array& a, const array& start, const std::vector<int>& axes, const Shape& slice_size,
                             StreamOrDevice s = {});
/// Returns dynamic_slice(a, start, axes, slice_size). It is a template so that slice(a, {0}, {2}, {1}) means sizes.
template <std::same_as<array> A>
array slice(const array& a, const A& start, std::vector<int> axes, Shape slice_size, StreamOrDevice s = {}) {
  return dynamic_slice(a, start, axes, slice_size, s);
}

}  // namespace weft
