#pragma once
// The scalar operators, defined once, each by a row in kernel/operators: graph operators name them, tile IR computes
// with them, targets print them. A target needs to print only the `basic` ones; the others are rewritten into basic
// ones by kernel/expand/expand.h, so that every target and the interpreter give the same bits.
//
// Meaning (the same on every target): max and min propagate NaN and order -0 below +0 (IEEE 754-2019); float floordiv
// is floor(a / b) of the rounded quotient, float mod is fmod(a, b), plus b where it is not 0 and its sign differs from
// b's; sign of NaN and of -0 is 0; integer arithmetic wraps; shifts by the width or more give 0 (or the sign, for a
// signed shr); integer floordiv and mod round toward minus infinity, and by zero give 0; comparisons with NaN are false
// except ne.
#include <cstdint>
#include <string_view>

#include "base/number.h"
#include "kernel/operator_list.h"

namespace weft::kernel {

enum class ScalarOp : uint8_t {
#define WEFT_ENUMERATOR(name) name,
  WEFT_SCALAR_OPERATORS(WEFT_ENUMERATOR)
#undef WEFT_ENUMERATOR
      count_
};

enum class ScalarResult : uint8_t { same, boolean };

inline constexpr int most_arguments = 6;

/// The range from which tests draw an argument.
struct Samples {
  double low = -2, high = 2;           // floats
  int64_t int_low = -9, int_high = 9;  // integers, as far as the dtype holds them
  bool extremes = true;                // sometimes an integer from the whole range of its dtype
};

/// Where an operator is discontinuous: tests of finite differences avoid these points.
enum class Jumps : uint8_t { nowhere, half_integers, whole_quotients };

/// The unit of an error: units in the last place of the result, or of the largest argument (at least 1) where the
/// result may come out of a cancellation.
enum class ErrorScale : uint8_t { result, arguments };

/// The columns of a row of the operator table, besides its functions (kernel/operators/row.h).
struct Columns {
  int arity = 1;
  ScalarResult result = ScalarResult::same;
  bool floats = true, integers = false, booleans = false;  // the dtypes it takes
  bool (*only)(Dtype) = nullptr;                           // of those, the ones that this is true of
  double flops = 1;         // cost of one element for the fusion model, in basic operations
  double ulp = 0;           // bound on the error of the expansion in float32 (0: correctly rounded or exact)
  double compiled_ulp = 0;  // the same of whole programs, against the reference (0: equal)
  ErrorScale scale = ErrorScale::result;
  const char* float64 = nullptr;  // the function of CUDA C++ that computes it in float64, where it stays whole (on CPUs
                                  // the reference does); null: it is expanded, as in float32
  Samples a = {}, b = {};         // the first argument, and the second
  Jumps jumps = Jumps::nowhere;
};

struct ScalarInfo : Columns {
  ScalarOp op;
  std::string_view name;
  bool basic;  // has no expansion: every target has it
};
const ScalarInfo& info(ScalarOp op);
/// Returns whether the operator is defined on `t` (select: on its choices).
inline bool takes(const Columns& row, Dtype t) {
  const bool kind = is_float(t) ? row.floats : is_integer(t) ? row.integers : t == bool_ && row.booleans;
  return kind && (!row.only || row.only(t));
}

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

}  // namespace weft::kernel
