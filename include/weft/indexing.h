#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "weft/array.h"

/// Indexing as in NumPy: integers, slices, "...", new axes, arrays of integers and masks, in any mixture.
///
///     index(x, 0, Slice(1, -1), newaxis)          x[0, 1:-1, None]
///     index(x, ellipsis, Slice::step(-1))         x[..., ::-1]
///     index(x, array({3, 0, 3}))                  x[[3, 0, 3]]
///     index(x, x > 0.0f)                          x[x > 0]: evaluates the mask, since the result's length depends on
///                                                 it
///     x = at(x, 2).set(0.0f)                      x[2] = 0, as a new value
///     x = at(x, rows).add(updates)                as MLX's x.at[rows].add(updates): repeated rows add up
namespace weft {

/// start:stop:step, each of which may be missing.
class Slice {
 public:
  using Bound = std::optional<int64_t>;
  Slice() = default;
  Slice(Bound start, Bound stop, Bound step = std::nullopt) : start_(start), stop_(stop), step_(step) {}
  static Slice from(int64_t start) { return {start, std::nullopt}; }
  static Slice to(int64_t stop) { return {std::nullopt, stop}; }
  static Slice step(int64_t n) { return {std::nullopt, std::nullopt, n}; }
  const Bound& start() const { return start_; }
  const Bound& stop() const { return stop_; }
  const Bound& stride() const { return step_; }

 private:
  Bound start_, stop_, step_;
};

struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis;
inline constexpr NewAxis newaxis;

/// One entry of an index.
class Index {
 public:
  template <std::integral T>
  Index(T i) : entry_(static_cast<int64_t>(i)) {}
  Index(const Slice& s) : entry_(s) {}
  Index(Ellipsis e) : entry_(e) {}
  Index(NewAxis n) : entry_(n) {}
  Index(const array& a) : entry_(a) {}  ///< integers, or a mask (bool) over as many axes as it has
  const std::variant<int64_t, Slice, Ellipsis, NewAxis, array>& entry() const { return entry_; }

 private:
  std::variant<int64_t, Slice, Ellipsis, NewAxis, array> entry_;
};

/// What the index chooses. Integers out of range throw std::out_of_range; arrays of indices count from the end where
/// negative and are clamped at the ends. Where integer arrays stand apart from each other their common axes come first,
/// as in NumPy; else in their place.
WEFT_API array index(const array& a, const std::vector<Index>& indices, StreamOrDevice s = {});
template <class... I>
requires(sizeof...(I) > 0 && (std::convertible_to<const I&, Index> && ...)) array
    index(const array& a, const I&... indices) {
  return index(a, std::vector<Index>{Index(indices)...});
}

/// A place in an array, to be read or replaced. Each function returns the whole array with the chosen elements changed;
/// `values` broadcast to their shape. An element that is chosen several times keeps one of the values with `set`, and
/// takes part as often as it is chosen with the others.
class WEFT_API IndexedArray {
 public:
  IndexedArray(array a, std::vector<Index> indices) : array_(std::move(a)), indices_(std::move(indices)) {}
  array get() const;
  array set(const array& values) const;
  array add(const array& values) const;
  array subtract(const array& values) const;
  array multiply(const array& values) const;
  array divide(const array& values) const;
  array maximum(const array& values) const;
  array minimum(const array& values) const;

 private:
  array array_;
  std::vector<Index> indices_;
};
template <class... I>
requires(sizeof...(I) > 0 && (std::convertible_to<const I&, Index> && ...)) IndexedArray
    at(const array& a, const I&... indices) {
  return {a, std::vector<Index>{Index(indices)...}};
}

/// Positions of the elements that are not zero, one int64 array for each axis, in row-major order. Evaluates.
WEFT_API std::vector<array> nonzero(const array& a);

}  // namespace weft
