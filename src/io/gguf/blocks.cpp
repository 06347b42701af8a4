#include "io/gguf/blocks.h"

#include <bit>
#include <cmath>

namespace weft::io::gguf {

namespace {

uint32_t word_at(const uint8_t* p, int bytes) {
  uint32_t v = 0;
  for (int k = bytes; k-- > 0;) v = v << 8 | p[k];
  return v;
}

float16_t half_at(const uint8_t* p) {
  float16_t h;
  h.bits = static_cast<uint16_t>(word_at(p, 2));
  return h;
}

/// Returns code k of 32 codes of 4 bits: the low nibbles of 16 bytes, then their high ones.
int nibble(const uint8_t* q, int k) { return k < 16 ? q[k] & 15 : q[k - 16] >> 4; }

void put_half(float16_t h, uint8_t* p) {
  p[0] = static_cast<uint8_t>(h.bits), p[1] = static_cast<uint8_t>(h.bits >> 8);
}

void put_nibbles(const uint8_t* codes, uint8_t* q) {
  for (int k = 0; k < 16; ++k) q[k] = static_cast<uint8_t>(codes[k] | codes[k + 16] << 4);
}

int two_bits(uint8_t byte, int pair) { return byte >> (2 * pair) & 3; }

int signed_byte(uint8_t byte) { return static_cast<int8_t>(byte); }

// The 16 numbers of IQ4_NL and IQ4_XS: denser near zero, as weights are.
constexpr int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct ScaleAndMin {
  int scale, min;
};

/// Unpacks scale and minimum of part k of 8, 6 bits each, of Q4_K and Q5_K: those of the first four parts are the low
/// bits of 8 bytes; the others' low nibbles are 4 more bytes, and their high bits the high bits of the 8.
ScaleAndMin part_of(const uint8_t* packed, int k) {
  if (k < 4) return {packed[k] & 63, packed[k + 4] & 63};
  return {(packed[k + 4] & 15) | packed[k - 4] >> 6 << 4, packed[k + 4] >> 4 | packed[k] >> 6 << 4};
}

}  // namespace

// d, 16 bytes of nibbles: d · (code - 8).
void codes_q4_0(const uint8_t* block, AffineBlock& out) {
  for (int k = 0; k < 32; ++k) out.codes[k] = static_cast<uint8_t>(nibble(block + 2, k));
  out.scale = half_at(block);
  out.bias = float16_t(-8 * static_cast<float>(out.scale));
}

// d, m, 16 bytes of nibbles: d · code + m.
void codes_q4_1(const uint8_t* block, AffineBlock& out) {
  for (int k = 0; k < 32; ++k) out.codes[k] = static_cast<uint8_t>(nibble(block + 4, k));
  out.scale = half_at(block);
  out.bias = half_at(block + 2);
}

// d, 32 signed bytes: d · (code - 128), where the sign bit is flipped.
void codes_q8_0(const uint8_t* block, AffineBlock& out) {
  for (int k = 0; k < 32; ++k) out.codes[k] = block[2 + k] ^ 0x80;
  out.scale = half_at(block);
  out.bias = float16_t(-128 * static_cast<float>(out.scale));
}

void pack_q4_0(const AffineBlock& from, uint8_t* block) {
  put_half(from.scale, block);
  put_nibbles(from.codes, block + 2);
}

void pack_q4_1(const AffineBlock& from, uint8_t* block) {
  put_half(from.scale, block);
  put_half(from.bias, block + 2);
  put_nibbles(from.codes, block + 4);
}

void pack_q8_0(const AffineBlock& from, uint8_t* block) {
  put_half(from.scale, block);
  for (int k = 0; k < 32; ++k) block[2 + k] = from.codes[k] ^ 0x80;
}

// d, 32 fifth bits, 16 bytes of nibbles: d · (code - 16).
void decode_q5_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  const uint32_t high = word_at(block + 2, 4);
  for (int k = 0; k < 32; ++k)
    out[k] = d * static_cast<float>((nibble(block + 6, k) | static_cast<int>(high >> k & 1) << 4) - 16);
}

// d, m, 32 fifth bits, 16 bytes of nibbles: d · code + m.
void decode_q5_1(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  const uint32_t high = word_at(block + 4, 4);
  for (int k = 0; k < 32; ++k)
    out[k] = d * static_cast<float>(nibble(block + 8, k) | static_cast<int>(high >> k & 1) << 4) + m;
}

// d, 16 bytes of nibbles: d · uneven[code].
void decode_iq4_nl(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int k = 0; k < 32; ++k) out[k] = d * static_cast<float>(uneven[nibble(block + 2, k)]);
}

// A power of two as its exponent + 127, 16 bytes of nibbles: E2M1 numbers times that.
void decode_mxfp4(const uint8_t* block, float* out) {
  constexpr int doubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  const float half_scale = std::ldexp(1.0f, block[0] - 128);
  for (int k = 0; k < 32; ++k) {
    const int code = nibble(block + 1, k), size = doubled[code & 7];
    out[k] = half_scale * static_cast<float>(code & 8 ? -size : size);
  }
}

// 16 bytes of scale and minimum (4 bits each), 64 bytes of codes of 2 bits, d, m: d · scale · code - m · minimum.
// A half of 128 elements is four times 32, in the pairs of bits of the same 32 bytes.
void decode_q2_k(const uint8_t* block, float* out) {
  const float d = half_at(block + 80), m = half_at(block + 82);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(block[part] & 15), minimum = m * static_cast<float>(block[part] >> 4);
    const uint8_t* codes = block + 16 + part / 8 * 32 + part % 2 * 16;
    for (int k = 0; k < 16; ++k)
      out[part * 16 + k] = scale * static_cast<float>(two_bits(codes[k], part % 8 / 2)) - minimum;
  }
}

// 32 bytes of third bits, 64 of two bits, 12 of scales, d: d · (scale - 32) · (code - 4). Byte k % 32 of the third bits
// has those of elements k % 32, k % 32 + 32 …; scales are nibbles, then pairs of bits.
void decode_q3_k(const uint8_t* block, float* out) {
  const uint8_t* scales = block + 96;
  const float d = half_at(block + 108);
  for (int part = 0; part < 16; ++part) {
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const float scale = d * static_cast<float>((low | two_bits(scales[8 + part % 4], part / 4) << 4) - 32);
    const uint8_t *third = block + part % 2 * 16, *codes = block + 32 + part / 8 * 32 + part % 2 * 16;
    for (int k = 0; k < 16; ++k) {
      const int code = two_bits(codes[k], part % 8 / 2) | (third[k] >> (part / 2) & 1) << 2;
      out[part * 16 + k] = scale * static_cast<float>(code - 4);
    }
  }
}

// d, m, 12 bytes of scales and minima, 128 of nibbles: d · scale · code - m · minimum. 64 elements are the low nibbles
// of 32 bytes, then their high ones.
void decode_q4_k(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMin of = part_of(block + 4, part);
    const float scale = d * static_cast<float>(of.scale), minimum = m * static_cast<float>(of.min);
    const uint8_t* codes = block + 16 + part / 2 * 32;
    for (int k = 0; k < 32; ++k)
      out[part * 32 + k] = scale * static_cast<float>(codes[k] >> (part % 2 * 4) & 15) - minimum;
  }
}

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte k % 32 is that of element k % 32 + 32 j.
void decode_q5_k(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMin of = part_of(block + 4, part);
    const float scale = d * static_cast<float>(of.scale), minimum = m * static_cast<float>(of.min);
    const uint8_t *fifth = block + 16, *codes = block + 48 + part / 2 * 32;
    for (int k = 0; k < 32; ++k) {
      const int code = (codes[k] >> (part % 2 * 4) & 15) | (fifth[k] >> part & 1) << 4;
      out[part * 32 + k] = scale * static_cast<float>(code) - minimum;
    }
  }
}

// 128 bytes of nibbles, 64 of two more bits, 16 signed scales, d: d · scale · (code - 32). A half of 128 elements is
// the low nibbles of 64 bytes, then the high ones; its upper bits are four times 32, in the pairs of 32 bytes.
void decode_q6_k(const uint8_t* block, float* out) {
  const float d = half_at(block + 208);
  for (int part = 0; part < 16; ++part) {
    const int half = part / 8, in_half = part % 8;
    const float scale = d * static_cast<float>(signed_byte(block[192 + part]));
    const uint8_t *low = block + half * 64 + in_half % 4 * 16, *high = block + 128 + half * 32 + part % 2 * 16;
    for (int k = 0; k < 16; ++k) {
      const int code = (low[k] >> (in_half / 4 * 4) & 15) | two_bits(high[k], in_half / 2) << 4;
      out[part * 16 + k] = scale * static_cast<float>(code - 32);
    }
  }
}

// A float32 d, 256 signed bytes, sums of 16 of them (not needed here): d · code.
void decode_q8_k(const uint8_t* block, float* out) {
  const auto d = std::bit_cast<float>(word_at(block, 4));
  for (int k = 0; k < 256; ++k) out[k] = d * static_cast<float>(signed_byte(block[4 + k]));
}

// d, 8 pairs of bits of scales, 4 bytes of their low nibbles, 128 bytes of nibbles, 16 bytes for 32 elements:
// d · (scale - 32) · uneven[code].
void decode_iq4_xs(const uint8_t* block, float* out) {
  const float d = half_at(block);
  const uint32_t high = word_at(block + 2, 2);
  for (int part = 0; part < 8; ++part) {
    const int low = block[4 + part / 2] >> (part % 2 * 4) & 15;
    const float scale = d * static_cast<float>((low | static_cast<int>(high >> (2 * part) & 3) << 4) - 32);
    for (int k = 0; k < 32; ++k)
      out[part * 32 + k] = scale * static_cast<float>(uneven[nibble(block + 8 + part * 16, k)]);
  }
}

}  // namespace weft::io::gguf
