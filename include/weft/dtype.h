#pragma once
#include <complex>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "weft/api.h"

namespace weft {

/// Brain float: the upper half of an IEEE float32. Conversion rounds to nearest even and keeps subnormals and NaN.
struct WEFT_API bfloat16_t {
  uint16_t bits = 0;
  bfloat16_t() = default;
  explicit bfloat16_t(float value);
  explicit operator float() const;
};

/// IEEE binary16. Conversion rounds to nearest even and keeps subnormals and NaN.
struct WEFT_API float16_t {
  uint16_t bits = 0;
  float16_t() = default;
  explicit float16_t(float value);
  explicit operator float() const;
};

using complex64_t = std::complex<float>;

/// The type of an array's elements: a value, cheap to copy and to compare.
struct Dtype {
  enum class Val : uint8_t {
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64,
    float8_e4m3, float8_e5m2,
  };
  enum class Category : uint8_t {
    complexfloating, floating, inexact, signedinteger, unsignedinteger, integer, number, generic,
  };

  Val val = Val::float32;
  uint8_t size = 4;  ///< bytes per element

  constexpr operator Val() const { return val; }
};

inline constexpr Dtype bool_{Dtype::Val::bool_, 1};
inline constexpr Dtype uint8{Dtype::Val::uint8, 1};
inline constexpr Dtype uint16{Dtype::Val::uint16, 2};
inline constexpr Dtype uint32{Dtype::Val::uint32, 4};
inline constexpr Dtype uint64{Dtype::Val::uint64, 8};
inline constexpr Dtype int8{Dtype::Val::int8, 1};
inline constexpr Dtype int16{Dtype::Val::int16, 2};
inline constexpr Dtype int32{Dtype::Val::int32, 4};
inline constexpr Dtype int64{Dtype::Val::int64, 8};
inline constexpr Dtype float16{Dtype::Val::float16, 2};
inline constexpr Dtype bfloat16{Dtype::Val::bfloat16, 2};
inline constexpr Dtype float32{Dtype::Val::float32, 4};
inline constexpr Dtype float64{Dtype::Val::float64, 8};
inline constexpr Dtype complex64{Dtype::Val::complex64, 8};

/// The 8-bit floats of the Open Compute Project: for storage. Arithmetic widens to float32, as it does for float16, and what is stored is rounded to
/// nearest even and saturates: what is finite and beyond the largest number (448, 57344) becomes that number. float8_e4m3 has no infinity: 448 there.
inline constexpr Dtype float8_e4m3{Dtype::Val::float8_e4m3, 1};
inline constexpr Dtype float8_e5m2{Dtype::Val::float8_e5m2, 1};

inline constexpr Dtype::Category complexfloating = Dtype::Category::complexfloating;
inline constexpr Dtype::Category floating = Dtype::Category::floating;
inline constexpr Dtype::Category inexact = Dtype::Category::inexact;
inline constexpr Dtype::Category signedinteger = Dtype::Category::signedinteger;
inline constexpr Dtype::Category unsignedinteger = Dtype::Category::unsignedinteger;
inline constexpr Dtype::Category integer = Dtype::Category::integer;
inline constexpr Dtype::Category number = Dtype::Category::number;
inline constexpr Dtype::Category generic = Dtype::Category::generic;

/// JAX's lattice, as in MLX: symmetric; bool gives way to anything, integers give way to floats,
/// float16 with bfloat16 is float32 (the two 8-bit floats likewise), uint64 with a signed integer is float32.
WEFT_API Dtype promote_types(Dtype a, Dtype b);
WEFT_API bool issubdtype(Dtype a, Dtype b);
WEFT_API bool issubdtype(Dtype a, Dtype::Category b);
WEFT_API bool issubdtype(Dtype::Category a, Dtype::Category b);
WEFT_API Dtype::Category kindof(Dtype t);
constexpr uint8_t size_of(Dtype t) { return t.size; }

/// "float32", "bool", … and back. `dtype_from_name` throws std::invalid_argument on an unknown name.
WEFT_API const char* dtype_name(Dtype t);
WEFT_API Dtype dtype_from_name(const std::string& name);
WEFT_API std::ostream& operator<<(std::ostream& os, Dtype t);

/// The dtype of a C++ type: `TypeToDtype<float>() == float32`. As in MLX, a double literal is float32.
template <class T> struct TypeToDtype { operator Dtype() const; };
template <> inline TypeToDtype<bool>::operator Dtype() const { return bool_; }
template <> inline TypeToDtype<uint8_t>::operator Dtype() const { return uint8; }
template <> inline TypeToDtype<uint16_t>::operator Dtype() const { return uint16; }
template <> inline TypeToDtype<uint32_t>::operator Dtype() const { return uint32; }
template <> inline TypeToDtype<uint64_t>::operator Dtype() const { return uint64; }
template <> inline TypeToDtype<int8_t>::operator Dtype() const { return int8; }
template <> inline TypeToDtype<int16_t>::operator Dtype() const { return int16; }
template <> inline TypeToDtype<int32_t>::operator Dtype() const { return int32; }
template <> inline TypeToDtype<int64_t>::operator Dtype() const { return int64; }
template <> inline TypeToDtype<float16_t>::operator Dtype() const { return float16; }
template <> inline TypeToDtype<bfloat16_t>::operator Dtype() const { return bfloat16; }
template <> inline TypeToDtype<float>::operator Dtype() const { return float32; }
template <> inline TypeToDtype<double>::operator Dtype() const { return float32; }
template <> inline TypeToDtype<complex64_t>::operator Dtype() const { return complex64; }

}  // namespace weft
