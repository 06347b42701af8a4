#pragma once
// Joins two kernels of a program into one that runs them in sequence.
#include <span>

#include "kernel/tile.h"

namespace weft::kernel {

/// Returns a kernel that runs `first`, then `second`. Parameters of `first` keep their indices; parameter k of `second`
/// becomes `params[k]`, and an index one past the end adds a parameter. The symbols of `second` follow those of
/// `first`.
Kernel in_sequence(const Kernel& first, const Kernel& second, std::span<const Ref> params);

}  // namespace weft::kernel
