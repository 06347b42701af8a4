#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Array operations with MLX's names, argument order, promotion and broadcasting. Mistakes throw std::invalid_argument (std::out_of_range for an axis of
/// a reduction) when the graph is built, starting with "[op]" and naming shapes and dtypes.
namespace weft {

// Creation
WEFT_API array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, int step, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, StreamOrDevice s = {});
WEFT_API array arange(int stop, StreamOrDevice s = {});
WEFT_API array full(Shape shape, array value, Dtype dtype, StreamOrDevice s = {});
WEFT_API array full(Shape shape, array value, StreamOrDevice s = {});
WEFT_API array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array zeros(const Shape& shape, StreamOrDevice s = {});
WEFT_API array zeros_like(const array& a, StreamOrDevice s = {});
WEFT_API array ones(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array ones(const Shape& shape, StreamOrDevice s = {});
WEFT_API array ones_like(const array& a, StreamOrDevice s = {});
WEFT_API array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
WEFT_API array eye(int n, StreamOrDevice s = {});
WEFT_API array tri(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
WEFT_API array tril(array x, int k = 0, StreamOrDevice s = {});
WEFT_API array triu(array x, int k = 0, StreamOrDevice s = {});

// Type and graph
WEFT_API array astype(array a, Dtype dtype, StreamOrDevice s = {});
WEFT_API array view(const array& a, const Dtype& dtype, StreamOrDevice s = {});  ///< the same bits; equal widths
WEFT_API array copy(array a, StreamOrDevice s = {});
WEFT_API array stop_gradient(array a, StreamOrDevice s = {});

// Shape
WEFT_API array reshape(const array& a, Shape shape, StreamOrDevice s = {});  ///< one size may be -1
WEFT_API array flatten(const array& a, int start_axis, int end_axis = -1, StreamOrDevice s = {});
WEFT_API array flatten(const array& a, StreamOrDevice s = {});
WEFT_API array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s = {});
WEFT_API array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array squeeze(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array squeeze(const array& a, StreamOrDevice s = {});
WEFT_API array expand_dims(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array expand_dims(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array transpose(const array& a, std::vector<int> axes, StreamOrDevice s = {});
WEFT_API array transpose(const array& a, StreamOrDevice s = {});
WEFT_API array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});
WEFT_API array moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
WEFT_API array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
WEFT_API std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s = {});
WEFT_API array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s = {});
WEFT_API array concatenate(std::vector<array> arrays, StreamOrDevice s = {});
WEFT_API array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s = {});
WEFT_API array stack(const std::vector<array>& arrays, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, int num_splits, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, const std::vector<int64_t>& indices, int axis, StreamOrDevice s = {});
WEFT_API array repeat(const array& a, int repeats, int axis, StreamOrDevice s = {});
WEFT_API array tile(const array& a, std::vector<int> reps, StreamOrDevice s = {});
WEFT_API array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const array& pad_value = array(0), StreamOrDevice s = {});
/// Strides may be negative; stop follows NumPy. A symbolic stop (weft::Dim of a Symbol) makes a symbolic axis.
WEFT_API array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s = {});
WEFT_API array slice(const array& a, Shape start, Shape stop, StreamOrDevice s = {});

// Indexing
WEFT_API array slice_update(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// `start` is an int32 array with one position for each axis in `axes`: computed on the device, so nothing is traced again when it changes.
WEFT_API array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes, StreamOrDevice s = {});
WEFT_API array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes, const Shape& slice_sizes, StreamOrDevice s = {});
WEFT_API array take(const array& a, const array& indices, int axis, StreamOrDevice s = {});
WEFT_API array take(const array& a, const array& indices, StreamOrDevice s = {});
WEFT_API array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s = {});
WEFT_API array scatter(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array scatter_add(const array& a, const std::vector<array>& indices, const array& updates, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array where(const array& condition, const array& x, const array& y, StreamOrDevice s = {});

// Comparison and logic
WEFT_API array equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array not_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array greater(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array greater_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array less(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array less_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s = {});
WEFT_API array allclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false, StreamOrDevice s = {});
WEFT_API array isnan(const array& a, StreamOrDevice s = {});
WEFT_API array isinf(const array& a, StreamOrDevice s = {});
WEFT_API array isfinite(const array& a, StreamOrDevice s = {});
WEFT_API array logical_not(const array& a, StreamOrDevice s = {});
WEFT_API array logical_and(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array logical_or(const array& a, const array& b, StreamOrDevice s = {});

// Arithmetic
WEFT_API array add(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array subtract(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array multiply(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array divide(const array& a, const array& b, StreamOrDevice s = {});        ///< floats; integers are promoted to float32
WEFT_API array floor_divide(const array& a, const array& b, StreamOrDevice s = {});  ///< rounds toward minus infinity, integers too (as divmod does)
WEFT_API array remainder(const array& a, const array& b, StreamOrDevice s = {});     ///< sign of the divisor
WEFT_API array maximum(const array& a, const array& b, StreamOrDevice s = {});       ///< NaN wins
WEFT_API array minimum(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array power(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array clip(const array& a, const std::optional<array>& low, const std::optional<array>& high, StreamOrDevice s = {});
WEFT_API array bitwise_and(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array bitwise_or(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array bitwise_xor(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array left_shift(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array right_shift(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array negative(const array& a, StreamOrDevice s = {});
WEFT_API array abs(const array& a, StreamOrDevice s = {});
WEFT_API array sign(const array& a, StreamOrDevice s = {});
WEFT_API array square(const array& a, StreamOrDevice s = {});
WEFT_API array reciprocal(const array& a, StreamOrDevice s = {});
WEFT_API array sqrt(const array& a, StreamOrDevice s = {});
WEFT_API array rsqrt(const array& a, StreamOrDevice s = {});
WEFT_API array exp(const array& a, StreamOrDevice s = {});
WEFT_API array log(const array& a, StreamOrDevice s = {});
WEFT_API array sin(const array& a, StreamOrDevice s = {});
WEFT_API array cos(const array& a, StreamOrDevice s = {});
WEFT_API array tanh(const array& a, StreamOrDevice s = {});
WEFT_API array erf(const array& a, StreamOrDevice s = {});
WEFT_API array erfinv(const array& a, StreamOrDevice s = {});
WEFT_API array sigmoid(const array& a, StreamOrDevice s = {});
WEFT_API array floor(const array& a, StreamOrDevice s = {});
WEFT_API array ceil(const array& a, StreamOrDevice s = {});
WEFT_API array round(const array& a, StreamOrDevice s = {});  ///< half to even

// Reductions. Without axes: over all of them, to a scalar. sum and prod of integers are at least 32 bits wide, as in MLX.
WEFT_API array all(const array& a, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array any(const array& a, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
inline array sum(const array& a, StreamOrDevice s = {}) { return sum(a, false, s); }
WEFT_API array prod(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, bool keepdims, StreamOrDevice s = {});
inline array mean(const array& a, StreamOrDevice s = {}) { return mean(a, false, s); }
WEFT_API array var(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
WEFT_API array max(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, bool keepdims, StreamOrDevice s = {});
inline array max(const array& a, StreamOrDevice s = {}) { return max(a, false, s); }
WEFT_API array min(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, bool keepdims, StreamOrDevice s = {});
inline array min(const array& a, StreamOrDevice s = {}) { return min(a, false, s); }
WEFT_API array argmax(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});  ///< the first of equals; uint32
WEFT_API array argmin(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, const std::vector<int>& axes, bool precise = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, int axis, bool precise = false, StreamOrDevice s = {});

// Products of matrices; integers are refused.
WEFT_API array matmul(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array addmm(array c, array a, array b, const float& alpha = 1, const float& beta = 1, StreamOrDevice s = {});
WEFT_API array outer(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array inner(const array& a, const array& b, StreamOrDevice s = {});

// Operators
WEFT_API array operator+(const array& a, const array& b);
WEFT_API array operator-(const array& a, const array& b);
WEFT_API array operator*(const array& a, const array& b);
WEFT_API array operator/(const array& a, const array& b);
WEFT_API array operator%(const array& a, const array& b);
WEFT_API array operator-(const array& a);
WEFT_API array operator==(const array& a, const array& b);
WEFT_API array operator!=(const array& a, const array& b);
WEFT_API array operator<(const array& a, const array& b);
WEFT_API array operator<=(const array& a, const array& b);
WEFT_API array operator>(const array& a, const array& b);
WEFT_API array operator>=(const array& a, const array& b);
WEFT_API array operator&&(const array& a, const array& b);
WEFT_API array operator||(const array& a, const array& b);
WEFT_API array operator&(const array& a, const array& b);
WEFT_API array operator|(const array& a, const array& b);
WEFT_API array operator^(const array& a, const array& b);

}  // namespace weft
