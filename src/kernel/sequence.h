#pragma once
// One kernel that does what two kernels of one program each do, the second after the first.
#include <span>

#include "kernel/tile.h"

namespace weft::kernel {

/// Parameter k of `second` is number `params[k]` of the result, where those of `first` keep theirs; one past the end so
/// far is a new parameter. The symbols of `second` follow those of `first`.
Kernel in_sequence(const Kernel& first, const Kernel& second, std::span<const Ref> params);

}  // namespace weft::kernel
