// The structural hash: stable values, no trivial collisions, every bit counts.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <set>
#include <vector>

#include "base/hash.h"

using namespace weft;

TEST_CASE("hash: stable from run to run and machine to machine") {
  CHECK(Hasher().finish() == Hasher().finish());
  CHECK(Hasher().finish().hex() == "6b838169a5697980f7d60f63df412064");
  CHECK(Hasher().text("weft").number(int32_t{7}).finish().hex() == "771f564b55f927cbec0b6847c32a7c6a");
  CHECK(Digest{0x0123456789abcdefull, 0xfull}.hex() == "0123456789abcdef000000000000000f");
}

TEST_CASE("hash: order, length and boundaries matter") {
  std::set<Digest> seen;
  size_t made = 0;
  const auto add = [&](const Digest& d) { seen.insert(d), ++made; };
  add(Hasher().finish());
  add(Hasher().text("").finish());
  add(Hasher().text("ab").text("c").finish());
  add(Hasher().text("a").text("bc").finish());
  add(Hasher().text("abc").finish());
  add(Hasher().bytes("a", 1).bytes("b\0", 2).finish());
  add(Hasher().bytes("a\0", 2).bytes("b", 1).finish());
  add(Hasher().bytes("ab\0", 3).finish());
  add(Hasher().number(int32_t{1}).finish());
  add(Hasher().number(int64_t{1}).finish());
  add(Hasher().number(uint8_t{1}).finish());
  add(Hasher().number(1).number(2).finish());
  add(Hasher().number(2).number(1).finish());
  const std::vector<char> same(100, 0x5a);
  for (size_t n = 1; n <= same.size(); ++n) add(Hasher().bytes(same.data(), n).finish());
  for (int64_t k = -2000; k < 2000; ++k)
    for (int64_t j = 0; j < 5; ++j) add(Hasher().number(k).number(j).finish());
  CHECK(seen.size() == made);
}

TEST_CASE("hash: each input bit changes about half of the output") {
  unsigned char data[24];
  for (size_t i = 0; i < sizeof data; ++i) data[i] = static_cast<unsigned char>(i * 37 + 5);
  const Digest base = Hasher().bytes(data, sizeof data).finish();
  int64_t changed = 0;
  int fewest = 128;
  for (size_t bit = 0; bit < 8 * sizeof data; ++bit) {
    data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    const Digest d = Hasher().bytes(data, sizeof data).finish();
    data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    const int n = std::popcount(d.hi ^ base.hi) + std::popcount(d.lo ^ base.lo);
    changed += n;
    fewest = n < fewest ? n : fewest;
  }
  CHECK(changed > 60 * 192);
  CHECK(changed < 68 * 192);
  CHECK(fewest > 30);
}
