#pragma once
// A constant of any dtype: integers and bools exactly in 64 bits (uint64 by its bit pattern), floats in double.
#include <cstdint>

#include "weft/dtype.h"

namespace weft {

struct Number {
  bool integral = true;
  int64_t i = 0;
  double f = 0;

  static Number of_int(int64_t v) { return {true, v, static_cast<double>(v)}; }
  static Number of_real(double v) { return {false, 0, v}; }
  double real() const { return integral ? static_cast<double>(i) : f; }
  friend bool operator==(const Number& a, const Number& b) {  // by bits: NaN equals NaN, -0.0 is not 0.0
    return a.integral == b.integral &&
           (a.integral ? a.i == b.i : __builtin_bit_cast(uint64_t, a.f) == __builtin_bit_cast(uint64_t, b.f));
  }
};

inline bool is_float8(Dtype t) { return t == float8_e4m3 || t == float8_e5m2; }
/// Narrower than float32, in which their arithmetic is done.
inline bool is_low_float(Dtype t) { return t == float16 || t == bfloat16 || is_float8(t); }
inline bool is_float(Dtype t) { return is_low_float(t) || t == float32 || t == float64; }
inline bool is_complex(Dtype t) { return t == complex64 || t == complex128; }
/// Returns the dtype of a complex number's parts; other dtypes as they are.
inline Dtype real_of(Dtype t) { return t == complex64 ? float32 : t == complex128 ? float64 : t; }
/// Returns the complex dtype of a dtype's numbers: complex128 of float64 and complex128, complex64 of all others.
inline Dtype complex_of(Dtype t) { return real_of(t) == float64 ? complex128 : complex64; }
inline bool is_unsigned(Dtype t) { return t == uint8 || t == uint16 || t == uint32 || t == uint64; }
inline bool is_signed(Dtype t) { return t == int8 || t == int16 || t == int32 || t == int64; }
inline bool is_integer(Dtype t) { return is_unsigned(t) || is_signed(t); }

}  // namespace weft
