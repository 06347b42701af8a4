#pragma once
// What routines that sort have in common: the rows of a call, and elements of every dtype as unsigned integers of the
// same order (NaN last, both zeros equal).
#include <cstdint>

#include "kernel/describe/desc.h"
#include "weft/dtype.h"

namespace weft::kernel {

/// The rows of a call `sort`: outer x inner rows of n elements, and the sorted positions that are wanted of each.
struct SortSizes {
  int64_t outer = 1, inner = 1, n = 0, first = 0, count = 0;
};

inline SortSizes sort_sizes(const CallDesc& desc) {
  const std::vector<int64_t>& extents = desc.inputs[0].extents;
  const auto axis = static_cast<size_t>(desc.integers[0]);
  SortSizes rows;
  for (size_t k = 0; k < extents.size(); ++k) (k < axis ? rows.outer : rows.inner) *= k == axis ? 1 : extents[k];
  rows.n = rows.count = extents[axis];
  if (desc.integers.size() > 1) rows.first = desc.integers[1], rows.count = desc.integers[2];
  return rows;
}

/// How bits of a dtype become a key: floats by sign and magnitude, integers by their sign bit.
struct KeyRule {
  uint64_t sign = 0;      // the sign bit, 0 for unsigned dtypes
  uint64_t infinity = 0;  // bits above which there is only NaN, 0 for integers
};

inline KeyRule key_rule(Dtype t) {
  if (t == float8_e4m3) return {0x80, 0x7e};  // no infinity: above the largest number there is only NaN
  if (t == float8_e5m2) return {0x80, 0x7c};
  if (t == float16) return {0x8000, 0x7c00};
  if (t == bfloat16) return {0x8000, 0x7f80};
  if (t == float32) return {0x80000000u, 0x7f800000u};
  if (t == float64) return {uint64_t{1} << 63, uint64_t{0x7ff} << 52};
  const bool is_signed = t == int8 || t == int16 || t == int32 || t == int64;
  return {is_signed ? uint64_t{1} << (8 * t.size() - 1) : 0, 0};
}

/// Applies f to an unsigned integer as wide as the dtype.
template <class F>
auto by_width(Dtype t, F f) {
  switch (t.size()) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    default: return f(uint64_t());
  }
}

template <class U>
U key_of(U bits, const KeyRule& rule) {
  const U sign = static_cast<U>(rule.sign);
  if (rule.infinity == 0) return static_cast<U>(bits ^ sign);
  const U magnitude = static_cast<U>(bits & static_cast<U>(~sign));
  if (magnitude > rule.infinity) return static_cast<U>(~U{0});
  if (magnitude == 0) return sign;
  return static_cast<U>(bits & sign ? ~bits : bits | sign);
}

}  // namespace weft::kernel
