#pragma once
// Keys in tile kernels: elements of any dtype as unsigned integers of the same order (kernel/routines/sort_key.h).
#include "kernel/tile.h"

namespace weft::kernel {

/// Returns the unsigned dtype of the same width.
Dtype bits_of(Dtype t);
/// Returns the keys of a tile. `bits`: its elements as bits_of(t).
Value keys_of(Builder& b, Value bits, Dtype t);
/// Returns an unsigned constant in all lanes of a tile.
Value splat_bits(Builder& b, Dtype t, uint64_t v, int64_t lanes);

}  // namespace weft::kernel
