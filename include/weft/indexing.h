#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "weft/array.h"

/// Indexing as in NumPy: integers, slices, "...", new axes, arrays of integers and masks, in any mixture.
///
///     array a = index(x, 0, Slice(1, -1), newaxis);   // x[0, 1:-1, None]
///     array b = index(x, ellipsis, Slice::step(-1));  // x[..., ::-1]
///     array c = index(x, array({3, 0, 3}));           // x[[3, 0, 3]]
///     array d = index(x, x > 0.0f);                   // x[x > 0]: evaluates the mask, as the length depends on it
///     x = at(x, 2).set(0.0f);                         // x[2] = 0, as a new value
///     x = at(x, rows).add(updates);                   // as MLX's x.at[rows].add(updates): repeated rows add up
namespace weft {

/// A range start:stop:step along one axis, each of which may be missing.
class Slice {
 public:
  /// A number of the range, or none.
  using Bound = std::optional<int64_t>;
  Slice() = default;
  Slice(Bound start, Bound stop, Bound step = std::nullopt) : start_(start), stop_(stop), step_(step) {}
  /// Returns start:.
  static Slice from(int64_t start) { return {start, std::nullopt}; }
  /// Returns :stop.
  static Slice to(int64_t stop) { return {std::nullopt, stop}; }
  /// Returns ::n.
  static Slice step(int64_t n) { return {std::nullopt, std::nullopt, n}; }
  /// Returns the first position.
  const Bound& start() const { return start_; }
  /// Returns the position before which the range ends.
  const Bound& stop() const { return stop_; }
  /// Returns the distance between positions.
  const Bound& stride() const { return step_; }

 private:
  Bound start_, stop_, step_;
};

/// The type of `ellipsis`.
struct Ellipsis {};
/// The type of `newaxis`.
struct NewAxis {};
/// As many whole axes as the other entries leave: "...".
inline constexpr Ellipsis ellipsis;
/// A new axis of length 1: NumPy's None.
inline constexpr NewAxis newaxis;

/// One entry of an index: an integer, a Slice, `ellipsis`, `newaxis`, an array of integers, or a mask (bool) over as
/// many axes as it has.
class Index {
 public:
  template <std::integral T>
  Index(T i) : entry_(static_cast<int64_t>(i)) {}
  Index(const Slice& s) : entry_(s) {}
  Index(Ellipsis e) : entry_(e) {}
  Index(NewAxis n) : entry_(n) {}
  Index(const array& a) : entry_(a) {}
  /// Returns what it was made of.
  const std::variant<int64_t, Slice, Ellipsis, NewAxis, array>& entry() const { return entry_; }

 private:
  std::variant<int64_t, Slice, Ellipsis, NewAxis, array> entry_;
};

/// Returns the elements that the index selects. Integers out of range throw std::out_of_range; arrays of indices count
/// from the end where negative and are clamped at the ends. The common axes of integer arrays come first where
/// something else stands between the arrays, as in NumPy, else in the position of the first one.
WEFT_API array index(const array& a, const std::vector<Index>& indices, StreamOrDevice s = {});
/// Returns the same for entries that are given one by one.
template <class... I>
requires(sizeof...(I) > 0 && (std::convertible_to<const I&, Index> && ...)) array
    index(const array& a, const I&... indices) {
  return index(a, std::vector<Index>{Index(indices)...});
}

/// Elements of an array, selected by an index, to be read or replaced. An update returns the whole array with the
/// selected elements changed; `values` broadcast to their shape. An element that is selected several times keeps one of
/// the values with `set`, and takes part each time with the others.
class WEFT_API IndexedArray {
 public:
  IndexedArray(array a, std::vector<Index> indices) : array_(std::move(a)), indices_(std::move(indices)) {}
  /// Returns the selected elements.
  array get() const;
  /// Returns the array with the elements replaced by the values.
  array set(const array& values) const;
  /// Returns the array with the values added.
  array add(const array& values) const;
  /// Returns the array with the values subtracted.
  array subtract(const array& values) const;
  /// Returns the array with the elements multiplied by the values.
  array multiply(const array& values) const;
  /// Returns the array with the elements divided by the values.
  array divide(const array& values) const;
  /// Returns the array with the larger of element and value.
  array maximum(const array& values) const;
  /// Returns the array with the smaller of element and value.
  array minimum(const array& values) const;

 private:
  array array_;
  std::vector<Index> indices_;
};
/// Selects elements of an array: at(x, 2).set(0.0f) is x with x[2] = 0.
template <class... I>
requires(sizeof...(I) > 0 && (std::convertible_to<const I&, Index> && ...)) IndexedArray
    at(const array& a, const I&... indices) {
  return {a, std::vector<Index>{Index(indices)...}};
}

/// Evaluates, and returns the positions of the elements that are not zero in row-major order, one int64 array for each
/// axis.
WEFT_API std::vector<array> nonzero(const array& a);

}  // namespace weft
