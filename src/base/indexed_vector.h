#pragma once
// Typed indices that do not mix, and vectors that only one index type indexes.
#include <cassert>
#include <compare>
#include <cstddef>
#include <functional>
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

}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  size_t operator()(weft::Id<Tag> id) const { return std::hash<int>()(id); }
};
