#pragma once
#include "kernel/tile.h"

namespace weft::kernel {

/// Returns the kernel with what each Op::inline_code computes in its place. Throws std::invalid_argument, with the
/// user's line, where one has no counterpart, or a kernel is one of source.
Kernel with_counterparts(Kernel kernel);

/// Returns the kernel without the counterparts, for a target that has the code.
Kernel without_counterparts(Kernel kernel);

}  // namespace weft::kernel
