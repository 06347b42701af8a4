#include "text/utf8.h"

#include <cstdint>

namespace weft::text {

namespace {

// Table 3-7 of the Unicode standard: lead bytes, the range of the second byte, and the length.
struct Row {
  uint8_t first_low, first_high, second_low, second_high, bytes;
};
constexpr Row rows[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {Utf8Step::Kind::character, byte(0), 1};
  for (const Row& row : rows) {
    if (byte(0) < row.first_low || byte(0) > row.first_high) continue;
    char32_t code = byte(0) & (0x7Fu >> row.bytes);
    for (size_t i = 1; i < row.bytes; ++i) {
      if (i == text.size()) return {Utf8Step::Kind::incomplete, 0, i};
      const uint8_t low = i == 1 ? row.second_low : 0x80, high = i == 1 ? row.second_high : 0xBF;
      if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::invalid, 0, i};
      code = (code << 6) | (byte(i) & 0x3Fu);
    }
    return {Utf8Step::Kind::character, code, row.bytes};
  }
  return {Utf8Step::Kind::invalid, 0, 1};
}

std::string utf8_encode(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

}  // namespace weft::text
