#pragma once
// Integers of 1, 2, 4 or 8 bits in words, and casts that round at random.
#include <type_traits>
#include <vector>

#include "weft/kernel/functions.h"
#include "weft/kernel/order.h"

namespace weft::k {

namespace detail {
WEFT_API Any unpacked(const Any& words, int bits, Dtype to, Line at);
WEFT_API Any packed(const Any& values, int bits, Dtype word, Line at);
WEFT_API Any cast_stochastic(const Any& v, const Any& bits, Dtype to, Line at);
}  // namespace detail

/// Returns the integers of `bits` bits (1, 2, 4 or 8) that lie in unsigned words, the lowest bits first: words [..., n]
/// become [..., n · (width of a word / bits)]. Integers of a signed type To are two's complements. weft::quantize packs
/// its weights so, in uint32.
template <class To, TileLike V>
Tile<To, rank_of<V>> unpack(const V& words, int bits, Line at = Line::here()) {
  static_assert(std::is_unsigned_v<ElementOf<V>> && !std::same_as<ElementOf<V>, bool>,
                "unpack takes unsigned words: uint8, uint16, uint32 or uint64");
  static_assert(std::is_integral_v<To> && !std::same_as<To, bool>, "unpack makes integers: cast them further");
  return Tile<To, rank_of<V>>(detail::unpacked(detail::as_tile(words, at).any(), bits, detail::dtype_of<To>(), at));
}
/// Returns integers as words of an unsigned type, the lowest bits first; of each integer the lowest `bits` bits (1, 2,
/// 4 or 8) are kept. The inverse of unpack.
template <class Word, TileLike V>
Tile<Word, rank_of<V>> pack(const V& values, int bits, Line at = Line::here()) {
  static_assert(std::is_unsigned_v<Word> && !std::same_as<Word, bool>,
                "pack makes unsigned words: uint8, uint16, uint32 or uint64");
  static_assert(std::is_integral_v<ElementOf<V>> && !std::same_as<ElementOf<V>, bool>,
                "pack takes integers: round and cast");
  return Tile<Word, rank_of<V>>(detail::packed(detail::as_tile(values, at).any(), bits, detail::dtype_of<Word>(), at));
}

/// Returns float32 as a narrower float, rounded up or down at random: the mean of many roundings is the number itself.
/// `bits` are words of random bits (philox, random_bits), one for each element, of which the upper 24 are used.
/// Infinities and NaN are cast; numbers beyond the largest one become what `cast` makes of them.
template <class To, TileLike V, TileLike B>
Tile<To, rank_of<V>> cast_stochastic(const V& v, const B& bits, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<V>, f32>, "cast_stochastic rounds float32: cast to it before");
  static_assert(std::same_as<ElementOf<B>, u32>, "the bits of cast_stochastic are words: uint32");
  static_assert(detail::is_floating<To> && sizeof(To) < 4, "cast_stochastic makes f16, bf16, e4m3 or e5m2");
  return Tile<To, rank_of<V>>(detail::cast_stochastic(detail::as_tile(v, at).any(), detail::as_tile(bits, at).any(),
                                                      detail::dtype_of<To>(), at));
}

}  // namespace weft::k
