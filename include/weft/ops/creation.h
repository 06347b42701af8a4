#pragma once
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Makes arrays from numbers: ranges, constants, matrices with ones on a diagonal, grids, windows. Part of weft/ops.h,
/// whose head has the dtype rules. A negative size throws std::invalid_argument.
namespace weft {

/// Returns the vector start, start + step, … with ⌈(stop - start) / step⌉ elements; start is 0 and step is 1 where they
/// are not given. Doubles without a dtype make float32, ints make int32. Throws std::invalid_argument for step 0, for
/// numbers that are not finite, and for bool_.
WEFT_API array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, double step, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double start, double stop, StreamOrDevice s = {});
WEFT_API array arange(double stop, Dtype dtype, StreamOrDevice s = {});
WEFT_API array arange(double stop, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, int step, StreamOrDevice s = {});
WEFT_API array arange(int start, int stop, StreamOrDevice s = {});
WEFT_API array arange(int stop, StreamOrDevice s = {});
/// Returns `num` evenly spaced numbers from start to stop, a vector. Without `endpoint` the last one is one step before
/// stop. Throws std::invalid_argument for bool_ and complex dtypes.
WEFT_API array linspace(double start, double stop, int num, bool endpoint, Dtype dtype = float32,
                        StreamOrDevice s = {});
inline array linspace(double start, double stop, int num = 50, Dtype dtype = float32, StreamOrDevice s = {}) {
  return linspace(start, stop, num, true, dtype, s);
}
/// Returns `value`, broadcast to `shape`, cast to `dtype` (by default the value's own).
WEFT_API array full(Shape shape, array value, Dtype dtype, StreamOrDevice s = {});
WEFT_API array full(Shape shape, array value, StreamOrDevice s = {});
/// Returns `value`, broadcast to a's shape, cast to `dtype` (by default a's).
WEFT_API array full_like(const array& a, array value, Dtype dtype, StreamOrDevice s = {});
inline array full_like(const array& a, array value, StreamOrDevice s = {}) {
  return full_like(a, std::move(value), a.dtype(), s);
}
/// Returns zeros of `shape`, float32 by default.
WEFT_API array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array zeros(const Shape& shape, StreamOrDevice s = {});
/// Returns zeros of a's shape, in a's dtype by default.
WEFT_API array zeros_like(const array& a, StreamOrDevice s = {});
inline array zeros_like(const array& a, Dtype dtype, StreamOrDevice s = {}) { return zeros(a.shape(), dtype, s); }
/// Returns ones of `shape`, float32 by default.
WEFT_API array ones(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
WEFT_API array ones(const Shape& shape, StreamOrDevice s = {});
/// Returns ones of a's shape, in a's dtype by default.
WEFT_API array ones_like(const array& a, StreamOrDevice s = {});
inline array ones_like(const array& a, Dtype dtype, StreamOrDevice s = {}) { return ones(a.shape(), dtype, s); }
/// Returns an n × m matrix (m = n by default) with ones on diagonal k and zeros elsewhere. k > 0 lies above the main
/// diagonal, k < 0 below it; 0 by default. float32 by default.
WEFT_API array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
inline array eye(int n, Dtype dtype, StreamOrDevice s = {}) { return eye(n, n, 0, dtype, s); }
inline array eye(int n, int m, StreamOrDevice s = {}) { return eye(n, m, 0, float32, s); }
inline array eye(int n, int m, int k, StreamOrDevice s = {}) { return eye(n, m, k, float32, s); }
WEFT_API array eye(int n, StreamOrDevice s = {});
/// Returns the n × n identity matrix, float32 by default.
inline array identity(int n, Dtype dtype, StreamOrDevice s = {}) { return eye(n, n, 0, dtype, s); }
inline array identity(int n, StreamOrDevice s = {}) { return identity(n, float32, s); }
/// Returns an n × m matrix (m = n by default) with ones at and below diagonal k and zeros above it, float32 by default.
WEFT_API array tri(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
inline array tri(int n, Dtype dtype, StreamOrDevice s = {}) { return tri(n, n, 0, dtype, s); }
/// Returns the lower triangles of x [..., n, m]: elements above diagonal k become 0.
WEFT_API array tril(array x, int k = 0, StreamOrDevice s = {});
/// Returns the upper triangles of x [..., n, m]: elements below diagonal k become 0.
WEFT_API array triu(array x, int k = 0, StreamOrDevice s = {});
/// Returns a square matrix with the vector `a` on diagonal k, or diagonal k of the matrix `a` as a vector. Throws
/// std::invalid_argument for other ranks.
WEFT_API array diag(const array& a, int k = 0, StreamOrDevice s = {});
/// Returns the coordinates of a grid, one array for each vector. Each has one axis for each vector, or keeps extent 1
/// along the axes of the others where `sparse`. "xy" swaps the first two axes, "ij" keeps the order of the vectors.
WEFT_API std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse = false,
                                     const std::string& indexing = "xy", StreamOrDevice s = {});
/// Returns the Hann window 0.5 - 0.5 cos(2πi / (m - 1)), float32 [m]. All windows are empty for m < 1 and {1} for m
/// = 1.
WEFT_API array hanning(int m, StreamOrDevice s = {});
/// Returns the Hamming window 0.54 - 0.46 cos(2πi / (m - 1)), float32 [m].
WEFT_API array hamming(int m, StreamOrDevice s = {});
/// Returns the triangular window 1 - |2i / (m - 1) - 1|, float32 [m].
WEFT_API array bartlett(int m, StreamOrDevice s = {});
/// Returns the Blackman window 0.42 - 0.5 cos(2πi / (m - 1)) + 0.08 cos(4πi / (m - 1)), float32 [m].
WEFT_API array blackman(int m, StreamOrDevice s = {});

}  // namespace weft
