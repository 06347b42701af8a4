#pragma once
// A set of numbers or addresses that only grows, in one block of memory: walks of large graphs spend their time here.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class FlatSet {
 public:
  /// Whether it is new. 0 is not taken.
  bool insert(uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const bool fresh = enter(key);
    count_ += fresh;
    return fresh;
  }
  bool insert(const void* key) { return insert(reinterpret_cast<uintptr_t>(key)); }
  uint64_t size() const { return count_; }

 private:
  bool enter(uint64_t key) {
    size_t at = key * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[at] && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
    return !std::exchange(slots_[at], key);
  }
  void grow() {
    const std::vector<uint64_t> before = std::exchange(slots_, std::vector<uint64_t>(2 * slots_.size()));
    --shift_;
    for (const uint64_t key : before)
      if (key) enter(key);
  }

  std::vector<uint64_t> slots_ = std::vector<uint64_t>(64);  // a power of two, at most half full
  int shift_ = 64 - 6;
  uint64_t count_ = 0;
};

}  // namespace weft
