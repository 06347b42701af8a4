// Dropout: an element is 0 with probability 1/2, else twice itself. Philox-4x32-10 makes the bits of element i from a
// seed and i alone: the backward pass makes them again, and no mask is stored.
#include <array>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Vector = k::In<float, 1>;
using Result = k::Out<float, 1>;

constexpr uint64_t seed = 7;
constexpr double keep = 0.5;
constexpr int64_t block = 4096;

/// Four words of Philox-4x32-10 (Salmon et al., 2011) of a counter.
std::array<uint32_t, 4> philox(uint64_t counter) {
  std::array<uint32_t, 4> x{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return x;
}

/// A counter an element: three of four words are thrown away.
void a_counter_an_element(Vector x, Result y) {
  const auto first = k::program_id(0) * block;
  const auto at = k::ds(first, block);
  const auto kept = k::philox(k::scalar<uint64_t>(seed), first + k::arange(block))[0] < 0x80000000u;
  y(at) = k::where(kept, x(at) * (1 / keep), 0.0);
}

/// A counter for four elements, which lie a quarter of the tile apart.
void four_words(Vector x, Result y) {
  const auto program = k::program_id(0);
  const auto bits = k::philox(k::scalar<uint64_t>(seed), program * (block / 4) + k::arange(block / 4));
  for (int64_t word = 0; word < 4; ++word) {
    const auto at = k::ds(program * block + word * (block / 4), block / 4);
    y(at) = k::where(bits[static_cast<size_t>(word)] < 0x80000000u, x(at) * (1 / keep), 0.0);
  }
}

}  // namespace

Ladder dropout(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 22, 1 << 28);
  Ladder out{.name = "dropout", .inputs = {normal({n}, 1)}};
  // The share that is kept, which every rung has up to chance: their bits differ by how counters are used.
  out.library = one([](const Arrays& in) {
    const array kept = weft::random::bernoulli(array(static_cast<float>(keep)), in[0].shape());
    return weft::where(kept, in[0] * array(static_cast<float>(1 / keep)), array(0.0f));
  });
  out.bytes = 8.0 * static_cast<double>(n);
  out.check = [](const Arrays& in, const Arrays& got) {
    const array scaled = in[0] * array(static_cast<float>(1 / keep));
    const array zero = got[0] == array(0.0f);
    if (!weft::all(weft::logical_or(zero, got[0] == scaled)).item<bool>()) return std::string("not 0, and not scaled");
    const double share = weft::mean(weft::astype(zero, weft::float32)).item<float>();
    return share > 0.48 && share < 0.52 ? std::string() : "a share of " + std::to_string(share) + " is 0";
  };
  const auto tiles = [](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), block)}; };
  out.rungs = {
      loop({{n}},
           [n](auto in, auto to) {
             for (int64_t i = 0; i < n; ++i)
               to[0][i] = philox(static_cast<uint64_t>(i))[0] < 0x80000000u ? 2 * in[0][i] : 0;
           }),
      rung("a counter an element", k::kernel("dropout_counters", a_counter_an_element).grid(tiles)),
      rung("four words of a counter", k::kernel("dropout_words", four_words).grid(tiles)),
  };
  return out;
}

}  // namespace ladders
