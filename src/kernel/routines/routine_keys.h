#pragma once
// Keys in tile kernels: the elements of every dtype in unsigned numbers of their order (kernel/routines/sort_key.h).
#include "kernel/tile.h"

namespace weft::kernel {

/// The unsigned dtype of the same width.
Dtype bits_of(Dtype t);
/// `bits`: a tile of bits_of(t).
Value keys_of(Builder& b, Value bits, Dtype t);
/// An unsigned constant over the lanes of a tile.
Value splat_bits(Builder& b, Dtype t, uint64_t v, int64_t lanes);

}  // namespace weft::kernel
