#pragma once
// Rewrites the scalar operators that are not basic (exp, tanh, erf, threefry …) into basic ones, and arithmetic on float16 and bfloat16 into
// float32 arithmetic with a rounding after each operation: what is left, every target prints one to one and rounds alike.
#include "kernel/tile.h"

namespace weft::kernel {

/// What a target has beside the basic operators that all of them have. The bits of the results do not depend on it.
struct Expansion {
  bool keep_float64 = true;  // exp, log … of float64 stay whole: the target calls the C library for them
  bool ldexp = false;        // ldexp is one instruction; without it powers of two are made by integer arithmetic
};
Kernel expand(const Kernel& kernel, const Expansion& has = {});

}  // namespace weft::kernel
