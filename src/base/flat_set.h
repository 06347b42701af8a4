#pragma once
// Maps and sets in one block of memory: walks of large graphs spend their time here.
#include <algorithm>
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
