#pragma once
#include "weft/array.h"

/// Initial values with MLX's names, defaults and draws: for one seed of the default random sequence they are the
/// numbers of MLX's. Each has the shape and dtype it is asked for (a floating one; float32 by default). fan_in is the
/// last axis of a weight, fan_out the first, each times the axes between (a convolution's kernel).
namespace weft::nn::init {

/// Returns normal numbers.
WEFT_API array normal(const Shape& shape, float mean = 0, float std = 1, Dtype dtype = float32);
/// Returns uniform numbers in [low, high).
WEFT_API array uniform(const Shape& shape, float low = 0, float high = 1, Dtype dtype = float32);
/// Returns `value` everywhere.
WEFT_API array constant(const Shape& shape, float value, Dtype dtype = float32);
/// Returns an identity matrix; throws std::invalid_argument unless the shape is that of a square matrix.
WEFT_API array identity(const Shape& shape, Dtype dtype = float32);

/// Which fan of a weight its scale depends on.
enum class Fan { in, out };
/// Returns normal numbers with std = gain √(2 / (fan_in + fan_out)). As the three below it throws std::invalid_argument
/// for fewer than two axes.
WEFT_API array glorot_normal(const Shape& shape, float gain = 1, Dtype dtype = float32);
/// Returns uniform numbers in ±gain √(6 / (fan_in + fan_out)).
WEFT_API array glorot_uniform(const Shape& shape, float gain = 1, Dtype dtype = float32);
/// Returns normal numbers with std = gain / √fan.
WEFT_API array he_normal(const Shape& shape, Fan mode = Fan::in, float gain = 1, Dtype dtype = float32);
/// Returns uniform numbers in ±gain √(3 / fan).
WEFT_API array he_uniform(const Shape& shape, Fan mode = Fan::in, float gain = 1, Dtype dtype = float32);
/// Returns a matrix of normal numbers in which a share `sparsity` in [0, 1] of each row, rounded up, is zero.
WEFT_API array sparse(const Shape& shape, double sparsity, float mean = 0, float std = 1, Dtype dtype = float32);
/// Returns orthonormal rows (or columns, whichever are fewer) times gain: part of the Q of a square normal matrix, with
/// the signs that make R's diagonal positive. Axes after the first count as columns (MLX takes matrices alone).
WEFT_API array orthogonal(const Shape& shape, float gain = 1, Dtype dtype = float32);

}  // namespace weft::nn::init
