#pragma once
// The scalar operators, defined once: graph rows name them, tile IR computes with them, targets print them. A target
// needs to print only the `basic` ones; the others are rewritten into basic ones by kernel/expand/expand.h, so that
// every target and the interpreter give the same bits.
//
// Meaning (the same on every target): max and min propagate NaN and order -0 below +0 (IEEE 754-2019); float floordiv
// is floor(a / b) of the rounded quotient, float mod is fmod(a, b), plus b where it is not 0 and its sign differs from
// b's; sign of NaN and of -0 is 0; integer arithmetic wraps; shifts by the width or more give 0 (or the sign, for a
// signed shr); integer floordiv and mod round toward minus infinity, and by zero give 0; comparisons with NaN are false
// except ne.
#include <cstdint>
#include <string_view>

#include "base/number.h"

namespace weft::kernel {

enum class ScalarOp : uint8_t {
  // basic, on every type they make sense for
  neg,
  abs,
  add,
  sub,
  mul,
  div,
  max,
  min,
  fma,
  floordiv,
  mod,
  sqrt,
  floor,
  ceil,
  trunc,
  round,  // round: half to even
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shl,
  shr,  // on bool: logical
  eq,
  ne,
  lt,
  le,
  select,  // select(condition, then, otherwise)
  mulhi,   // upper half of an unsigned product
  ldexp,   // ldexp(a, n) = a 2^floor(n) on float32, rounded once; n not infinite
  // expanded into the above
  recip,
  rsqrt,
  square,
  sign,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tan,
  arcsin,
  arccos,
  arctan,
  sinh,
  cosh,
  tanh,
  arcsinh,
  arccosh,
  arctanh,
  erf,
  erfinv,
  sigmoid,
  pow,
  arctan2,
  logaddexp,  // arctan2(y, x); log(exp(a) + exp(b))
  threefry0,
  threefry1,  // words 0 and 1 of Threefry-2x32-20 of (key0, key1, counter0, counter1), uint32
  philox0,
  philox1,
  philox2,
  philox3,  // words of Philox-4x32-10 of (key0, key1, counter0, …, counter3), uint32
  count_
};

enum class ScalarResult : uint8_t { same, boolean };

inline constexpr int most_arguments = 6;

struct ScalarInfo {
  ScalarOp op;
  std::string_view name;
  int arity;
  ScalarResult result;
  bool basic;
  bool floats, integers, booleans;  // the dtypes it takes
  double flops;                     // cost of one element for the fusion model, in basic operations
  double ulp;                       // bound on the error of the expansion in float32 (0: correctly rounded or exact)
};
const ScalarInfo& info(ScalarOp op);

/// The definition: exact for integers; floats computed in double by the C library and rounded to `t` by the caller.
/// Arguments and result of dtype `t`; fma and floordiv round to float32 as they go (one rounding, the right one) where
/// `t` is narrower than float64 (select: args[0] is bool; comparisons: the result is bool).
Number reference(ScalarOp op, Dtype t, const Number* args);
/// Conversion as Weft defines it: float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to
/// bool is != 0; anything to float16 and bfloat16 goes through float32.
Number reference_cast(Number v, Dtype from, Dtype to);
/// v as a number that `t` can hold (float16, bfloat16, float32 to nearest even; integers wrapped; between integer and
/// float: as a cast).
Number round_to(Number v, Dtype t);

enum class Reducer : uint8_t { sum, prod, max, min, all, any };
std::string_view name(Reducer r);
ScalarOp combine(Reducer r);          // add, mul, max, min, bit_and, bit_or
Number identity(Reducer r, Dtype t);  // 0, 1, lowest (-inf), highest (+inf), true, false

}  // namespace weft::kernel
