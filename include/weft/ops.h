#pragma once
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Array operations with MLX's names, argument order, promotion and broadcasting. Mistakes throw std::invalid_argument
/// (std::out_of_range for an axis of a reduction) when the graph is built, starting with "[op]" and naming shapes and
/// dtypes.
namespace weft {

// Creation
WEFT_API array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, double step, StreamOrDevice s = {});  ///< float32
WEFT_API array arange(double start, double stop, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, StreamOrDevice s = {});
WEFT_API array arange(double stop, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double stop, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, int step, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, StreamOrDevice s = {});
WEFT_API array arange(int stop, StreamOrDevice s = {});
/// `num` numbers from start to stop; without `endpoint` the last one is a step before stop.
WEFT_API array linspace(double start, double stop, int num, bool endpoint, Dtype dtype = float32,
                        StreamOrDevice s = {});
inline array linspace(double start, double stop, int num = 50, Dtype dtype = float32, StreamOrDevice s = {}) {
  return linspace(start, stop, num, true, dtype, s);
}
WEFT_API array full(Shape shape, array value, Dtype dtype, StreamOrDevice s = {});
WEFT_API array full(Shape shape, array value, StreamOrDevice s = {});
WEFT_API array full_like(const array& a, array value, Dtype dtype, StreamOrDevice s = {});
inline array full_like(const array& a, array value, StreamOrDevice s = {}) {
  return full_like(a, std::move(value), a.dtype(), s);
}
WEFT_API array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array zeros(const Shape& shape, StreamOrDevice s = {});
WEFT_API array zeros_like(const array& a, StreamOrDevice s = {});
inline array zeros_like(const array& a, Dtype dtype, StreamOrDevice s = {}) { return zeros(a.shape(), dtype, s); }
WEFT_API array ones(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array ones(const Shape& shape, StreamOrDevice s = {});
WEFT_API array ones_like(const array& a, StreamOrDevice s = {});
inline array ones_like(const array& a, Dtype dtype, StreamOrDevice s = {}) { return ones(a.shape(), dtype, s); }
WEFT_API array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
inline array eye(int n, Dtype dtype, StreamOrDevice s = {}) { return eye(n, n, 0, dtype, s); }
inline array eye(int n, int m, StreamOrDevice s = {}) { return eye(n, m, 0, float32, s); }
inline array eye(int n, int m, int k, StreamOrDevice s = {}) { return eye(n, m, k, float32, s); }
WEFT_API array eye(int n, StreamOrDevice s = {});
inline array identity(int n, Dtype dtype, StreamOrDevice s = {}) { return eye(n, n, 0, dtype, s); }
inline array identity(int n, StreamOrDevice s = {}) { return identity(n, float32, s); }
WEFT_API array tri(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
inline array tri(int n, Dtype dtype, StreamOrDevice s = {}) { return tri(n, n, 0, dtype, s); }
WEFT_API array tril(array x, int k = 0, StreamOrDevice s = {});
WEFT_API array triu(array x, int k = 0, StreamOrDevice s = {});
WEFT_API array diag(const array& a, int k = 0,
                    StreamOrDevice s = {});  ///< a matrix with the vector on diagonal k, or a matrix's diagonal k
/// Coordinates of a grid, one array for each vector; `sparse` ones keep extent 1 along the others' axes. indexing: "xy"
/// or "ij".
WEFT_API std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse = false,
                                     const std::string& indexing = "xy", StreamOrDevice s = {});
WEFT_API array hanning(int m, StreamOrDevice s = {});  ///< windows of m points, float32
WEFT_API array hamming(int m, StreamOrDevice s = {});
WEFT_API array bartlett(int m, StreamOrDevice s = {});
WEFT_API array blackman(int m, StreamOrDevice s = {});

// Type and graph
WEFT_API array astype(array a, Dtype dtype, StreamOrDevice s = {});
WEFT_API array view(const array& a, const Dtype& dtype,
                    StreamOrDevice s = {});  ///< the same bits; the last axis takes up another width
WEFT_API array copy(array a, StreamOrDevice s = {});
WEFT_API array stop_gradient(const array& a, StreamOrDevice s = {});
/// The same values laid out row-major (or, where allowed, as they lie if that is column-major) once they are evaluated.
WEFT_API array contiguous(const array& a, bool allow_col_major = false, StreamOrDevice s = {});
/// result[i, j, …] = element offset + i·strides[0] + j·strides[1] + … of `a` flattened. Positions outside of `a` are
/// refused.
WEFT_API array as_strided(const array& a, Shape shape, Strides strides, size_t offset, StreamOrDevice s = {});
/// `inputs` as they are; evaluating one of the results also evaluates `dependencies`.
WEFT_API std::vector<array> depends(const std::vector<array>& inputs, const std::vector<array>& dependencies);
/// The product of the sizes along `axes` (or one over it) as a scalar; symbolic lengths are taken from the call.
WEFT_API array number_of_elements(const array& a, std::vector<int> axes, bool inverted, Dtype dtype = int32,
                                  StreamOrDevice s = {});

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
WEFT_API array transpose(const array& a, std::vector<int> axes,
                         StreamOrDevice s = {});  ///< axis k of the result is axis axes[k] of a; each once
inline array transpose(const array& a, std::initializer_list<int> axes, StreamOrDevice s = {}) {
  return transpose(a, std::vector<int>(axes), s);
}
WEFT_API array transpose(const array& a, StreamOrDevice s = {});  ///< all axes in reverse order
WEFT_API array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});
WEFT_API array moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
WEFT_API array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
WEFT_API std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s = {});
WEFT_API array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array flip(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array flip(const array& a, StreamOrDevice s = {});
/// Elements move by `shift` and come in again at the other end. Without axes: of the flattened array; several axes take
/// one shift each, or all the same.
WEFT_API array roll(const array& a, int shift, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, StreamOrDevice s = {});
WEFT_API array roll(const array& a, int shift, int axis, StreamOrDevice s = {});
WEFT_API array roll(const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s = {});
WEFT_API array roll(const array& a, const Shape& shift, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array atleast_1d(const array& a, StreamOrDevice s = {});
WEFT_API array atleast_2d(const array& a, StreamOrDevice s = {});
WEFT_API array atleast_3d(const array& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_1d(const std::vector<array>& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_2d(const std::vector<array>& a, StreamOrDevice s = {});
WEFT_API std::vector<array> atleast_3d(const std::vector<array>& a, StreamOrDevice s = {});
/// Elements (i, i + offset) of the planes over axis1 and axis2, as the last axis.
WEFT_API array diagonal(const array& a, int offset = 0, int axis1 = 0, int axis2 = 1, StreamOrDevice s = {});
WEFT_API array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s = {});
WEFT_API array concatenate(std::vector<array> arrays, StreamOrDevice s = {});
WEFT_API array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s = {});
WEFT_API array stack(const std::vector<array>& arrays, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, int num_splits, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> split(const array& a, const Shape& indices, StreamOrDevice s = {});
WEFT_API std::vector<array> unstack(const array& a, int axis, StreamOrDevice s = {});
WEFT_API std::vector<array> unstack(const array& a, StreamOrDevice s = {});
WEFT_API array repeat(const array& a, int repeats, int axis, StreamOrDevice s = {});
WEFT_API array repeat(const array& a, int repeats, StreamOrDevice s = {});
WEFT_API array tile(const array& a, std::vector<int> reps, StreamOrDevice s = {});
/// mode: "constant" (of pad_value), "edge", "reflect" (without the edge) or "symmetric" (with it).
WEFT_API array pad(const array& a, const std::vector<int>& axes, const Shape& low_pad_size, const Shape& high_pad_size,
                   const array& pad_value = array(0), const std::string& mode = "constant", StreamOrDevice s = {});
WEFT_API array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
WEFT_API array pad(const array& a, const std::pair<int, int>& pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
WEFT_API array pad(const array& a, int pad_width, const array& pad_value = array(0),
                   const std::string& mode = "constant", StreamOrDevice s = {});
/// Strides may be negative; stop follows NumPy. A symbolic stop (weft::Dim of a Symbol) makes a symbolic axis.
WEFT_API array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s = {});
WEFT_API array slice(const array& a, Shape start, Shape stop, StreamOrDevice s = {});
WEFT_API array dynamic_slice(const array& a, const array& start, const std::vector<int>& axes, const Shape& slice_size,
                             StreamOrDevice s = {});
/// `start` holds one position for each axis in `axes`, known only when the slice is computed; the slice is moved inside
/// where it would leave the array. (Takes nothing but an array for `start`, so that slice(a, {0}, {2}, {1}) means
/// sizes.)
template <std::same_as<array> A>
array slice(const array& a, const A& start, std::vector<int> axes, Shape slice_size, StreamOrDevice s = {}) {
  return dynamic_slice(a, start, axes, slice_size, s);
}

// Indexing
/// `src` with the slice replaced by `update`, which is broadcast to it and cast; strides may be negative. The others
/// combine the update with what is there.
WEFT_API array slice_update(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                            StreamOrDevice s = {});
WEFT_API array slice_update(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
WEFT_API array slice_update_add(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_add(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
WEFT_API array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                 StreamOrDevice s = {});
WEFT_API array slice_update_prod(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
WEFT_API array slice_update_max(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_max(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
WEFT_API array slice_update_min(const array& src, const array& update, Shape start, Shape stop, Shape strides,
                                StreamOrDevice s = {});
WEFT_API array slice_update_min(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
/// `start` is an int32 array with one position for each axis in `axes`: computed on the device, so nothing is traced
/// again when it changes.
WEFT_API array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes,
                            StreamOrDevice s = {});
WEFT_API array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes,
                      const Shape& slice_sizes, StreamOrDevice s = {});
inline array gather(const array& a, const array& indices, int axis, const Shape& slice_sizes, StreamOrDevice s = {}) {
  return gather(a, std::vector<array>{indices}, std::vector<int>{axis}, slice_sizes, s);
}
WEFT_API array take(const array& a, const array& indices, int axis, StreamOrDevice s = {});
WEFT_API array take(const array& a, const array& indices, StreamOrDevice s = {});
WEFT_API array take(const array& a, int index, int axis, StreamOrDevice s = {});
WEFT_API array take(const array& a, int index, StreamOrDevice s = {});
WEFT_API array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s = {});
WEFT_API array scatter(const array& a, const std::vector<array>& indices, const array& updates,
                       const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array scatter_add(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array scatter_max(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array scatter_min(const array& a, const std::vector<array>& indices, const array& updates,
                           const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array scatter_prod(const array& a, const std::vector<array>& indices, const array& updates,
                            const std::vector<int>& axes, StreamOrDevice s = {});
inline array scatter(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
inline array scatter_add(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_add(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
inline array scatter_prod(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_prod(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
inline array scatter_max(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_max(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
inline array scatter_min(const array& a, const array& indices, const array& updates, int axis, StreamOrDevice s = {}) {
  return scatter_min(a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}
/// a with a[…, indices[…, j, …], …] = (or +=) values[…, j, …] along the axis.
WEFT_API array put_along_axis(const array& a, const array& indices, const array& values, int axis,
                              StreamOrDevice s = {});
WEFT_API array scatter_add_axis(const array& a, const array& indices, const array& values, int axis,
                                StreamOrDevice s = {});
/// Elements where the mask is true, in row-major order, are replaced by those of `values` one after the other. The mask
/// covers the first axes of a; values have the remaining ones, with one more in front for a row for each element of the
/// mask that is true, or are broadcast.
WEFT_API array masked_scatter(const array& a, const array& mask, const array& values, StreamOrDevice s = {});
WEFT_API array where(const array& condition, const array& x, const array& y, StreamOrDevice s = {});

// Comparison and logic
WEFT_API array equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array not_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array greater(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array greater_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array less(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array less_equal(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s = {});
inline array array_equal(const array& a, const array& b, StreamOrDevice s = {}) { return array_equal(a, b, false, s); }
WEFT_API array isclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                       StreamOrDevice s = {});
WEFT_API array allclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                        StreamOrDevice s = {});
WEFT_API array isnan(const array& a, StreamOrDevice s = {});
WEFT_API array isinf(const array& a, StreamOrDevice s = {});
WEFT_API array isposinf(const array& a, StreamOrDevice s = {});
WEFT_API array isneginf(const array& a, StreamOrDevice s = {});
WEFT_API array isfinite(const array& a, StreamOrDevice s = {});
WEFT_API array logical_not(const array& a, StreamOrDevice s = {});
WEFT_API array logical_and(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array logical_or(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array logical_xor(const array& a, const array& b, StreamOrDevice s = {});

// Arithmetic
WEFT_API array add(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array subtract(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array multiply(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array divide(const array& a, const array& b,
                      StreamOrDevice s = {});  ///< floats; integers are promoted to float32
WEFT_API array floor_divide(const array& a, const array& b,
                            StreamOrDevice s = {});  ///< rounds toward minus infinity, integers too (as divmod does)
WEFT_API array remainder(const array& a, const array& b, StreamOrDevice s = {});  ///< sign of the divisor
WEFT_API std::vector<array> divmod(const array& a, const array& b,
                                   StreamOrDevice s = {});                      ///< {floor_divide, remainder}
WEFT_API array maximum(const array& a, const array& b, StreamOrDevice s = {});  ///< NaN wins
WEFT_API array minimum(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array power(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array clip(const array& a, const std::optional<array>& low = std::nullopt,
                    const std::optional<array>& high = std::nullopt, StreamOrDevice s = {});
/// NaN and the infinities replaced; by default an infinity becomes the largest finite number of its sign.
WEFT_API array nan_to_num(const array& a, float nan = 0, const std::optional<float>& posinf = std::nullopt,
                          const std::optional<float>& neginf = std::nullopt, StreamOrDevice s = {});
WEFT_API array bitwise_and(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array bitwise_or(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array bitwise_xor(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array left_shift(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array right_shift(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array bitwise_invert(const array& a, StreamOrDevice s = {});
inline array positive(const array& a, StreamOrDevice = {}) { return a; }
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
WEFT_API array expm1(const array& a, StreamOrDevice s = {});
WEFT_API array log2(const array& a, StreamOrDevice s = {});
WEFT_API array log10(const array& a, StreamOrDevice s = {});
WEFT_API array log1p(const array& a, StreamOrDevice s = {});
WEFT_API array tan(const array& a, StreamOrDevice s = {});
WEFT_API array arcsin(const array& a, StreamOrDevice s = {});
WEFT_API array arccos(const array& a, StreamOrDevice s = {});
WEFT_API array arctan(const array& a, StreamOrDevice s = {});
WEFT_API array sinh(const array& a, StreamOrDevice s = {});
WEFT_API array cosh(const array& a, StreamOrDevice s = {});
WEFT_API array arcsinh(const array& a, StreamOrDevice s = {});
WEFT_API array arccosh(const array& a, StreamOrDevice s = {});
WEFT_API array arctanh(const array& a, StreamOrDevice s = {});
WEFT_API array arctan2(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array logaddexp(const array& a, const array& b,
                         StreamOrDevice s = {});  ///< log(exp(a) + exp(b)), without overflow
WEFT_API array trunc(const array& a, StreamOrDevice s = {});
/// Parts of complex numbers; of real ones: themselves, and zeros. Gradients are MLX's and PyTorch's: of a real function
/// f of z = x + iy it is ∂f/∂x + i ∂f/∂y.
WEFT_API array real(const array& a, StreamOrDevice s = {});
WEFT_API array imag(const array& a, StreamOrDevice s = {});
WEFT_API array conjugate(const array& a, StreamOrDevice s = {});
/// The bits of float8_e4m3, saturating at ±448, and back.
WEFT_API array to_fp8(const array& a, StreamOrDevice s = {});
WEFT_API array from_fp8(const array& a, Dtype dtype = bfloat16, StreamOrDevice s = {});
WEFT_API array floor(const array& a, StreamOrDevice s = {});
WEFT_API array ceil(const array& a, StreamOrDevice s = {});
WEFT_API array round(const array& a, StreamOrDevice s = {});  ///< half to even
WEFT_API array round(const array& a, int decimals, StreamOrDevice s = {});
WEFT_API array degrees(const array& a, StreamOrDevice s = {});
WEFT_API array radians(const array& a, StreamOrDevice s = {});

// Reductions. Without axes: over all of them, to a scalar. sum and prod of integers are at least 32 bits wide, as in
// MLX.
WEFT_API array all(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array all(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array all(const array& a, bool keepdims, StreamOrDevice s = {});
inline array all(const array& a, StreamOrDevice s = {}) { return all(a, false, s); }
WEFT_API array any(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array any(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array any(const array& a, bool keepdims, StreamOrDevice s = {});
inline array any(const array& a, StreamOrDevice s = {}) { return any(a, false, s); }
WEFT_API array count_nonzero(const array& a, const std::vector<int>& axes, bool keepdims = false,
                             StreamOrDevice s = {});
WEFT_API array count_nonzero(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array count_nonzero(const array& a, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
inline array sum(const array& a, StreamOrDevice s = {}) { return sum(a, false, s); }
WEFT_API array prod(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array prod(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array prod(const array& a, bool keepdims, StreamOrDevice s = {});
inline array prod(const array& a, StreamOrDevice s = {}) { return prod(a, false, s); }
WEFT_API array mean(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array mean(const array& a, bool keepdims, StreamOrDevice s = {});
inline array mean(const array& a, StreamOrDevice s = {}) { return mean(a, false, s); }
WEFT_API array var(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0,
                   StreamOrDevice s = {});
WEFT_API array var(const array& a, int axis, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
WEFT_API array var(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array var(const array& a, StreamOrDevice s = {}) { return var(a, false, 0, s); }
WEFT_API array std(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0,
                   StreamOrDevice s = {});
WEFT_API array std(const array& a, int axis, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
WEFT_API array std(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array std(const array& a, StreamOrDevice s = {}) { return std(a, false, 0, s); }
WEFT_API array max(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array max(const array& a, bool keepdims, StreamOrDevice s = {});
inline array max(const array& a, StreamOrDevice s = {}) { return max(a, false, s); }
WEFT_API array min(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array min(const array& a, bool keepdims, StreamOrDevice s = {});
inline array min(const array& a, StreamOrDevice s = {}) { return min(a, false, s); }
WEFT_API array argmax(const array& a, int axis, bool keepdims = false,
                      StreamOrDevice s = {});  ///< the first of equals, or the first NaN; uint32
WEFT_API array argmax(const array& a, bool keepdims, StreamOrDevice s = {});  ///< among all elements in a row
inline array argmax(const array& a, StreamOrDevice s = {}) { return argmax(a, false, s); }
WEFT_API array argmin(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array argmin(const array& a, bool keepdims, StreamOrDevice s = {});
inline array argmin(const array& a, StreamOrDevice s = {}) { return argmin(a, false, s); }
WEFT_API array logsumexp(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array logsumexp(const array& a, bool keepdims, StreamOrDevice s = {});
inline array logsumexp(const array& a, StreamOrDevice s = {}) { return logsumexp(a, false, s); }
WEFT_API array softmax(const array& a, const std::vector<int>& axes, bool precise = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, int axis, bool precise = false, StreamOrDevice s = {});
WEFT_API array softmax(const array& a, bool precise = false, StreamOrDevice s = {});  ///< over all axes
WEFT_API array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s = {});
WEFT_API array trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s = {});
WEFT_API array trace(const array& a, StreamOrDevice s = {});

// Order. Ascending and stable; NaN comes last. Without an axis: of all elements in a row.
WEFT_API array sort(const array& a, int axis, StreamOrDevice s = {});
WEFT_API array sort(const array& a, StreamOrDevice s = {});
WEFT_API array argsort(const array& a, int axis, StreamOrDevice s = {});  ///< uint32
WEFT_API array argsort(const array& a, StreamOrDevice s = {});
/// What stands at place `kth` of the sorted row stands there; nothing after it is smaller, nothing before it greater.
WEFT_API array partition(const array& a, int kth, int axis, StreamOrDevice s = {});
WEFT_API array partition(const array& a, int kth, StreamOrDevice s = {});
WEFT_API array argpartition(const array& a, int kth, int axis, StreamOrDevice s = {});
WEFT_API array argpartition(const array& a, int kth, StreamOrDevice s = {});
/// The k greatest elements, in ascending order.
WEFT_API array topk(const array& a, int k, int axis, StreamOrDevice s = {});
WEFT_API array topk(const array& a, int k, StreamOrDevice s = {});
/// The mean of the two middle elements where their number is even; NaN where there is one.
WEFT_API array median(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array median(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
WEFT_API array median(const array& a, bool keepdims, StreamOrDevice s = {});
inline array median(const array& a, StreamOrDevice s = {}) { return median(a, false, s); }
/// Where each element of v would be put into the sorted a (n) so that it stays sorted: before its equals ("left"), or
/// after them ("right"). uint32.
WEFT_API array searchsorted(const array& a, const array& v, const std::string& side = "left", StreamOrDevice s = {});

// Cumulative operations: each element with all before it (`reverse`: after it); not `inclusive`: without the element
// itself. Without an axis: over all elements in a row. Results have a's dtype. cumsum and cumprod first cast to `dtype`
// where one is given; cumsum of bool is int32.
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
WEFT_API array cummax(const array& a, int axis, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array cummax(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array cummin(const array& a, int axis, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array cummin(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
WEFT_API array logcumsumexp(const array& a, int axis, bool reverse = false, bool inclusive = true,
                            StreamOrDevice s = {});
WEFT_API array logcumsumexp(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {});
/// Differences of neighbours along the axis, n times.
WEFT_API array diff(const array& a, int n = 1, int axis = -1, StreamOrDevice s = {});

// Products of matrices; integers are refused.
WEFT_API array matmul(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array addmm(array c, array a, array b, const float& alpha = 1, const float& beta = 1, StreamOrDevice s = {});
WEFT_API array outer(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array inner(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array vecdot(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
/// Contracts the last `axis` axes of a with the first of b, or the axes that are named, pairwise.
WEFT_API array tensordot(const array& a, const array& b, const int axis = 2, StreamOrDevice s = {});
WEFT_API array tensordot(const array& a, const array& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b,
                         StreamOrDevice s = {});
WEFT_API array kron(const array& a, const array& b, StreamOrDevice s = {});
/// The last axis times a Hadamard matrix of ±1 and `scale` (default 1/√n). n is m·2^k with m of 1, 12, 20, 28.
WEFT_API array hadamard_transform(const array& a, std::optional<float> scale = std::nullopt, StreamOrDevice s = {});
/// matmul with blocks of block_size rows and columns masked out (bool) or scaled (float): of the result, of a and of b.
WEFT_API array block_masked_mm(array a, array b, int block_size, std::optional<array> mask_out = std::nullopt,
                               std::optional<array> mask_lhs = std::nullopt,
                               std::optional<array> mask_rhs = std::nullopt, StreamOrDevice s = {});
/// Products of the matrices that the indices choose among the flattened leading axes of a and of b.
WEFT_API array gather_mm(array a, array b, std::optional<array> lhs_indices = std::nullopt,
                         std::optional<array> rhs_indices = std::nullopt, bool sorted_indices = false,
                         StreamOrDevice s = {});
/// a (M, K) times b (K, N) for each range [begin, end) of K in segments (..., 2): (..., M, N).
WEFT_API array segmented_mm(array a, array b, array segments, StreamOrDevice s = {});

// Convolutions of channels-last arrays: input [batch, space…, channels], weight [channels out, space…, channels in /
// groups], result [batch, space…, channels out]. Cross-correlations, as everywhere in machine learning; `flip` turns
// the kernel round. Lists may be empty (the default) or hold one number for all axes.
WEFT_API array conv_general(array input, array weight, std::vector<int> stride, std::vector<int> padding_lo,
                            std::vector<int> padding_hi, std::vector<int> kernel_dilation,
                            std::vector<int> input_dilation, int groups = 1, bool flip = false, StreamOrDevice s = {});
inline array conv_general(const array& input, const array& weight, std::vector<int> stride = {},
                          std::vector<int> padding = {}, std::vector<int> kernel_dilation = {},
                          std::vector<int> input_dilation = {}, int groups = 1, bool flip = false,
                          StreamOrDevice s = {}) {
  return conv_general(input, weight, std::move(stride), padding, padding, std::move(kernel_dilation),
                      std::move(input_dilation), groups, flip, s);
}
WEFT_API array conv1d(const array& input, const array& weight, int stride = 1, int padding = 0, int dilation = 1,
                      int groups = 1, StreamOrDevice s = {});
WEFT_API array conv2d(const array& input, const array& weight, const std::pair<int, int>& stride = {1, 1},
                      const std::pair<int, int>& padding = {0, 0}, const std::pair<int, int>& dilation = {1, 1},
                      int groups = 1, StreamOrDevice s = {});
WEFT_API array conv3d(const array& input, const array& weight, const std::tuple<int, int, int>& stride = {1, 1, 1},
                      const std::tuple<int, int, int>& padding = {0, 0, 0},
                      const std::tuple<int, int, int>& dilation = {1, 1, 1}, int groups = 1, StreamOrDevice s = {});
/// The transpose of a convolution with this stride, padding and dilation; the weight is [channels out, space…, channels
/// in] of this direction.
WEFT_API array conv_transpose1d(const array& input, const array& weight, int stride = 1, int padding = 0,
                                int dilation = 1, int output_padding = 0, int groups = 1, StreamOrDevice s = {});
WEFT_API array conv_transpose2d(const array& input, const array& weight, const std::pair<int, int>& stride = {1, 1},
                                const std::pair<int, int>& padding = {0, 0},
                                const std::pair<int, int>& dilation = {1, 1},
                                const std::pair<int, int>& output_padding = {0, 0}, int groups = 1,
                                StreamOrDevice s = {});
WEFT_API array conv_transpose3d(const array& input, const array& weight,
                                const std::tuple<int, int, int>& stride = {1, 1, 1},
                                const std::tuple<int, int, int>& padding = {0, 0, 0},
                                const std::tuple<int, int, int>& dilation = {1, 1, 1},
                                const std::tuple<int, int, int>& output_padding = {0, 0, 0}, int groups = 1,
                                StreamOrDevice s = {});

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
WEFT_API array operator<<(const array& a, const array& b);
WEFT_API array operator>>(const array& a, const array& b);
WEFT_API array operator~(const array& a);

}  // namespace weft
