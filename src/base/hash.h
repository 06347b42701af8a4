#pragma once
// A 128-bit streaming hash for structural keys (program cache, kernel digests). Not cryptographic; the same on every run and machine.
#include <cstddef>
#include <cstdint>
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
  Hasher& text(std::string_view s) { number(s.size()); return bytes(s.data(), s.size()); }
  template <class T> requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hasher& number(T v) { return bytes(&v, sizeof v); }
  Hasher& digest(const Digest& d) { number(d.hi); return number(d.lo); }
  Digest finish() const;

 private:
  uint64_t a_ = 0x9e3779b97f4a7c15ull, b_ = 0xc2b2ae3d27d4eb4full, count_ = 0;
};

}  // namespace weft

template <> struct std::hash<weft::Digest> {
  size_t operator()(const weft::Digest& d) const noexcept { return d.hi ^ d.lo; }
};
