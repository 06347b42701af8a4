#pragma once
// A 128-bit streaming hash for structural keys (program cache, kernel digests). Not cryptographic; the same on every
// run and machine.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

struct Digest {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
  std::string hex() const;  // 32 lower-case digits
};

class Hasher {
 public:
  Hasher& bytes(const void* data, size_t n);
  Hasher& text(std::string_view s) {
    number(s.size());
    return bytes(s.data(), s.size());
  }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hasher& number(T v) {
    if constexpr (std::endian::native == std::endian::little && sizeof v <= 8) {
      uint64_t word = 0;
      std::memcpy(&word, &v, sizeof v);
      count_ += sizeof v;
      mix(word, sizeof v);
      return *this;
    } else {
      return bytes(&v, sizeof v);
    }
  }
  Hasher& digest(const Digest& d) {
    number(d.hi);
    return number(d.lo);
  }
  Digest finish() const;

 private:
  static constexpr uint64_t k1 = 0xd6e8feb86659fd93ull, k2 = 0xa0761d6478bd642full, k3 = 0xe7037ed1a0b428dbull,
                            k4 = 0x8ebc6af09c88c6e3ull;
  void mix(uint64_t word, size_t size) {
    a_ ^= std::rotl(word * k1, 31) * k2;
    a_ = (std::rotl(a_, 27) + b_) * 5 + size;
    b_ ^= std::rotl(word * k3, 33) * k4;
    b_ = (std::rotl(b_, 31) + a_) * 9 + 0x38495ab5;
  }
  uint64_t a_ = 0x9e3779b97f4a7c15ull, b_ = 0xc2b2ae3d27d4eb4full, count_ = 0;
};

}  // namespace weft

template <>
struct std::hash<weft::Digest> {
  size_t operator()(const weft::Digest& d) const noexcept { return d.hi ^ d.lo; }
};
