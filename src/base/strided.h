#pragma once
#include <cstddef>

#include "weft/shape.h"

namespace weft {

/// Copies `shape` elements of `bytes` bytes (1, 2, 4, 8 or 16) from one layout to another; strides in elements.
void copy_strided(const void* from, const Strides& from_strides, void* to, const Strides& to_strides,
                  const Shape& shape, size_t bytes);

}  // namespace weft
