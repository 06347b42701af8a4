// The structural hash: two lanes of multiply-rotate mixing over 64-bit words, each word tagged with the number of bytes
// it really holds, and a finaliser with full avalanche. Bytes are read as little-endian words on every machine.
#include "base/hash.h"

#include <bit>
#include <cstring>

namespace weft {

namespace {

uint64_t word_of(const unsigned char* p, size_t n) {
  uint64_t w = 0;
  if constexpr (std::endian::native == std::endian::little) {
    if (n == 8) std::memcpy(&w, p, 8);
    else if (n == 4) std::memcpy(&w, p, 4);
    else if (n == 1) w = *p;
    if (n == 8 || n == 4 || n == 1) return w;
  }
  for (size_t i = 0; i < n; ++i) w |= static_cast<uint64_t>(p[i]) << (8 * i);
  return w;
}

/// Stafford's variant 13 of the 64-bit finaliser (as in SplitMix64): every input bit reaches every output bit.
uint64_t avalanche(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

Hasher& Hasher::bytes(const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  count_ += n;
  while (n > 0) {
    const size_t take = n < 8 ? n : 8;
    mix(word_of(p, take), take);
    p += take;
    n -= take;
  }
  return *this;
}

Digest Hasher::finish() const {
  uint64_t a = a_ ^ count_, b = b_ ^ std::rotl(count_, 32);
  a += b;
  b += a;
  a = avalanche(a);
  b = avalanche(b);
  a += b;
  b += a;
  return Digest{a, b};
}

std::string Digest::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[static_cast<size_t>(15 - i)] = digits[(hi >> (4 * i)) & 15];
    out[static_cast<size_t>(31 - i)] = digits[(lo >> (4 * i)) & 15];
  }
  return out;
}

}  // namespace weft
