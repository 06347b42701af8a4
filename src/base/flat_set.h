#pragma once
// Maps and sets in one block of memory: walks of graphs spend their time here.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace weft {

/// A hash map of integers or addresses to integers, which only grows. A key must not be 0.
class FlatMap {
 public:
  /// Inserts the value if the key is new; returns the key's value and whether it was new.
  std::pair<int, bool> insert(uint64_t key, int value) {
    if (2 * (count_ + 1) > size_t{1} << (64 - shift_)) grow();
    Slot& slot = slot_of(slots(), key, shift_);
    const bool fresh = slot.key == 0;
    if (fresh) slot = {key, value};
    count_ += fresh;
    return {slot.value, fresh};
  }
  /// Returns the key's value, or -1.
  int find(uint64_t key) const {
    const Slot& slot = slot_of(many_.empty() ? few_.data() : many_.data(), key, shift_);
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
  static constexpr int few_bits = 5;

  Slot* slots() { return many_.empty() ? few_.data() : many_.data(); }
  /// Returns the key's slot among the 2^(64 - shift) at `slots`, or the free one where it belongs.
  template <class S>
  static S& slot_of(S* slots, uint64_t key, int shift) {
    const size_t last = (size_t{1} << (64 - shift)) - 1;
    size_t at = key * 0x9E3779B97F4A7C15 >> shift;
    while (slots[at].key != 0 && slots[at].key != key) at = (at + 1) & last;
    return slots[at];
  }
  void grow() {
    const size_t size = size_t{1} << (64 - shift_);
    std::vector<Slot> larger(2 * size);
    for (const Slot* slot = slots(); slot != slots() + size; ++slot)
      if (slot->key != 0) slot_of(larger.data(), slot->key, shift_ - 1) = *slot;
    many_ = std::move(larger);
    --shift_;
  }

  std::array<Slot, 1 << few_bits> few_{};  // the slots, or where there are more
  std::vector<Slot> many_;                 // these: a power of two, at most half full
  int shift_ = 64 - few_bits;
  size_t count_ = 0;
};

class FlatSet {
 public:
  /// Inserts a key; returns whether it was new.
  bool insert(uint64_t key) { return map_.insert(key, 0).second; }
  bool insert(const void* key) { return map_.insert(key, 0).second; }
  bool contains(const void* key) const { return map_.find(key) >= 0; }

 private:
  FlatMap map_;
};

/// A set whose elements are in ascending order: for few elements, or many that are inserted in that order.
template <class T>
class SortedSet {
 public:
  using const_iterator = typename std::vector<T>::const_iterator;

  SortedSet() = default;
  SortedSet(std::initializer_list<T> values) : SortedSet(values.begin(), values.end()) {}
  template <class It>
  SortedSet(It begin, It end) : values_(begin, end) {
    sort();
  }

  /// Inserts a value; returns where it is and whether it was new.
  std::pair<const_iterator, bool> insert(const T& value) {
    const auto at = values_.empty() || values_.back() < value ? values_.end() : lower_bound(value);
    const bool fresh = at == values_.end() || value < *at;
    return {fresh ? values_.insert(at, value) : at, fresh};
  }
  template <class It>
  void insert(It begin, It end) {
    values_.insert(values_.end(), begin, end);
    sort();
  }
  void merge(const SortedSet& more) { insert(more.begin(), more.end()); }
  void erase(const T& value) {
    if (const auto at = lower_bound(value); at != values_.end() && !(value < *at)) values_.erase(at);
  }
  void erase(const_iterator at) { values_.erase(at); }

  bool contains(const T& value) const { return std::binary_search(values_.begin(), values_.end(), value); }
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }

 private:
  typename std::vector<T>::iterator lower_bound(const T& value) {
    return std::lower_bound(values_.begin(), values_.end(), value);
  }
  void sort() {
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  }

  std::vector<T> values_;
};

}  // namespace weft
