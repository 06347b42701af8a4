#pragma once
#include <compare>
#include <complex>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

#include "weft/api.h"

namespace weft {

/// A brain float: the upper half of an IEEE float32. Conversion rounds to nearest even and keeps subnormals and NaN.
struct WEFT_API bfloat16_t {
  uint16_t bits = 0;  ///< sign (1 bit), exponent (8), mantissa (7)
  bfloat16_t() = default;
  bfloat16_t(float value);
  /// Converts to float, exactly.
  operator float() const;
};

/// An IEEE binary16 number. Conversion rounds to nearest even and keeps subnormals and NaN.
struct WEFT_API float16_t {
  uint16_t bits = 0;  ///< sign (1 bit), exponent (5), mantissa (10)
  float16_t() = default;
  float16_t(float value);
  /// Converts to float, exactly.
  operator float() const;
};

/// A complex number of two floats R: real part, then imaginary part. Real numbers convert to it, and so does a complex
/// number of the other width, whose parts are rounded.
template <std::floating_point R>
struct complex_number : std::complex<R> {
  complex_number() = default;
  complex_number(R re, R im) : std::complex<R>(re, im) {}
  template <std::floating_point Part>
  complex_number(const std::complex<Part>& z) : std::complex<R>(static_cast<R>(z.real()), static_cast<R>(z.imag())) {}
  template <class T>
  requires(!std::derived_from<T, std::complex<float>> && !std::derived_from<T, std::complex<double>> &&
           std::convertible_to<T, R>) complex_number(T re)
      : std::complex<R>(static_cast<R>(re)) {}
  /// Returns the real part, as MLX's complex64_t does.
  operator R() const { return this->real(); }
};
/// A complex number of two float32.
using complex64_t = complex_number<float>;
/// A complex number of two float64.
using complex128_t = complex_number<double>;

/// The type of an array's elements: a value, cheap to copy and to compare. float32 unless it is named.
class Dtype {
 public:
  /// The dtypes as an enumeration, for `switch`.
  enum class Val : uint8_t {
    bool_,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    float8_e4m3,
    float8_e5m2,
    complex128,
  };
  /// NumPy's letters: bool, unsigned, signed, float, complex; V ("void") for formats that NumPy does not have.
  enum class Kind : uint8_t { b, u, i, f, c, V };
  /// Groups of dtypes, for issubdtype: generic > number > {inexact > {floating, complexfloating}, integer >
  /// {signedinteger, unsignedinteger}}. bool_ is in generic alone.
  enum class Category : uint8_t {
    complexfloating,
    floating,
    inexact,
    signedinteger,
    unsignedinteger,
    integer,
    number,
    generic,
  };

  constexpr Dtype() = default;
  constexpr explicit Dtype(Val val, uint8_t size) : val_(val), size_(size) {}
  /// Returns the enumerator, so that a dtype can be switched on and compared.
  constexpr operator Val() const { return val_; }
  /// Returns the enumerator.
  constexpr Val val() const { return val_; }
  /// Returns the bytes of an element.
  constexpr uint8_t size() const { return size_; }

 private:
  Val val_ = Val::float32;
  uint8_t size_ = 4;
};

/// The dtypes. Values of bool_ are 0 and 1 in one byte; integers wrap; the floats are IEEE binary16, brain float,
/// binary32 and binary64; complex64 is two float32, and complex128 two float64.
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
inline constexpr Dtype complex128{Dtype::Val::complex128, 16};

/// The 8-bit floats of the Open Compute Project, for storage. Arithmetic widens them to float32, as it does float16;
/// results are rounded to nearest even and saturate: a finite number beyond the largest one (448, 57344) becomes that
/// one. float8_e4m3 has no infinity: 448 there.
inline constexpr Dtype float8_e4m3{Dtype::Val::float8_e4m3, 1};
inline constexpr Dtype float8_e5m2{Dtype::Val::float8_e5m2, 1};

/// The categories (Dtype::Category).
inline constexpr Dtype::Category complexfloating = Dtype::Category::complexfloating;
inline constexpr Dtype::Category floating = Dtype::Category::floating;
inline constexpr Dtype::Category inexact = Dtype::Category::inexact;
inline constexpr Dtype::Category signedinteger = Dtype::Category::signedinteger;
inline constexpr Dtype::Category unsignedinteger = Dtype::Category::unsignedinteger;
inline constexpr Dtype::Category integer = Dtype::Category::integer;
inline constexpr Dtype::Category number = Dtype::Category::number;
inline constexpr Dtype::Category generic = Dtype::Category::generic;

/// Returns the dtype in which an `a` and a `b` are combined: JAX's lattice, as in MLX. It is symmetric. bool gives way
/// to anything, integers give way to floats, and the wider of two wins; float16 with bfloat16 is float32 (the two 8-bit
/// floats likewise), and uint64 with a signed integer is float32. complex64 with float64 is complex128, which MLX
/// lacks.
WEFT_API Dtype promote_types(Dtype a, Dtype b);
/// Returns whether `a` is `b`, or lies in category `b`. No category is a subtype of a single dtype.
WEFT_API bool issubdtype(Dtype a, Dtype b);
WEFT_API bool issubdtype(Dtype a, Dtype::Category b);
WEFT_API bool issubdtype(Dtype::Category a, Dtype::Category b);
constexpr bool issubdtype(Dtype::Category, Dtype) { return false; }
/// Returns NumPy's letter of a dtype.
WEFT_API Dtype::Kind kindof(Dtype t);
/// Returns the bytes of an element.
constexpr uint8_t size_of(Dtype t) { return t.size(); }

/// Returns "float32", "bool", ….
WEFT_API const char* dtype_name(Dtype t);
/// Returns the dtype that dtype_name names so; throws std::invalid_argument on an unknown name.
WEFT_API Dtype dtype_from_name(const std::string& name);
/// Prints the name.
WEFT_API std::ostream& operator<<(std::ostream& os, Dtype t);

namespace detail {

template <class T>
inline constexpr bool is_half = std::same_as<T, float16_t> || std::same_as<T, bfloat16_t>;
template <class T>
inline constexpr bool is_complex64 = std::same_as<T, complex64_t> || std::same_as<T, std::complex<float>>;
template <class T>
inline constexpr bool is_complex128 = std::same_as<T, complex128_t> || std::same_as<T, std::complex<double>>;
template <class T>
inline constexpr bool is_complex_number = is_complex64<T> || is_complex128<T>;

/// The dtype that holds values of T as they are: float64 for double.
template <class T>
constexpr Dtype exact_dtype() {
  if constexpr (std::same_as<T, bool>) return bool_;
  else if constexpr (std::same_as<T, float16_t>) return float16;
  else if constexpr (std::same_as<T, bfloat16_t>) return bfloat16;
  else if constexpr (is_complex64<T>) return complex64;
  else if constexpr (is_complex128<T>) return complex128;
  else if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? float32 : float64;
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? int8 : sizeof(T) == 2 ? int16 : sizeof(T) == 4 ? int32 : int64;
  else return sizeof(T) == 1 ? uint8 : sizeof(T) == 2 ? uint16 : sizeof(T) == 4 ? uint32 : uint64;
}

/// Two operands of which one is a 16-bit float and the other a 16-bit float or a number.
template <class A, class B>
concept half_operands = (is_half<A> || is_half<B>)&&(is_half<A> || std::is_arithmetic_v<A>)&&(is_half<B> ||
                                                                                              std::is_arithmetic_v<B>);
/// What arithmetic on them is done in: double with a double, otherwise float.
template <class A, class B>
using half_compute = std::conditional_t<std::same_as<A, double> || std::same_as<B, double>, double, float>;
/// What it gives: a half float with its like, an integer or a bool; otherwise what it is done in.
template <class A, class B>
using half_result = std::conditional_t<std::same_as<A, B> || std::is_integral_v<B>, A,
                                       std::conditional_t<std::is_integral_v<A>, B, half_compute<A, B>>>;

/// Two operands of which one is a complex64_t or complex128_t and the other a complex number or a number.
template <class A, class B>
concept complex_operands = (std::same_as<A, complex64_t> || std::same_as<A, complex128_t> ||
                            std::same_as<B, complex64_t> ||
                            std::same_as<B, complex128_t>)&&(is_complex_number<A> || is_half<A> ||
                                                             std::is_arithmetic_v<A>)&&(is_complex_number<B> ||
                                                                                        is_half<B> ||
                                                                                        std::is_arithmetic_v<B>);
/// What arithmetic on them gives: complex128_t where one of them is as wide, otherwise complex64_t.
template <class A, class B>
using complex_result = std::conditional_t<is_complex128<A> || is_complex128<B>, complex128_t, complex64_t>;
/// Returns z in the dtype of a result, without the operators that are defined here.
template <class Z, class T>
std::complex<typename Z::value_type> parts(const T& z) {
  return Z(z);
}

}  // namespace detail

/// Computes in float (in double with a double) and rounds once, to the 16-bit float that is an operand; with float or
/// double the result is float or double.
template <class A, class B>
requires detail::half_operands<A, B> detail::half_result<A, B>
operator+(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) + static_cast<C>(b);
}
template <class A, class B>
requires detail::half_operands<A, B> detail::half_result<A, B>
operator-(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) - static_cast<C>(b);
}
template <class A, class B>
requires detail::half_operands<A, B> detail::half_result<A, B>
operator*(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) * static_cast<C>(b);
}
template <class A, class B>
requires detail::half_operands<A, B> detail::half_result<A, B>
operator/(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) / static_cast<C>(b);
}
template <class A, class B>
requires detail::half_operands<A, B>
bool operator==(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) == static_cast<C>(b);
}
template <class A, class B>
requires detail::half_operands<A, B> std::partial_ordering operator<=>(A a, B b) {
  using C = detail::half_compute<A, B>;
  return static_cast<C>(a) <=> static_cast<C>(b);
}
template <class H>
requires detail::is_half<H> H operator-(H a) { return -static_cast<float>(a); }
// enable_if_t, since n *= shape[k] looks at these operators with an integer on the left: clang 14 puts its type into
// the declaration before it reads `requires`, and refuses an operator of numbers alone.
/// Computes in float and rounds once.
template <class H>
std::enable_if_t<detail::is_half<H>, H>& operator+=(H& a, float b) {
  return a = static_cast<float>(a) + b;
}
template <class H>
std::enable_if_t<detail::is_half<H>, H>& operator-=(H& a, float b) {
  return a = static_cast<float>(a) - b;
}
template <class H>
std::enable_if_t<detail::is_half<H>, H>& operator*=(H& a, float b) {
  return a = static_cast<float>(a) * b;
}
template <class H>
std::enable_if_t<detail::is_half<H>, H>& operator/=(H& a, float b) {
  return a = static_cast<float>(a) / b;
}

namespace detail {
template <class H>
H half_of_bits(int bits) {
  H result;
  result.bits = static_cast<uint16_t>(bits);
  return result;
}
}  // namespace detail
/// Combines the bits of two 16-bit floats of one format.
template <class H>
requires detail::is_half<H> H operator|(H a, H b) { return detail::half_of_bits<H>(a.bits | b.bits); }
template <class H>
requires detail::is_half<H> H operator&(H a, H b) { return detail::half_of_bits<H>(a.bits & b.bits); }
template <class H>
requires detail::is_half<H> H operator^(H a, H b) { return detail::half_of_bits<H>(a.bits ^ b.bits); }
template <class H>
requires detail::is_half<H> H& operator|=(H& a, H b) { return a = a | b; }
template <class H>
requires detail::is_half<H> H& operator&=(H& a, H b) { return a = a & b; }
template <class H>
requires detail::is_half<H> H& operator^=(H& a, H b) { return a = a ^ b; }

/// Computes with complex numbers of two float32, or of two float64 where an operand is one.
template <class A, class B>
requires detail::complex_operands<A, B> detail::complex_result<A, B>
operator+(const A& a, const B& b) {
  using Z = detail::complex_result<A, B>;
  return detail::parts<Z>(a) + detail::parts<Z>(b);
}
template <class A, class B>
requires detail::complex_operands<A, B> detail::complex_result<A, B>
operator-(const A& a, const B& b) {
  using Z = detail::complex_result<A, B>;
  return detail::parts<Z>(a) - detail::parts<Z>(b);
}
template <class A, class B>
requires detail::complex_operands<A, B> detail::complex_result<A, B>
operator*(const A& a, const B& b) {
  using Z = detail::complex_result<A, B>;
  return detail::parts<Z>(a) * detail::parts<Z>(b);
}
template <class A, class B>
requires detail::complex_operands<A, B> detail::complex_result<A, B>
operator/(const A& a, const B& b) {
  using Z = detail::complex_result<A, B>;
  return detail::parts<Z>(a) / detail::parts<Z>(b);
}
template <class A, class B>
requires detail::complex_operands<A, B>
bool operator==(const A& a, const B& b) {
  using Z = detail::complex_result<A, B>;
  return detail::parts<Z>(a) == detail::parts<Z>(b);
}
template <class R>
complex_number<R> operator-(const complex_number<R>& z) {
  return {-z.real(), -z.imag()};
}
/// Compares real parts, and imaginary parts where those are equal.
template <class R>
std::partial_ordering operator<=>(const complex_number<R>& a, const complex_number<R>& b) {
  const std::partial_ordering by_real = a.real() <=> b.real();
  return by_real == 0 ? a.imag() <=> b.imag() : by_real;
}

/// The dtype of a C++ type: `TypeToDtype<float>() == float32`. As in MLX, a double literal is float32. Integers go by
/// size and sign.
template <class T>
struct TypeToDtype {
  /// Returns the dtype of T.
  constexpr operator Dtype() const { return std::is_floating_point_v<T> ? float32 : detail::exact_dtype<T>(); }
};

}  // namespace weft
