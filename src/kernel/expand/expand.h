#pragma once
// Rewrites scalar operators that are not basic (exp, tanh, erf, threefry …) into basic ones, and float16 and bfloat16
// arithmetic into float32 arithmetic that rounds after each operation. Every target prints the result one to one, with
// equal rounding.
#include "kernel/tile.h"

namespace weft::kernel {

/// What a target supports in addition to the basic operators.
struct Expansion {
  bool keep_float64 = true;  // exp, log … of float64 are not expanded: the target calls the C library
  bool ldexp =
      false;  // ldexp is one instruction; without it powers of two are made by integer arithmetic: the same bits
  // exp2, recip and rsqrt of float32 are device instructions with an error of up to two units in the last place; the
  // first two flush subnormal numbers to 0. Then exp2 and rsqrt are not expanded, exp and sigmoid are written in exp2,
  // and recip is kept in a sigmoid that is rounded to 16 bits. The bits depend on the device.
  bool special_functions = false;
  bool philox = false;  // the words of Philox are functions of the target's
};
Kernel expand(const Kernel& kernel, const Expansion& has = {});

/// Returns whether an operator is a word of Philox-4x32-10.
constexpr bool is_random_word(ScalarOp op) { return op >= ScalarOp::philox0 && op <= ScalarOp::philox3; }

}  // namespace weft::kernel
