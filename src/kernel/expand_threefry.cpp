// Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw 2011) in uint32 additions, shifts and xors.
#include <array>

#include "kernel/expand_emit.h"

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

}  // namespace weft::kernel::expansion
