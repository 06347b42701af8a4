#pragma once
// Ranks by digits: the parts of a radix sort.
#include "weft/kernel.h"

namespace weft::k {

/// Returns unsigned 32-bit words that are ordered as the elements are: int32, uint32 or float32, -0 before +0, NaN last
/// (first, where the sign is set).
template <TileLike V>
Tile<u32, rank_of<V>> ordered_bits(const V& v, Line at = Line::here()) {
  using T = ElementOf<V>;
  static_assert(std::same_as<T, f32> || std::same_as<T, i32> || std::same_as<T, u32>,
                "ordered_bits takes float32, int32 or uint32");
  const auto bits = bitcast<u32>(v, at);
  const uint32_t sign = 0x80000000u;
  if constexpr (std::same_as<T, u32>) return bits;
  else if constexpr (std::same_as<T, i32>) return bits ^ sign;
  else return where((bits & sign) == 0, bits | sign, ~bits, at);
}
/// Returns the elements whose ordered_bits these are.
template <class T, TileLike V>
Tile<T, rank_of<V>> from_ordered_bits(const V& v, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<V>, u32>, "from_ordered_bits takes uint32");
  const auto bits = detail::as_tile(v, at);
  const uint32_t sign = 0x80000000u;
  if constexpr (std::same_as<T, u32>) return bits;
  else if constexpr (std::same_as<T, i32>) return bitcast<i32>(bits ^ sign, at);
  else return bitcast<f32>(where((bits & sign) != 0, bits ^ sign, ~bits, at), at);
}

/// Where elements go that are ordered by digits.
struct RadixRank {
  /// For each element [n] how many elements go before it: those of smaller digits, and those of its own digit that lie
  /// in front of it.
  Tile<i32, 1> rank;
  /// For each element [n] how many of its own digit lie in front of it.
  Tile<i32, 1> within;
  /// How often each digit occurs [digits].
  Tile<i32, 1> counts;
};
/// Ranks digits [n], int32 in 0 … digits-1. An element with another digit is not counted; its rank means nothing. It
/// takes n · digits additions: 16 digits or so at once.
template <TileLike D>
RadixRank radix_rank(const D& digit, int64_t digits, Line at = Line::here()) {
  static_assert(rank_of<D> == 1 && std::same_as<ElementOf<D>, i32>, "radix_rank takes int32 digits of one axis");
  const auto d = detail::as_tile(digit, at);
  const auto own = col(d, at) == row(arange<i32>(digits, at), at);
  const auto hot = cast<i32>(own, at);
  const auto up_to = cumsum(hot, 0, false, at);
  const auto within = sum(where(own, up_to - 1, 0, at), 1, at);
  const auto counts = sum(hot, 0, at);
  const auto first = cumsum(counts, 0, false, at) - counts;
  return {within + sum(where(own, row(first, at), 0, at), 1, at), within, counts};
}

}  // namespace weft::k
