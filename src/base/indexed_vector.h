#pragma once
// Typed indices that do not mix, vectors that only one index type indexes, and lists by index.
#include <cassert>
#include <compare>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace weft {

/// The index of a thing of kind `Tag`, from 0; -1, the default, is none. It converts from and to int, so that a loop
/// may count it, but not to the index of another kind.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr Id(int value) : value_(value) {}
  constexpr operator int() const { return value_; }
  constexpr Id& operator++() {
    ++value_;
    return *this;
  }
  constexpr Id& operator--() {
    --value_;
    return *this;
  }
  constexpr Id operator++(int) { return value_++; }
  constexpr Id operator--(int) { return value_--; }

 private:
  int value_ = -1;
};

// Templates, so that a comparison with an int is one of ints.
template <class Tag>
constexpr bool operator==(Id<Tag> a, Id<Tag> b) {
  return int{a} == int{b};
}
template <class Tag>
constexpr auto operator<=>(Id<Tag> a, Id<Tag> b) {
  return int{a} <=> int{b};
}

/// A vector that `Key` indexes. An index outside of it fails an assertion in debug builds.
template <class Key, class T>
class IndexedVector : public std::vector<T> {
 public:
  using Base = std::vector<T>;
  using Base::Base;
  IndexedVector() = default;
  IndexedVector(Base values) : Base(std::move(values)) {}

  /// Returns the size as an int, for loops over keys.
  int count() const { return static_cast<int>(Base::size()); }

  decltype(auto) operator[](Key key) { return Base::operator[](position(key)); }
  decltype(auto) operator[](Key key) const { return Base::operator[](position(key)); }

 private:
  size_t position(Key key) const {
    assert(int{key} >= 0 && static_cast<size_t>(int{key}) < Base::size());
    return static_cast<size_t>(int{key});
  }
};

/// A list of values for each key, all in one block of memory. `Key` converts to and from int; keys are 0 to the number
/// of lists.
template <class Key, class Value>
class Lists {
 public:
  Lists() = default;
  /// Makes `count` lists. `each(add)` calls add(key, value) for each value, in the order within its list; it is called
  /// twice.
  template <class Each>
  Lists(size_t count, Each each) : begin_(count + 1) {
    each([&](Key key, const Value&) { ++begin_[position(key) + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    values_.resize(begin_.back());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    each([&](Key key, const Value& value) { values_[next[position(key)]++] = value; });
  }
  /// Returns the list of a key; empty where no lists were made.
  std::span<const Value> operator[](Key key) const {
    if (begin_.empty()) return {};
    return {values_.data() + begin_[position(key)], values_.data() + begin_[position(key) + 1]};
  }

 private:
  static size_t position(Key key) { return static_cast<size_t>(int{key}); }
  std::vector<size_t> begin_;  // by key: where its values are
  std::vector<Value> values_;
};

}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  size_t operator()(weft::Id<Tag> id) const { return std::hash<int>()(id); }
};
