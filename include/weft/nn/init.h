#pragma once
#include "weft/array.h"

/// Starting values, float32, from the default random sequence. Fans follow PyTorch and MLX: the last axis of a weight is what comes in, its first what
/// goes out, and the axes between (a convolution's window) multiply both.
namespace weft::nn::init {

WEFT_API array normal(const Shape& shape, float mean = 0, float std = 1);
WEFT_API array uniform(const Shape& shape, float low = 0, float high = 1);
WEFT_API array constant(const Shape& shape, float value);
WEFT_API array identity(const Shape& shape);  ///< square matrices

enum class Fan { in, out };
WEFT_API array glorot_normal(const Shape& shape, float gain = 1);   ///< std = gain √(2 / (fan_in + fan_out))
WEFT_API array glorot_uniform(const Shape& shape, float gain = 1);  ///< bound = gain √(6 / (fan_in + fan_out))
WEFT_API array he_normal(const Shape& shape, Fan mode = Fan::in, float gain = 1);   ///< std = gain / √fan
WEFT_API array he_uniform(const Shape& shape, Fan mode = Fan::in, float gain = 1);  ///< bound = gain √(3 / fan)
/// Normal, with a share `sparsity` of each column zero (rounded up).
WEFT_API array sparse(const Shape& shape, float sparsity, float mean = 0, float std = 1);
/// Rows (or columns, whichever are fewer) orthonormal, times gain; axes after the first count as columns.
WEFT_API array orthogonal(const Shape& shape, float gain = 1);

}  // namespace weft::nn::init
