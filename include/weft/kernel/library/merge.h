#pragma once
// Merging by the merge path (Green, McColl and Bader, 2012): any part of the result is found without what lies in front
// of it.
#include "weft/kernel.h"

namespace weft::k {

namespace detail {
/// Runs `steps` steps of binary searches within [low, high] along diagonals of the merge.
template <class A, class B, int R>
Tile<i64, R> split_within(const A& a, const B& b, const Tile<i64, R>& diagonal, const Tile<i64, R>& low,
                          const Tile<i64, R>& high, int64_t steps, Line at) {
  Mut lo = low, hi = high;
  loop(
      Index(steps, at),
      [&](const Index&) {
        const auto middle = floordiv(lo.get(at) + hi.get(at), 2, at);
        const auto open = lo.get(at) < hi.get(at);
        const auto up = a(middle) <= b(diagonal - 1 - middle);
        hi = where(open & !up, middle, hi.get(at), at);
        lo = where(open & up, middle + 1, lo.get(at), at);
      },
      at);
  return lo.get(at);
}
/// The steps of a binary search among n + 1 positions.
constexpr int64_t search_steps(int64_t n) {
  int64_t steps = 0;
  for (int64_t left = n; left > 0; left /= 2) ++steps;
  return steps;
}
template <class A>
auto reader_of(const A& array, Line at) {
  static_assert(A::rank == 1, "merging takes arrays of one axis");
  return [array, at](const auto& i) { return gather(array, i, at); };
}
}  // namespace detail

/// Returns for each diagonal d, an int64 scalar or tile in 0 … n+m, how many of the first d elements of the merged
/// order come from a sequence a of n elements; the others come from b, of m. Both are ascending, without NaN; a(i) and
/// b(i) give their elements at positions, an int64 scalar or tile, and anything for positions outside. Of equal
/// elements those of a go first.
template <class A, class B, TileLike D>
TileOf<D> merge_path(const A& a, int64_t n, const B& b, int64_t m, const D& diagonal, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<D>, i64>, "diagonals are int64");
  const auto d = detail::as_tile(diagonal, at);
  return detail::split_within(a, b, d, maximum(d - m, 0, at), minimum(d, n, at), detail::search_steps(std::min(n, m)),
                              at);
}
/// Returns the same of two arrays of one axis.
template <detail::reference A, detail::reference B, TileLike D>
TileOf<D> merge_path(const A& a, const B& b, const D& diagonal, Line at = Line::here()) {
  return merge_path(detail::reader_of(a, at), a.dim(0, at), detail::reader_of(b, at), b.dim(0, at), diagonal, at);
}

/// Returns elements first … first+size-1, ascending, of what the sequences of merge_path give together; behind the last
/// one, anything. Two searches find this part in both, then one each element within it.
template <class A, class B>
auto merge_part(const A& a, int64_t n, const B& b, int64_t m, const Index& first, int64_t size,
                Line at = Line::here()) {
  const auto end = minimum(first + size, n + m, at);
  const auto low = merge_path(a, n, b, m, first, at), high = merge_path(a, n, b, m, end, at);
  const auto d = minimum(first + arange(size, at), n + m, at);
  const auto least = maximum(low, d - (end - high), at), most = minimum(high, low + d - first, at);
  const auto from_a = detail::split_within(a, b, d, least, most, detail::search_steps(size), at);
  const auto from_b = d - from_a;
  const auto x = a(from_a), y = b(from_b);
  return where((from_b >= m) | ((from_a < n) & (x <= y)), x, y, at);
}
/// Returns the same of two arrays of one axis.
template <detail::reference A, detail::reference B>
Tile<typename A::Element, 1> merge_part(const A& a, const B& b, const Index& first, int64_t size,
                                        Line at = Line::here()) {
  return merge_part(detail::reader_of(a, at), a.dim(0, at), detail::reader_of(b, at), b.dim(0, at), first, size, at);
}

}  // namespace weft::k
