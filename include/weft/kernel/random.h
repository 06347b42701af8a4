#pragma once
// Random numbers from counters, the same on every device.
#include <array>
#include <string_view>

#include "weft/kernel/functions.h"

namespace weft::k {

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
  const auto word = [&](std::string_view op) {
    return Tile<u32, rank_of<C>>(apply(op, std::array{low(key), high(key), low(count), high(count), zero, zero}, at));
  };
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

}  // namespace weft::k
