#pragma once
// Functions along an axis of a tile: reductions and scans, whose order is fixed, and sorting.
#include <array>
#include <concepts>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/kernel/tile.h"

namespace weft::k {

// Reductions along one axis, which goes, or along all. The order is fixed.
namespace detail {
template <class T, TileLike V>
Tile<T, rank_of<V> - 1> reduced(std::string_view reducer, const V& v, int axis, Line at) {
  static_assert(rank_of<V> >= 1, "a scalar has no axis to reduce");
  return Tile<T, rank_of<V> - 1>(reduce(reducer, as_tile(v, at).any(), axis, at));
}
template <TileLike V>
Tile<ElementOf<V>, 0> reduced_wholly(std::string_view reducer, const V& v, Line at) {
  static_assert(rank_of<V> >= 1, "a scalar has no axis to reduce");
  Any left = as_tile(v, at).any();
  for (int axis = rank_of<V>; axis-- > 0;) left = reduce(reducer, left, axis, at);
  return Tile<ElementOf<V>, 0>(left);
}
}  // namespace detail
/// Returns the sum.
template <TileLike V>
auto sum(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("sum", v, axis, at);
}
/// Returns the sum.
template <TileLike V>
auto sum(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("sum", v, at);
}
/// Returns the product.
template <TileLike V>
auto prod(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("prod", v, axis, at);
}
/// Returns the largest element; NaN where one is.
template <TileLike V>
auto max(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("max", v, axis, at);
}
/// Returns the largest element; NaN where one is.
template <TileLike V>
auto max(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("max", v, at);
}
/// Returns the smallest element; NaN where one is.
template <TileLike V>
auto min(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("min", v, axis, at);
}
/// Returns the smallest element; NaN where one is.
template <TileLike V>
auto min(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("min", v, at);
}
/// Returns whether any element is true.
template <TileLike V>
auto any(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<bool>("any", v, axis, at);
}
/// Returns whether any element is true.
template <TileLike V>
auto any(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("any", v, at);
}
/// Returns the elements combined by exclusive or.
template <TileLike V>
auto xor_sum(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("xor", v, axis, at);
}
/// Returns the index of the first largest element.
template <TileLike V>
auto argmax(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<u32>("argmax", v, axis, at);
}
/// Returns the index of the first smallest element.
template <TileLike V>
auto argmin(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<u32>("argmin", v, axis, at);
}
/// Returns the logarithm of the sum of exponentials.
template <TileLike V>
auto logsumexp(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("logsumexp", v, axis, at);
}

namespace detail {
/// Functions of two scalars.
template <class F, class V>
concept combines = std::invocable < F,
        Tile < ElementOf<V>,
0 >, Tile < ElementOf<V>, 0 >> ;

template <class F, class T>
CombineAny combine_of(const F& f) {
  return [f](const std::vector<Any>& low, const std::vector<Any>& high) {
    const auto out = f(Tile<T, 0>(low[0]), Tile<T, 0>(high[0]));
    static_assert(std::same_as<decltype(out), const Tile<T, 0>>,
                  "the function returns a scalar of the tile's element type");
    return std::vector<Any>{out.any()};
  };
}
template <class F, class T, class U>
CombineAny combine_of(const F& f) {
  return [f](const std::vector<Any>& low, const std::vector<Any>& high) {
    const std::pair<Tile<T, 0>, Tile<U, 0>> out =
        f(Tile<T, 0>(low[0]), Tile<U, 0>(low[1]), Tile<T, 0>(high[0]), Tile<U, 0>(high[1]));
    return std::vector<Any>{out.first.any(), out.second.any()};
  };
}
}  // namespace detail
/// Reduces by a function of two parts: f(lower, upper) returns a scalar. It is associative.
template <TileLike V, detail::combines<V> F>
Tile<ElementOf<V>, rank_of<V> - 1> reduce(const V& v, int axis, const F& f, Line at = Line::here()) {
  return Tile<ElementOf<V>, rank_of<V> - 1>(
      reduce(detail::combine_of<F, ElementOf<V>>(f), std::array{detail::as_tile(v, at).any()}, axis, at)[0]);
}
/// Reduces two tiles of one shape together: f(a of the lower part, b of it, a of the upper part, b of it) returns a
/// pair.
template <TileLike A, TileLike B, class F>
std::pair<Tile<ElementOf<A>, rank_of<A> - 1>, Tile<ElementOf<B>, rank_of<B> - 1>> reduce(const A& a, const B& b,
                                                                                         int axis, const F& f,
                                                                                         Line at = Line::here()) {
  const std::vector<Any> out = reduce(detail::combine_of<F, ElementOf<A>, ElementOf<B>>(f),
                                      std::array{detail::as_tile(a, at).any(), detail::as_tile(b, at).any()}, axis, at);
  return {Tile<ElementOf<A>, rank_of<A> - 1>(out[0]), Tile<ElementOf<B>, rank_of<B> - 1>(out[1])};
}

// Scans: element i from those up to i, or (`reverse`) from i on.
/// Returns the sums up to each element.
template <TileLike V>
TileOf<V> cumsum(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("sum", detail::as_tile(v, at).any(), axis, reverse, at));
}
/// Returns the products up to each element.
template <TileLike V>
TileOf<V> cumprod(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("prod", detail::as_tile(v, at).any(), axis, reverse, at));
}
/// Returns the largest element up to each.
template <TileLike V>
TileOf<V> cummax(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("max", detail::as_tile(v, at).any(), axis, reverse, at));
}
/// Returns the smallest element up to each.
template <TileLike V>
TileOf<V> cummin(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("min", detail::as_tile(v, at).any(), axis, reverse, at));
}
/// Combines each element with those before it by a function of two parts.
template <TileLike V, detail::combines<V> F>
TileOf<V> scan(const V& v, int axis, const F& f, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(
      scan(detail::combine_of<F, ElementOf<V>>(f), std::array{detail::as_tile(v, at).any()}, axis, reverse, at)[0]);
}

// Order within a tile.
namespace detail {
WEFT_API Any largest(const Any& v, int64_t k, Line at);
}
/// Sorts an axis. Equal elements keep their order; NaN comes last.
template <TileLike V>
TileOf<V> sort(const V& v, int axis = -1, bool descending = false, Line at = Line::here()) {
  return TileOf<V>(sort(std::array{detail::as_tile(v, at).any()}, axis, descending, at)[0]);
}
/// Sorts keys, and values along with them.
template <TileLike K, TileLike V>
std::pair<TileOf<K>, TileOf<V>> sort_by(const K& keys, const V& values, int axis = -1, bool descending = false,
                                        Line at = Line::here()) {
  const std::vector<Any> out =
      sort(std::array{detail::as_tile(keys, at).any(), detail::as_tile(values, at).any()}, axis, descending, at);
  return {TileOf<K>(out[0]), TileOf<V>(out[1])};
}
/// Returns the k largest elements along the last axis, in descending order.
template <TileLike V>
TileOf<V> topk(const V& v, int64_t k, Line at = Line::here()) {
  static_assert(rank_of<V> >= 1, "topk takes elements of the last axis: the tile has one at least");
  return TileOf<V>(detail::largest(detail::as_tile(v, at).any(), k, at));
}
/// Counts how often each of 0 … bins-1 occurs.
template <TileLike V>
Tile<i32, 1> histogram(const V& index, int64_t bins, Line at = Line::here()) {
  static_assert(std::is_integral_v<ElementOf<V>> && !std::same_as<ElementOf<V>, bool>,
                "the index of histogram is a tile of integers");
  return Tile<i32, 1>(histogram(detail::as_tile(index, at).any(), bins, at));
}

}  // namespace weft::k
