#pragma once
#include "weft/array.h"

/// Starting values with MLX's names, defaults and draws: for one seed of the default random sequence they are the
/// numbers of MLX's. Each has the shape and dtype it is asked for (a floating one; float32 by default). The last axis
/// of a weight is what comes in, its first what goes out, and the axes between (a convolution's window) multiply both
/// fans.
namespace weft::nn::init {

WEFT_API array normal(const Shape& shape, float mean = 0, float std = 1, Dtype dtype = float32);
WEFT_API array uniform(const Shape& shape, float low = 0, float high = 1, Dtype dtype = float32);
WEFT_API array constant(const Shape& shape, float value, Dtype dtype = float32);
WEFT_API array identity(const Shape& shape, Dtype dtype = float32);  ///< square matrices

enum class Fan { in, out };
/// std = gain √(2 / (fan_in + fan_out)).
WEFT_API array glorot_normal(const Shape& shape, float gain = 1, Dtype dtype = float32);
/// bound = gain √(6 / (fan_in + fan_out)).
WEFT_API array glorot_uniform(const Shape& shape, float gain = 1, Dtype dtype = float32);
/// std = gain / √fan.
WEFT_API array he_normal(const Shape& shape, Fan mode = Fan::in, float gain = 1, Dtype dtype = float32);
/// bound = gain √(3 / fan).
WEFT_API array he_uniform(const Shape& shape, Fan mode = Fan::in, float gain = 1, Dtype dtype = float32);
/// A matrix of normal numbers, in each row of which a share `sparsity` in [0, 1] is zero (rounded up).
WEFT_API array sparse(const Shape& shape, double sparsity, float mean = 0, float std = 1, Dtype dtype = float32);
/// Rows (or columns, whichever are fewer) orthonormal, times gain: part of the Q of a square normal matrix, with the
/// signs that make R's diagonal positive. Axes after the first count as columns (MLX takes matrices alone).
WEFT_API array orthogonal(const Shape& shape, float gain = 1, Dtype dtype = float32);

}  // namespace weft::nn::init
