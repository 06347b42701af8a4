#pragma once
// Rewrites the scalar operators that are not basic (exp, tanh, erf, threefry …) into basic ones, and arithmetic on float16 and bfloat16 into
// float32 arithmetic with a rounding after each operation: what is left, every target prints one to one and rounds alike.
#include "kernel/tile.h"

namespace weft::kernel {

/// float64 exp/log/… stay whole where `keep_float64` says so (targets call the C library for them).
Kernel expand(const Kernel& kernel, bool keep_float64 = true);

}  // namespace weft::kernel
