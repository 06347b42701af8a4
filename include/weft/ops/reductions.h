#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "weft/array.h"

/// Reduces axes. Part of weft/ops.h, whose head has the dtypes of results.
///
/// Each function takes several axes, one axis, or none: then it reduces all of them, to a scalar. `keepdims` keeps
/// reduced axes with size 1. Sums of 16-bit floats accumulate in float32 and are rounded once. An axis that `a` lacks
/// throws std::out_of_range, one that is named twice std::invalid_argument.
namespace weft {

namespace detail {
/// Returns `a` reduced over the axes (none given: over all of them) by the reducer of that name, in a's dtype.
WEFT_API array reduce(const char* op, const char* reducer, const array& a, const std::optional<std::vector<int>>& axes,
                      bool keepdims, const StreamOrDevice& s);
}  // namespace detail

/// Returns whether all elements differ from 0, bool.
WEFT_API array all(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array all(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array all(const array& a, bool keepdims, StreamOrDevice s = {});
inline array all(const array& a, StreamOrDevice s = {}) { return all(a, false, s); }
/// Returns whether any element differs from 0, bool.
WEFT_API array any(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array any(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array any(const array& a, bool keepdims, StreamOrDevice s = {});
inline array any(const array& a, StreamOrDevice s = {}) { return any(a, false, s); }
/// Returns the number of elements that differ from 0, int32.
WEFT_API array count_nonzero(const array& a, const std::vector<int>& axes, bool keepdims = false,
                             StreamOrDevice s = {});
WEFT_API array count_nonzero(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array count_nonzero(const array& a, bool keepdims = false, StreamOrDevice s = {});
/// Returns the sum; integers below 32 bits and bools are summed in int32 or uint32.
WEFT_API array sum(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
inline array sum(const array& a, StreamOrDevice s = {}) { return sum(a, false, s); }
/// Returns the product; integers below 32 bits and bools are multiplied in int32 or uint32.
WEFT_API array prod(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array prod(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array prod(const array& a, bool keepdims, StreamOrDevice s = {});
inline array prod(const array& a, StreamOrDevice s = {}) { return prod(a, false, s); }
/// Returns the mean; integers are converted to float32.
WEFT_API array mean(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, bool keepdims, StreamOrDevice s = {});
inline array mean(const array& a, StreamOrDevice s = {}) { return mean(a, false, s); }
/// Returns the variance Σ|a - mean|² / (n - ddof); of complex numbers float32.
WEFT_API array var(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0,
                   StreamOrDevice s = {});
WEFT_API array var(const array& a, int axis, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
WEFT_API array var(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array var(const array& a, StreamOrDevice s = {}) { return var(a, false, 0, s); }
/// Returns the standard deviation √var(a).
WEFT_API array std(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0,
                   StreamOrDevice s = {});
WEFT_API array std(const array& a, int axis, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
WEFT_API array std(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array std(const array& a, StreamOrDevice s = {}) { return std(a, false, 0, s); }
/// Returns the largest element, NaN where there is one. Throws std::invalid_argument for an empty axis.
WEFT_API array max(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, bool keepdims, StreamOrDevice s = {});
inline array max(const array& a, StreamOrDevice s = {}) { return max(a, false, s); }
/// Returns the smallest element, NaN where there is one. Throws std::invalid_argument for an empty axis.
WEFT_API array min(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, bool keepdims, StreamOrDevice s = {});
inline array min(const array& a, StreamOrDevice s = {}) { return min(a, false, s); }
/// Returns min and max of the same axes.
inline std::tuple<array, array> minmax(const array& a, const std::vector<int>& axes, bool keepdims = false,
                                       StreamOrDevice s = {}) {
  return {min(a, axes, keepdims, s), max(a, axes, keepdims, s)};
}
inline std::tuple<array, array> minmax(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return {min(a, axis, keepdims, s), max(a, axis, keepdims, s)};
}
inline std::tuple<array, array> minmax(const array& a, bool keepdims, StreamOrDevice s = {}) {
  return {min(a, keepdims, s), max(a, keepdims, s)};
}
inline std::tuple<array, array> minmax(const array& a, StreamOrDevice s = {}) { return minmax(a, false, s); }
/// Returns the bitwise exclusive or of integers or bools, in a's dtype.
inline array reduce_xor(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {}) {
  return detail::reduce("reduce_xor", "xor", a, axes, keepdims, s);
}
inline array reduce_xor(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return detail::reduce("reduce_xor", "xor", a, std::vector<int>{axis}, keepdims, s);
}
inline array reduce_xor(const array& a, bool keepdims = false, StreamOrDevice s = {}) {
  return detail::reduce("reduce_xor", "xor", a, std::nullopt, keepdims, s);
}
/// Returns the position of the largest element along the axis, or in the flattened array, uint32: the first of equal
/// ones, or the first NaN. Throws std::invalid_argument for an empty axis.
WEFT_API array argmax(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array argmax(const array& a, bool keepdims, StreamOrDevice s = {});
inline array argmax(const array& a, StreamOrDevice s = {}) { return argmax(a, false, s); }
/// Returns the position of the smallest element, as argmax.
WEFT_API array argmin(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array argmin(const array& a, bool keepdims, StreamOrDevice s = {});
inline array argmin(const array& a, StreamOrDevice s = {}) { return argmin(a, false, s); }
/// Returns log Σ exp(a) without overflow. Throws std::invalid_argument for an empty axis.
WEFT_API array logsumexp(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, bool keepdims, StreamOrDevice s = {});
inline array logsumexp(const array& a, StreamOrDevice s = {}) { return logsumexp(a, false, s); }
/// Returns exp(a) / Σ exp(a), the sum over the axes (by default all), in a's shape. `precise` changes nothing: 16-bit
/// floats are computed in float32 in any case.
WEFT_API array softmax(const array& a, const std::vector<int>& axes, bool precise = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, int axis, bool precise = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, bool precise = false, StreamOrDevice s = {});
/// Returns the sum of `diagonal(a, offset, axis1, axis2)` (by default the main diagonals of axes 0 and 1), cast to
/// `dtype` first where one is given.
WEFT_API array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s = {});
WEFT_API array trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s = {});
WEFT_API array trace(const array& a, StreamOrDevice s = {});
/// Returns the median: the mean of the two middle elements where their number is even, NaN where there is a NaN.
/// Integers are converted to float32. Throws std::invalid_argument for an empty array.
WEFT_API array median(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array median(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array median(const array& a, bool keepdims, StreamOrDevice s = {});
inline array median(const array& a, StreamOrDevice s = {}) { return median(a, false, s); }

}  // namespace weft
