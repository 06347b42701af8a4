#pragma once
// Hash maps and sets of integers or addresses that only grow, in one block of memory: walks of large graphs spend their
// time here. A key must not be 0.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

/// Maps keys to integers.
class FlatMap {
 public:
  /// Inserts the value if the key is new; returns the key's value and whether it was new.
  std::pair<int, bool> insert(uint64_t key, int value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    const bool fresh = slot.key == 0;
    if (fresh) slot = {key, value};
    count_ += fresh;
    return {slot.value, fresh};
  }
  /// Returns the key's value, or -1.
  int find(uint64_t key) const {
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == 0 ? -1 : slot.value;
  }
  std::pair<int, bool> insert(const void* key, int value) { return insert(reinterpret_cast<uintptr_t>(key), value); }
  int find(const void* key) const { return find(reinterpret_cast<uintptr_t>(key)); }
  int size() const { return static_cast<int>(count_); }

 private:
  struct Slot {
    uint64_t key = 0;
    int value = 0;
  };
  size_t slot_of(uint64_t key) const {
    size_t at = key * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    --shift_;
    for (const Slot& slot : before)
      if (slot.key != 0) slots_[slot_of(slot.key)] = slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(32);  // a power of two, at most half full
  int shift_ = 64 - 5;
  size_t count_ = 0;
};

class FlatSet {
 public:
  /// Inserts a key; returns whether it was new.
  bool insert(uint64_t key) { return map_.insert(key, 0).second; }
  bool insert(const void* key) { return map_.insert(key, 0).second; }

 private:
  FlatMap map_;
};

}  // namespace weft
