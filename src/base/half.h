#pragma once
// bfloat16, IEEE binary16 and the 8-bit floats e4m3 and e5m2 against float32, as bits. Narrowing rounds to nearest
// even, keeps subnormals and infinities, and makes a NaN quiet with its sign and upper payload kept: what the
// conversion instructions of x86 and NVIDIA GPUs do. The 8-bit floats saturate instead of overflowing.
#include <bit>
#include <cstdint>

#include "weft/dtype.h"

namespace weft {

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t float_to_bf16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  // A carry out of the mantissa is the next exponent, or infinity.
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

inline float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu,
                 mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormals: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t float_to_f16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffffu;
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude >= 0x38800000u) {                                              // 2^-14 and above: a normal half
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  // Subnormal: in [0.5, 1) the spacing of floats is 2^-24, that of subnormal halves, so this addition does the
  // rounding.
  const float sum = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000u));
}

/// A float32 with ten bits of fraction, as tensor cores multiply it: half away from zero.
inline float float_to_tf32(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((u + 0x1000u) & ~0x1fffu);
}

/// An 8-bit float: `mantissa` bits of fraction, the smallest normal number 2^(1 - bias), the patterns of the largest
/// one, of the value used for infinity, and of a quiet NaN.
struct Float8 {
  int mantissa, bias;
  uint32_t largest, infinity, quiet;
};
inline constexpr Float8 e4m3{3, 7, 0x7e, 0x7e, 0x7f}, e5m2{2, 15, 0x7b, 0x7c, 0x7e};

inline float f8_to_float(uint8_t bits, const Float8& f) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
  const uint32_t moved = magnitude << (23 - f.mantissa);
  if (magnitude > f.largest) return std::bit_cast<float>(sign | 0x7f800000u | moved);
  const float scale =
      std::bit_cast<float>(static_cast<uint32_t>(254 - f.bias) << 23);  // exact, and normalises subnormals
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(moved) * scale));
}

inline uint8_t float_to_f8(float value, const Float8& f) {
  const uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffffu, sign = (u >> 24) & 0x80u;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | f.quiet | (magnitude >> 21 & 1));
  if (magnitude == 0x7f800000u) return static_cast<uint8_t>(sign | f.infinity);
  const int shift = 23 - f.mantissa;
  const uint32_t smallest = static_cast<uint32_t>(128 - f.bias) << 23;
  uint32_t rounded = 0;
  if (magnitude >= smallest) {
    rounded = (magnitude - (static_cast<uint32_t>(127 - f.bias) << 23) + (1u << (shift - 1)) - 1 +
               ((magnitude >> shift) & 1u)) >>
              shift;
  } else {  // near this power of two floats are spaced as subnormals, so that the addition rounds
    const uint32_t power = static_cast<uint32_t>(128 - f.bias + shift) << 23;
    rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(power)) - power;
  }
  return static_cast<uint8_t>(sign | (rounded < f.largest ? rounded : f.largest));
}

/// The bits of a float narrower than float32, and back.
inline uint16_t float_to_low(float value, Dtype t) {
  if (t == bfloat16) return float_to_bf16(value);
  return t == float16 ? float_to_f16(value) : float_to_f8(value, t == float8_e4m3 ? e4m3 : e5m2);
}
inline float low_to_float(uint16_t bits, Dtype t) {
  if (t == bfloat16) return bf16_to_float(bits);
  return t == float16 ? f16_to_float(bits) : f8_to_float(static_cast<uint8_t>(bits), t == float8_e4m3 ? e4m3 : e5m2);
}

}  // namespace weft
