#pragma once
// Rewrites the scalar operators that are not basic (exp, tanh, erf, threefry …) into basic ones, and arithmetic on
// float16 and bfloat16 into float32 arithmetic with a rounding after each operation: what is left, every target prints
// one to one and rounds alike.
#include "kernel/tile.h"

namespace weft::kernel {

/// What a target has beside the basic operators that all of them have.
struct Expansion {
  bool keep_float64 = true;  // exp, log … of float64 stay whole: the target calls the C library for them
  bool ldexp =
      false;  // ldexp is one instruction; without it powers of two are made by integer arithmetic: the same bits
  // exp2, recip and rsqrt of float32 are instructions, right to two units in the last place; the first two take
  // subnormal numbers as 0. exp2 and rsqrt stay whole, exp and sigmoid are written in exp2, and recip stays whole in a
  // sigmoid that is rounded to 16 bits. The bits are the device's own.
  bool special_functions = false;
};
Kernel expand(const Kernel& kernel, const Expansion& has = {});

}  // namespace weft::kernel
