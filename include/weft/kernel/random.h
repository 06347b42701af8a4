#pragma once
// Random numbers from counters, the same on every device.
#include <array>
#include <string_view>
#include <utility>

#include "weft/kernel/functions.h"

namespace weft::k {

namespace detail {
WEFT_API void check_range(int64_t low, int64_t high, Line at);
WEFT_API Any random_words(const Any& key0, const Any& key1, const Any& position, int64_t words, Line at);
}  // namespace detail

/// Returns four words of Philox-4x32-10 (Salmon et al., 2011) for each counter, under a 64-bit seed.
template <TileLike S, TileLike C>
std::array<Tile<u32, rank_of<C>>, 4> philox(const S& seed, const C& counter, Line at = Line::here()) {
  const Any key = cast(detail::as_tile(seed, at).any(), uint64, at),
            count = cast(detail::as_tile(counter, at).any(), uint64, at);
  const auto low = [&](const Any& v) { return cast(v, uint32, at); };
  const auto high = [&](const Any& v) {
    return cast(apply("shr", std::array{v, constant(uint64, 32, {}, at)}, at), uint32, at);
  };
  const Any zero = constant(uint32, 0, {}, at);
  // One list of arguments: targets see that the words are those of one call.
  const std::array call{low(key), high(key), low(count), high(count), zero, zero};
  const auto word = [&](std::string_view op) { return Tile<u32, rank_of<C>>(apply(op, call, at)); };
  return {word("philox0"), word("philox1"), word("philox2"), word("philox3")};
}
/// Returns numbers in [0, 1), one for each counter, the same on every device.
template <TileLike S, TileLike C>
Tile<f32, rank_of<C>> rand(const S& seed, const C& counter, Line at = Line::here()) {
  const auto bits = philox(seed, counter, at)[0];
  return cast<f32>(bits >> 8, at) * (1.0 / 16777216);
}
/// Returns numbers of the standard normal distribution (Box and Muller, 1958).
template <TileLike S, TileLike C>
Tile<f32, rank_of<C>> randn(const S& seed, const C& counter, Line at = Line::here()) {
  const auto bits = philox(seed, counter, at);
  const auto u = (cast<f32>(bits[0] >> 8, at) + 1.0) * (1.0 / 16777216),
             angle = cast<f32>(bits[1] >> 8, at) * (6.283185307179586 / 16777216);
  return sqrt(log(u, at) * -2.0, at) * cos(angle, at);
}
/// Returns integers in [low, high), one for each counter, the same on every device: the upper 32 bits of a word times
/// the range. `high - low` is at most 2^31 - 1.
template <TileLike S, TileLike C>
Tile<i32, rank_of<C>> randint(const S& seed, const C& counter, int32_t low, int32_t high, Line at = Line::here()) {
  detail::check_range(low, high, at);
  const auto bits = cast<u64>(philox(seed, counter, at)[0], at);
  return cast<i32>((bits * (static_cast<int64_t>(high) - low)) >> 32, at) + low;
}

/// Returns both words of Threefry-2x32-20 (Salmon et al., 2011) of two words of a key and two counters, which broadcast
/// together.
template <TileLike K, TileLike C>
std::pair<Tile<u32, rank_of<C>>, Tile<u32, rank_of<C>>> threefry(const K& key0, const K& key1, const C& counter0,
                                                                 const C& counter1, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<K>, u32> && std::same_as<ElementOf<C>, u32>,
                "keys and counters of threefry are words: uint32");
  static_assert(rank_of<K> == 0 || rank_of<K> == rank_of<C>, "keys are scalars, or have the rank of the counters");
  const std::array args{detail::as_tile(key0, at).any(), detail::as_tile(key1, at).any(),
                        detail::as_tile(counter0, at).any(), detail::as_tile(counter1, at).any()};
  return {Tile<u32, rank_of<C>>(apply("threefry0", args, at)), Tile<u32, rank_of<C>>(apply("threefry1", args, at))};
}
/// Returns the words that `weft::random::bits({words}, key)` has at positions (int64, from 0 to words - 1), of an array
/// of `words` words: a kernel draws the numbers that the array's functions draw, in parts of any size.
template <TileLike K, TileLike P>
Tile<u32, rank_of<P>> random_bits(const K& key0, const K& key1, const P& position, int64_t words,
                                  Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<K>, u32> && rank_of<K> == 0,
                "a key of random_bits is two words: uint32 scalars");
  static_assert(std::same_as<ElementOf<P>, i64>, "positions of random_bits are int64");
  return Tile<u32, rank_of<P>>(detail::random_words(detail::as_tile(key0, at).any(), detail::as_tile(key1, at).any(),
                                                    detail::as_tile(position, at).any(), words, at));
}

}  // namespace weft::k
