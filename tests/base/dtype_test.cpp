// Promotion, categories and names of dtypes; both half formats over all their values.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "base/half.h"
#include "weft/dtype.h"
#include "weft/shape.h"

using namespace weft;

namespace {

constexpr Dtype all[] = {bool_, uint8,   uint16,   uint32,  uint64,  int8,      int16,     int32,
                         int64, float16, bfloat16, float32, float64, complex64, complex128};

/// The whole lattice, row by column in the order of `all`, in the codes of `coded`.
const char* const promotion[15] = {
    "b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 h2 f4 f8 c8 z8", "u1 u1 u2 u4 u8 i2 i2 i4 i8 f2 h2 f4 f8 c8 z8",
    "u2 u2 u2 u4 u8 i4 i4 i4 i8 f2 h2 f4 f8 c8 z8", "u4 u4 u4 u4 u8 i8 i8 i8 i8 f2 h2 f4 f8 c8 z8",
    "u8 u8 u8 u8 u8 f4 f4 f4 f4 f2 h2 f4 f8 c8 z8", "i1 i2 i4 i8 f4 i1 i2 i4 i8 f2 h2 f4 f8 c8 z8",
    "i2 i2 i4 i8 f4 i2 i2 i4 i8 f2 h2 f4 f8 c8 z8", "i4 i4 i4 i8 f4 i4 i4 i4 i8 f2 h2 f4 f8 c8 z8",
    "i8 i8 i8 i8 f4 i8 i8 i8 i8 f2 h2 f4 f8 c8 z8", "f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 z8",
    "h2 h2 h2 h2 h2 h2 h2 h2 h2 f4 h2 f4 f8 c8 z8", "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 z8",
    "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 z8 z8", "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 z8 c8 z8",
    "z8 z8 z8 z8 z8 z8 z8 z8 z8 z8 z8 z8 z8 z8 z8",
};
const std::string codes = "b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 h2 f4 f8 c8 z8";

Dtype coded(const std::string& code) { return all[codes.find(code) / 3]; }

}  // namespace

TEST_CASE("dtype: promotion is the whole table, and symmetric") {
  for (int a = 0; a < 15; ++a)
    for (int b = 0; b < 15; ++b) {
      INFO(dtype_name(all[a]), " with ", dtype_name(all[b]));
      const Dtype expected = coded(std::string(promotion[a]).substr(static_cast<size_t>(3 * b), 2));
      CHECK(promote_types(all[a], all[b]) == expected);
      CHECK(promote_types(all[a], all[b]).size() == expected.size());
      CHECK(promote_types(all[b], all[a]) == expected);
    }
}

TEST_CASE("dtype: categories") {
  for (Dtype t : all) {
    CHECK(issubdtype(t, generic));
    CHECK(issubdtype(t, t));
    CHECK(issubdtype(t, number) == (t != bool_));
    CHECK(issubdtype(t, integer) == (t.val() >= Dtype::Val::uint8 && t.val() <= Dtype::Val::int64));
    CHECK(issubdtype(t, unsignedinteger) == (t.val() >= Dtype::Val::uint8 && t.val() <= Dtype::Val::uint64));
    CHECK(issubdtype(t, inexact) == (t.val() >= Dtype::Val::float16));
    CHECK(issubdtype(t, floating) == (t.val() >= Dtype::Val::float16 && t != complex64 && t != complex128));
    CHECK(issubdtype(t, complexfloating) == (t == complex64 || t == complex128));
  }
  CHECK_FALSE(issubdtype(float32, float64));
  CHECK(issubdtype(floating, inexact));
  CHECK(issubdtype(signedinteger, integer));
  CHECK_FALSE(issubdtype(integer, signedinteger));
  CHECK_FALSE(issubdtype(inexact, integer));
  CHECK_FALSE(issubdtype(generic, float32));
  CHECK_FALSE(issubdtype(floating, float32));
}

TEST_CASE("dtype: kinds are NumPy's letters") {
  using enum Dtype::Kind;
  const Dtype::Kind kinds[] = {b, u, u, u, u, Dtype::Kind::i, Dtype::Kind::i, Dtype::Kind::i, Dtype::Kind::i, f,
                               V, f, f, c, c};
  for (int k = 0; k < 15; ++k) CHECK(kindof(all[k]) == kinds[k]);
}

TEST_CASE("dtype: half floats convert, compute and compare as numbers") {
  const auto check = []<class H>(H) {
    H h = 1.5f;
    const float f = h;
    CHECK(f == 1.5f);
    static_assert(std::is_same_v<decltype(h + h), H> && std::is_same_v<decltype(h + 1), H> &&
                  std::is_same_v<decltype(2u * h), H>);
    static_assert(std::is_same_v<decltype(h + 1.0f), float> && std::is_same_v<decltype(1.0 - h), double> &&
                  std::is_same_v<decltype(-h), H>);
    CHECK(h + h == 3.0f);
    CHECK(h - 1 == 0.5f);
    CHECK(h * 2.0f == 3.0f);
    CHECK(3 / h == 2.0f);
    CHECK(-h == -1.5f);
    CHECK(h + H(0x1p-20f) == h);  // rounded to the format
    CHECK(h < 2);
    CHECK(1.0 <= h);
    CHECK(h != H(2));
    CHECK_FALSE(H(std::numeric_limits<float>::quiet_NaN()) == H(std::numeric_limits<float>::quiet_NaN()));
    h += 1;
    h *= 2.0f;
    h -= 3;
    h /= 4;
    CHECK(h == 0.5f);
    float sum = 1;
    sum += h;
    CHECK(sum == 1.5f);
    int64_t count = 2;
    count *= Dim(3);  // a class that converts to integers: these operators are none of its
    CHECK(count == 6);
    CHECK((H(1) | H(-1)) == -1.0f);
    CHECK((H(1) & H(-1)) == 1.0f);
    CHECK((H(1) ^ H(1)).bits == 0);
    h |= H(-0.0f);
    CHECK(h == -0.5f);
    h &= H(0.5f);
    CHECK(h == 0.5f);
    h ^= h;
    CHECK(h == 0);
  };
  check(float16_t{});
  check(bfloat16_t{});
  static_assert(std::is_same_v<decltype(float16_t{} * bfloat16_t{}), float>);
  CHECK(float16_t{1.5f} + bfloat16_t{2} == 3.5f);
}

TEST_CASE("dtype: complex64_t converts from numbers, and to float by its real part") {
  const complex64_t z{3, -4};
  const float re = z;
  CHECK(re == 3.0f);
  const complex64_t from_int = 2, from_half = float16_t{0.5f}, from_std = std::complex<float>{1, 1};
  CHECK(from_int == complex64_t{2, 0});
  CHECK(from_half == 0.5f);
  CHECK(from_std.imag() == 1.0f);
  static_assert(sizeof(complex64_t) == 8 && std::is_same_v<decltype(z * z), complex64_t> &&
                std::is_same_v<decltype(1 + z), complex64_t>);
  CHECK(z + 1 == complex64_t{4, -4});
  CHECK(2.0 * z == complex64_t{6, -8});
  CHECK(z * std::complex<float>{0, 1} == complex64_t{4, 3});
  CHECK(z / z == 1);
  CHECK(-z - z == complex64_t{-6, 8});
  CHECK(std::abs(z) == 5.0f);
  CHECK(z != 3);
  CHECK(complex64_t{1, 5} < complex64_t{2, 0});
  CHECK(complex64_t{1, 5} > complex64_t{1, 4});
  CHECK(complex64_t{1, 5} >= complex64_t{1, 5});
}

TEST_CASE("dtype: complex128_t computes in double, also with narrower numbers") {
  const complex128_t z{0.1, -4};
  const double re = z;
  CHECK(re == 0.1);
  const complex128_t from_int = 2, from_narrow = complex64_t{0.5f, 1}, from_std = std::complex<float>{1, 1};
  CHECK(from_int == complex128_t{2, 0});
  CHECK(from_narrow == complex128_t{0.5, 1});
  CHECK(from_std.imag() == 1.0);
  CHECK(complex64_t(z) == complex64_t{0.1f, -4});  // parts are rounded
  static_assert(sizeof(complex128_t) == 16 && std::is_same_v<decltype(z * z), complex128_t> &&
                std::is_same_v<decltype(1 + z), complex128_t> &&
                std::is_same_v<decltype(complex64_t{} * z), complex128_t> &&
                std::is_same_v<decltype(complex64_t{} * 2.0), complex64_t>);
  CHECK(z + complex64_t{1, 1} == complex128_t{1.1, -3});
  CHECK(0.5 * z == complex128_t{0.05, -2});
  CHECK(z * std::complex<double>{0, 1} == complex128_t{4, 0.1});
  CHECK(-z - z == complex128_t{-0.2, 8});
  CHECK(complex128_t{1, 5} < complex128_t{2, 0});
  CHECK(complex128_t{1, 5} > complex128_t{1, 4});
  CHECK(Dtype(TypeToDtype<complex128_t>()) == complex128);
  CHECK(Dtype(TypeToDtype<std::complex<double>>()) == complex128);
}

TEST_CASE("dtype: names, sizes, C++ types") {
  const int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  for (int k = 0; k < 15; ++k) {
    CHECK(dtype_from_name(dtype_name(all[k])) == all[k]);
    CHECK(size_of(all[k]) == sizes[k]);
  }
  std::ostringstream out;
  out << bfloat16;
  CHECK(out.str() == "bfloat16");
  CHECK(dtype_from_name("bool_") == bool_);
  CHECK_THROWS_WITH_AS(dtype_from_name("float31"),
                       "[dtype_from_name] no dtype is called \"float31\"; there are bool, uint8, uint16, uint32, "
                       "uint64, int8, int16, int32, "
                       "int64, float16, bfloat16, float32, float64, complex64, float8_e4m3, float8_e5m2, "
                       "complex128",
                       std::invalid_argument);
  CHECK(Dtype(TypeToDtype<float>()) == float32);
  CHECK(Dtype(TypeToDtype<double>()) == float32);
  CHECK(Dtype(TypeToDtype<bfloat16_t>()) == bfloat16);
  CHECK(Dtype(TypeToDtype<uint8_t>()) == uint8);
}

namespace {

/// The value of a half by its definition: (-1)^s · mantissa · 2^exponent.
double by_definition(uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const int e = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1), m = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (e == (1 << exponent_bits) - 1) return m ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (e == 0) return sign * std::ldexp(m, 1 - bias - mantissa_bits);
  return sign * std::ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits);
}

/// All 65536 values widen to their definition and narrow back to themselves; between each two neighbours the midpoint
/// goes to the even one and the floats beside it to the nearer one, which is rounding to nearest even for every float
/// there is.
template <class Widen, class Narrow>
int half_faults(int mantissa_bits, int bias, Widen widen, Narrow narrow) {
  int faults = 0;
  const int infinity = ((1 << (15 - mantissa_bits)) - 1) << mantissa_bits;
  for (int k = 0; k < 65536; ++k) {
    const uint16_t bits = static_cast<uint16_t>(k);
    const float f = widen(bits);
    if ((k & 0x7fff) > infinity) {
      const int quiet = k | (1 << (mantissa_bits - 1));
      faults += !std::isnan(f) || narrow(f) != quiet;
      continue;
    }
    faults += static_cast<double>(f) != by_definition(bits, mantissa_bits, bias) || std::signbit(f) != (k >= 0x8000);
    faults += narrow(f) != bits;
    if ((k & 0x7fff) == infinity) continue;
    const uint16_t above = static_cast<uint16_t>(k + 1), even = k & 1 ? above : bits;  // away from zero
    const float far = f < 0 || std::signbit(f) ? -INFINITY : INFINITY;
    const bool last = (k & 0x7fff) + 1 == infinity;
    // beyond the largest value, the boundary to infinity lies where the next value would be
    const double next = last ? std::copysign(std::ldexp(1.0, bias + 1), static_cast<double>(f))
                             : by_definition(above, mantissa_bits, bias);
    const float middle = static_cast<float>((static_cast<double>(f) + next) / 2);
    faults += narrow(middle) != even;
    faults += narrow(std::nextafter(middle, 0.0f)) != bits;
    faults += narrow(std::nextafter(middle, far)) != above;
  }
  return faults;
}

}  // namespace

TEST_CASE("bfloat16: every value, every rounding boundary") {
  CHECK(half_faults(7, 127, bf16_to_float, float_to_bf16) == 0);
  CHECK(bfloat16_t(1.0f).bits == 0x3f80);
  CHECK(static_cast<float>(bfloat16_t(3.14159f)) == 3.140625f);
}

TEST_CASE("float16: every value, every rounding boundary") {
  CHECK(half_faults(10, 15, f16_to_float, float_to_f16) == 0);
  CHECK(float16_t(1.0f).bits == 0x3c00);
  CHECK(float16_t(65504.0f).bits == 0x7bff);
  CHECK(float16_t(65519.996f).bits == 0x7bff);
  CHECK(float16_t(65520.0f).bits == 0x7c00);
  CHECK(float16_t(1e9f).bits == 0x7c00);
  CHECK(float16_t(0x1p-25f).bits == 0);
  CHECK(float16_t(0x1.000002p-25f).bits == 1);
  CHECK(float16_t(-1e-30f).bits == 0x8000);
  CHECK(static_cast<float>(float16_t(0.1f)) == 0.0999755859375f);
}

namespace {

/// Every 8-bit float and every midpoint between neighbours, as float16 and bfloat16 above; `largest` saturates.
int float8_faults(const Float8& f) {
  int faults = 0;
  const auto value = [&](uint32_t bits) {
    const uint32_t e = bits >> f.mantissa, m = bits & ((1u << f.mantissa) - 1);
    return e == 0 ? std::ldexp(m, 1 - f.bias - f.mantissa)
                  : std::ldexp(m + (1u << f.mantissa), static_cast<int>(e) - f.bias - f.mantissa);
  };
  for (uint32_t bits = 0; bits < 128; ++bits)
    for (uint32_t sign : {0u, 0x80u}) {
      const float wide = f8_to_float(static_cast<uint8_t>(bits | sign), f), s = sign ? -1.0f : 1.0f;
      const uint32_t back = float_to_f8(wide, f);
      if (bits > f.largest) {
        const bool infinite = f.infinity != f.largest && bits == f.infinity;
        faults += infinite ? wide != s * INFINITY || back != (bits | sign)
                           : !std::isnan(wide) || back != ((bits | f.quiet) | sign);
        continue;
      }
      faults += static_cast<double>(wide) != static_cast<double>(s) * value(bits) ||
                std::signbit(wide) != (sign != 0) || back != (bits | sign);
      const uint32_t above = std::min(bits + 1, f.largest), even = bits & 1 ? above : bits;
      const float middle = static_cast<float>((value(bits) + value(bits + 1)) / 2);
      faults += float_to_f8(s * middle, f) != ((bits == f.largest ? bits : even) | sign);
      faults += float_to_f8(s * std::nextafter(middle, 0.0f), f) != (bits | sign);
      faults += float_to_f8(s * std::nextafter(middle, INFINITY), f) != (above | sign);
    }
  return faults;
}

}  // namespace

TEST_CASE("8-bit floats: every value, every rounding boundary, saturation") {
  CHECK(float8_faults(e4m3) == 0);
  CHECK(float8_faults(e5m2) == 0);
  CHECK(f8_to_float(0x7e, e4m3) == 448.0f);
  CHECK(f8_to_float(0x7b, e5m2) == 57344.0f);
  CHECK(float_to_f8(1e9f, e4m3) == 0x7e);
  CHECK(float_to_f8(-INFINITY, e4m3) == 0xfe);
  CHECK(float_to_f8(-1e9f, e5m2) == 0xfb);
  CHECK(float_to_f8(INFINITY, e5m2) == 0x7c);
  CHECK(promote_types(float8_e4m3, float8_e5m2) == float32);
  CHECK(promote_types(float8_e4m3, bfloat16) == bfloat16);
  CHECK(promote_types(float8_e5m2, int64) == float8_e5m2);
  CHECK(dtype_from_name("float8_e4m3") == float8_e4m3);
}
