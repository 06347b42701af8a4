#pragma once
// Reads the numbers and texts of a GGUF file one after the other.
#include <bit>
#include <cstring>
#include <string>

#include "io/bytes.h"

namespace weft::io::gguf {

class Cursor {
 public:
  explicit Cursor(const Bytes& bytes) : bytes_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  /// Returns whether the file has the other byte order.
  bool swaps() const { return swap_; }
  /// Chooses how what follows is read: with lengths of 8 bytes or of 4, in the machine's byte order or the other.
  void set_format(bool wide, bool swap) { wide_ = wide, swap_ = swap; }

  /// Returns the next n bytes. Throws where the file ends within them; `what` names them.
  std::string_view take(uint64_t n, const char* what) {
    if (n > left()) bytes_.fail(std::string("the file ends within ") + what + ": it is truncated or no GGUF file", at_);
    const auto part = bytes_.view.substr(at_, n);
    at_ += n;
    return part;
  }
  template <class T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    if (!swap_) return value;
    T other = 0;
    for (size_t k = 0; k < sizeof value; ++k) other = static_cast<T>(other << 8 | (value >> (8 * k) & 0xff));
    return other;
  }
  uint64_t length(const char* what) { return wide_ ? number<uint64_t>(what) : number<uint32_t>(what); }
  std::string text(const char* what) { return std::string(take(length(what), what)); }

 private:
  const Bytes& bytes_;
  uint64_t at_ = 0;
  bool wide_ = true, swap_ = false;
};

}  // namespace weft::io::gguf
