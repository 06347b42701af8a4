#pragma once
// Products that the explicit level leaves under way (Op::dot_async).
#include "kernel/tile.h"

namespace weft::kernel {

/// Returns whether a kernel has such products.
bool has_flights(const Kernel& kernel);
/// Returns the kernel with a dot in place of each, and without the waits.
Kernel without_flights(Kernel kernel);

}  // namespace weft::kernel
