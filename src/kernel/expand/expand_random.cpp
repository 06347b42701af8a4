// The counter-based generators of Salmon, Moraes, Dror and Shaw (2011): Threefry-2x32 with 20 rounds in uint32
// additions, shifts and xors, and Philox-4x32 with 10 rounds in products of full width.
#include <array>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {

Expr threefry(Expr key0, Expr key1, Expr counter0, Expr counter1, int word) {
  constexpr std::array<std::array<int, 4>, 2> rotations{{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  const std::array<Expr, 3> key{key0, key1, key0 ^ key1 ^ double(0x1BD11BDA)};
  Expr x0 = counter0 + key0, x1 = counter1 + key1;
  for (size_t group = 0; group < 5; ++group) {
    for (int r : rotations[group % 2]) {
      x0 = x0 + x1;
      x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0;
    }
    x0 = x0 + key[(group + 1) % 3];
    x1 = x1 + key[(group + 2) % 3] + double(group + 1);
  }
  return word == 0 ? x0 : x1;
}

Expr philox(std::array<Expr, 2> key, std::array<Expr, 4> x, int word) {
  for (int round = 0; round < 10; ++round) {
    const auto high = [](Expr a, double factor) { return apply(ScalarOp::mulhi, {a, factor}); };
    const double m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
    x = {high(x[2], m1) ^ x[1] ^ key[0], x[2] * m1, high(x[0], m0) ^ x[3] ^ key[1], x[0] * m0};
    key = {key[0] + double(0x9E3779B9u), key[1] + double(0xBB67AE85u)};
  }
  return x[static_cast<size_t>(word)];
}

}  // namespace weft::kernel::expansion
