#pragma once
// Intervals of integers: what the rows of operators say of the values of a result, given those of the arguments.
#include <algorithm>
#include <cstdint>

#include "base/number.h"

namespace weft::kernel {

/// Values of an integer lie in [min, max]; floats are not bounded. Of uint64 these are bit patterns, read as int64.
struct Interval {
  int64_t min = INT64_MIN, max = INT64_MAX;
};

__extension__ typedef __int128 wide_t;

/// Returns all that the dtype holds: no bound for floats and for uint64.
inline Interval range_of(Dtype t) {
  if (t == bool_) return {0, 1};
  if (!is_integer(t) || t.size() == 8) return {};
  const int bits = t.size() * 8;
  if (is_unsigned(t)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

/// Returns [low, high] where the dtype holds both, else all that it holds, because the value may have wrapped.
inline Interval fit(Dtype t, wide_t low, wide_t high) {
  if (is_float(t)) return {};
  Interval range = range_of(t);
  if (t == uint64) range.min = 0;
  if (low < range.min || high > range.max) return range_of(t);
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

/// The intervals of an operator's arguments, and the dtype of its result.
struct Intervals {
  Dtype type;
  Interval a, b;  // b: 0 of a unary operator
  /// Returns whether values are ordered as their intervals are: not those of floats, nor bit patterns of uint64 above
  /// INT64_MAX.
  bool ordered() const { return !is_float(type) && (type != uint64 || (a.min >= 0 && b.min >= 0)); }
  Interval any() const { return range_of(type); }
  Interval fit(wide_t low, wide_t high) const { return kernel::fit(type, low, high); }
  /// Returns the interval of a function that is monotonic in each argument: its extremes are at the ends of a and b.
  Interval corners(wide_t (*f)(wide_t, wide_t)) const {
    if (!ordered()) return any();
    const wide_t c[] = {f(a.min, b.min), f(a.min, b.max), f(a.max, b.min), f(a.max, b.max)};
    return fit(*std::min_element(c, c + 4), *std::max_element(c, c + 4));
  }
};

}  // namespace weft::kernel
