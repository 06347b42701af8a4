#pragma once
#include <optional>
#include <string>

#include "weft/array.h"

/// Sorts, searches, and accumulates along an axis. Part of weft/ops.h. Without an axis the functions work on the
/// flattened array.
namespace weft {

// Order: ascending and stable, NaN last
/// Returns the elements in ascending order along the axis.
WEFT_API array sort(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array sort(const array& a, StreamOrDevice s = {});
/// Returns the positions, uint32, that sort the axis.
WEFT_API array argsort(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array argsort(const array& a, StreamOrDevice s = {});
/// Returns the elements with the `kth` smallest at position kth, none greater before it and none smaller after it. A
/// negative kth counts from the end; one out of range throws std::invalid_argument.
WEFT_API array partition(const array& a, int kth, int axis, StreamOrDevice s = {});
WEFT_API array partition(const array& a, int kth, StreamOrDevice s = {});
/// Returns the positions, uint32, that partition the axis.
WEFT_API array argpartition(const array& a, int kth, int axis, StreamOrDevice s = {});
WEFT_API array argpartition(const array& a, int kth, StreamOrDevice s = {});
/// Returns the k largest elements along the axis, in ascending order.
WEFT_API array topk(const array& a, int k, int axis, StreamOrDevice s = {});
WEFT_API array topk(const array& a, int k, StreamOrDevice s = {});
/// Returns, for each element of v, the index in the sorted vector a [n] at which it would be inserted: before equal
/// elements
/// ("left") or after them ("right"). uint32 of v's shape.
WEFT_API array searchsorted(const array& a, const array& v, const std::string& side = "left", StreamOrDevice s = {});

// Cumulative operations: element i combines elements 0 … i, or i … n - 1 where `reverse`. Without `inclusive` the
// element itself is left out, and the first result is the identity (0 for sums). Results have a's dtype and shape.
/// Returns cumulative sums, of a cast to `dtype` where one is given; bools are summed in int32.
WEFT_API array cumsum(const array& a, int axis, bool reverse = false, bool inclusive = true,
                      std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
inline array cumsum(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, axis, reverse, inclusive, std::nullopt, s);
}
WEFT_API array cumsum(const array& a, bool reverse = false, bool inclusive = true,
                      std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
inline array cumsum(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, reverse, inclusive, std::nullopt, s);
}
/// Returns cumulative products, of a cast to `dtype` where one is given.
WEFT_API array cumprod(const array& a, int axis, bool reverse = false, bool inclusive = true,
                       std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
inline array cumprod(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, axis, reverse, inclusive, std::nullopt, s);
}
WEFT_API array cumprod(const array& a, bool reverse = false, bool inclusive = true,
                       std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
inline array cumprod(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, reverse, inclusive, std::nullopt, s);
}
/// Returns cumulative maxima; NaN from the first NaN on.
WEFT_API array cummax(const array& a, int axis, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array cummax(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
/// Returns cumulative minima; NaN from the first NaN on.
WEFT_API array cummin(const array& a, int axis, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array cummin(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
/// Returns logarithms of the cumulative sums of exp(a), without overflow; integers are converted to float32.
WEFT_API array logcumsumexp(const array& a, int axis, bool reverse = false, bool inclusive = true,
                            StreamOrDevice s = {});
WEFT_API array logcumsumexp(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
/// Returns the differences a[i + 1] - a[i] along the axis, taken n times; each time makes the axis shorter by one.
/// Bools: whether neighbours differ.
WEFT_API array diff(const array& a, int n = 1, int axis = -1, StreamOrDevice s = {});

/// Returns the `size` smallest different elements of the flattened array, ascending, and then, as asked: the index of
/// the first of each in the flattened array, uint32; for each element of `a` the index of its value, uint32 in a's
/// shape; how often each occurs, int32. Behind the last of fewer there are `fill_value` (by default the first), its
/// index and 0 times. Of more, the largest are left out: their indices are the last one. Each NaN is a value. Throws
/// std::invalid_argument for an empty array without a fill value.
WEFT_API std::vector<array> unique(const array& a, int size, bool return_index = false, bool return_inverse = false,
                                   bool return_counts = false, const std::optional<array>& fill_value = std::nullopt,
                                   StreamOrDevice s = {});

}  // namespace weft
