#pragma once
// Functions of tiles: from numbers, element by element, and movement.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/kernel/tile.h"

namespace weft::k {

// Tiles from numbers.
/// Returns a tile that a number fills.
template <class T, size_t N>
Tile<T, static_cast<int>(N)> full(const int64_t (&dims)[N], Scalar number, Line at = Line::here()) {
  return Tile<T, static_cast<int>(N)>(constant(detail::dtype_of<T>(), number, {dims, dims + N}, at));
}
/// Returns a tile of zeros.
template <class T, size_t N>
Tile<T, static_cast<int>(N)> zeros(const int64_t (&dims)[N], Line at = Line::here()) {
  return full<T>(dims, 0, at);
}
/// Returns a number as a scalar.
template <class T>
Tile<T, 0> scalar(Scalar number, Line at = Line::here()) {
  return Tile<T, 0>(constant(detail::dtype_of<T>(), number, {}, at));
}
/// Returns 0, 1, … n-1.
template <class T = i64>
Tile<T, 1> arange(int64_t n, Line at = Line::here()) {
  return Tile<T, 1>(iota(n, detail::dtype_of<T>(), at));
}

/// Converts elements: floats to integers toward zero, saturating; to narrower floats to nearest even.
template <class To, TileLike V>
Tile<To, rank_of<V>> cast(const V& v, Line at = Line::here()) {
  return Tile<To, rank_of<V>>(cast(detail::as_tile(v, at).any(), detail::dtype_of<To>(), at));
}
/// Reads the bits of elements as another type of the same width.
template <class To, TileLike V>
Tile<To, rank_of<V>> bitcast(const V& v, Line at = Line::here()) {
  return Tile<To, rank_of<V>>(bitcast(detail::as_tile(v, at).any(), detail::dtype_of<To>(), at));
}

// Scalar operators by their names in docs/operators.md.
namespace detail {
template <TileLike V>
TileOf<V> unary(std::string_view op, const V& v, Line at) {
  return TileOf<V>(apply(op, std::array{as_tile(v, at).any()}, at));
}
}  // namespace detail
/// Computes a scalar operator of one argument by its name in docs/operators.md, one that keeps the element type.
template <TileLike V>
TileOf<V> apply(std::string_view op, const V& v, Line at = Line::here()) {
  return detail::unary(op, v, at);
}
/// Returns the magnitude.
template <TileLike V>
TileOf<V> abs(const V& v, Line at = Line::here()) {
  return detail::unary("abs", v, at);
}
/// Returns the square root.
template <TileLike V>
TileOf<V> sqrt(const V& v, Line at = Line::here()) {
  return detail::unary("sqrt", v, at);
}
/// Returns 1 / √a.
template <TileLike V>
TileOf<V> rsqrt(const V& v, Line at = Line::here()) {
  return detail::unary("rsqrt", v, at);
}
/// Returns 1 / a.
template <TileLike V>
TileOf<V> recip(const V& v, Line at = Line::here()) {
  return detail::unary("recip", v, at);
}
/// Returns a².
template <TileLike V>
TileOf<V> square(const V& v, Line at = Line::here()) {
  return detail::unary("square", v, at);
}
/// Returns a rounded down.
template <TileLike V>
TileOf<V> floor(const V& v, Line at = Line::here()) {
  return detail::unary("floor", v, at);
}
/// Returns a rounded up.
template <TileLike V>
TileOf<V> ceil(const V& v, Line at = Line::here()) {
  return detail::unary("ceil", v, at);
}
/// Returns a rounded toward 0.
template <TileLike V>
TileOf<V> trunc(const V& v, Line at = Line::here()) {
  return detail::unary("trunc", v, at);
}
/// Returns a rounded to nearest, halves to even.
template <TileLike V>
TileOf<V> round(const V& v, Line at = Line::here()) {
  return detail::unary("round", v, at);
}
/// Returns -1, 0 or 1 by the sign.
template <TileLike V>
TileOf<V> sign(const V& v, Line at = Line::here()) {
  return detail::unary("sign", v, at);
}
/// Returns e to the power a.
template <TileLike V>
TileOf<V> exp(const V& v, Line at = Line::here()) {
  return detail::unary("exp", v, at);
}
/// Returns 2 to the power a.
template <TileLike V>
TileOf<V> exp2(const V& v, Line at = Line::here()) {
  return detail::unary("exp2", v, at);
}
/// Returns exp(a) - 1, accurate near 0.
template <TileLike V>
TileOf<V> expm1(const V& v, Line at = Line::here()) {
  return detail::unary("expm1", v, at);
}
/// Returns the natural logarithm.
template <TileLike V>
TileOf<V> log(const V& v, Line at = Line::here()) {
  return detail::unary("log", v, at);
}
/// Returns the logarithm to base 2.
template <TileLike V>
TileOf<V> log2(const V& v, Line at = Line::here()) {
  return detail::unary("log2", v, at);
}
/// Returns log(1 + a), accurate near 0.
template <TileLike V>
TileOf<V> log1p(const V& v, Line at = Line::here()) {
  return detail::unary("log1p", v, at);
}
/// Returns the sine.
template <TileLike V>
TileOf<V> sin(const V& v, Line at = Line::here()) {
  return detail::unary("sin", v, at);
}
/// Returns the cosine.
template <TileLike V>
TileOf<V> cos(const V& v, Line at = Line::here()) {
  return detail::unary("cos", v, at);
}
/// Returns the hyperbolic tangent.
template <TileLike V>
TileOf<V> tanh(const V& v, Line at = Line::here()) {
  return detail::unary("tanh", v, at);
}
/// Returns the error function.
template <TileLike V>
TileOf<V> erf(const V& v, Line at = Line::here()) {
  return detail::unary("erf", v, at);
}
/// Returns 1 / (1 + exp(-a)).
template <TileLike V>
TileOf<V> sigmoid(const V& v, Line at = Line::here()) {
  return detail::unary("sigmoid", v, at);
}

namespace detail {
/// The tile type of two operands, one of which may be a number.
template <class A, class B>
struct Both {
  static_assert(never<A>, "an operand is a tile, a slice, a variable or a number, and one of them is no number");
};
template <TileLike A, TileLike B>
struct Both<A, B> {
  static_assert((check_operands<A, B>(), true));
  using type = Tile<ElementOf<A>, (rank_of<A> > rank_of<B> ? rank_of<A> : rank_of<B>)>;
};
template <TileLike A, class N>
requires std::is_arithmetic_v<N>
struct Both<A, N> {
  using type = TileOf<A>;
};
template <class N, TileLike B>
requires std::is_arithmetic_v<N>
struct Both<N, B> {
  using type = TileOf<B>;
};
template <class A, class B>
using BothOf = typename Both<A, B>::type;

template <class T, class V>
Any operand(const V& v, Line at) {
  if constexpr (std::is_arithmetic_v<V>) return constant(dtype_of<T>(), v, {}, at);
  else return as_tile(v, at).any();
}
template <class A, class B>
BothOf<A, B> binary(std::string_view op, const A& a, const B& b, Line at) {
  using T = typename BothOf<A, B>::Element;
  return BothOf<A, B>(apply(op, std::array{operand<T>(a, at), operand<T>(b, at)}, at));
}
}  // namespace detail
/// Returns the larger of two elements; NaN where either is.
template <class A, class B>
auto maximum(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("max", a, b, at);
}
/// Returns the smaller of two elements; NaN where either is.
template <class A, class B>
auto minimum(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("min", a, b, at);
}
/// Returns the quotient, rounded down.
template <class A, class B>
auto floordiv(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("floordiv", a, b, at);
}
/// Returns the remainder of floordiv, with the sign of b.
template <class A, class B>
auto mod(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("mod", a, b, at);
}
/// Returns a to the power b.
template <class A, class B>
auto pow(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("pow", a, b, at);
}
/// Returns a · b + c, rounded once.
template <TileLike A, class B, class C>
auto fma(const A& a, const B& b, const C& c, Line at = Line::here()) {
  using Result = detail::BothOf<detail::BothOf<A, B>, C>;
  using T = typename Result::Element;
  return Result(
      apply("fma", std::array{detail::operand<T>(a, at), detail::operand<T>(b, at), detail::operand<T>(c, at)}, at));
}
/// Returns a where the condition holds, else b; both are values, or one is a number.
template <TileLike C, class A, class B>
auto where(const C& condition, const A& a, const B& b, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<C>, bool>, "the condition of where is a tile of bool");
  using Values = detail::BothOf<A, B>;
  using T = typename Values::Element;
  static_assert(rank_of<C> == Values::rank || rank_of<C> == 0 || Values::rank == 0,
                "condition and values have one rank: use row, col or expand_dims");
  return Tile<T, std::max(rank_of<C>, Values::rank)>(apply(
      "select", std::array{detail::as_tile(condition, at).any(), detail::operand<T>(a, at), detail::operand<T>(b, at)},
      at));
}

// Movement.
namespace detail {
WEFT_API Any expanded(const Any& v, int axis, Line at);
WEFT_API Any joined(const Any& a, const Any& b, Line at);
WEFT_API Any half(const Any& v, int64_t k, Line at);
WEFT_API Any interleaved(const Any& a, const Any& b, Line at);
WEFT_API Any flipped(const Any& v, int axis, Line at);

template <class A, class B>
constexpr void check_alike() {
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "the tiles have one element type: cast one of them");
  static_assert(rank_of<A> == rank_of<B>, "the tiles have one rank: use row, col or expand_dims");
}
}  // namespace detail
/// Returns the elements, in row-major order, in another shape.
template <TileLike V, size_t N>
Tile<ElementOf<V>, static_cast<int>(N)> reshape(const V& v, const int64_t (&dims)[N], Line at = Line::here()) {
  return Tile<ElementOf<V>, static_cast<int>(N)>(reshape(detail::as_tile(v, at).any(), {dims, dims + N}, at));
}
/// Repeats a tile to a shape by NumPy's rule.
template <TileLike V, size_t N>
Tile<ElementOf<V>, static_cast<int>(N)> broadcast_to(const V& v, const int64_t (&dims)[N], Line at = Line::here()) {
  return Tile<ElementOf<V>, static_cast<int>(N)>(broadcast_to(detail::as_tile(v, at).any(), {dims, dims + N}, at));
}
/// Returns axis k of the result from axis axes[k].
template <TileLike V, size_t N>
TileOf<V> permute(const V& v, const int (&axes)[N], Line at = Line::here()) {
  static_assert(static_cast<int>(N) == rank_of<V>, "permute names each axis of the tile once");
  return TileOf<V>(permute(detail::as_tile(v, at).any(), {axes, axes + N}, at));
}
/// Exchanges the last two axes.
template <TileLike V>
TileOf<V> trans(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> >= 2, "trans exchanges the last two axes: the tile has two at least");
  std::vector<int> axes;
  for (int k = 0; k < rank_of<V>; ++k) axes.push_back(k);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return TileOf<V>(permute(detail::as_tile(v, at).any(), axes, at));
}
/// Returns the tile with a new axis of extent 1, which is axis `axis` of the result.
template <TileLike V>
Tile<ElementOf<V>, rank_of<V> + 1> expand_dims(const V& v, int axis, Line at = Line::here()) {
  return Tile<ElementOf<V>, rank_of<V> + 1>(detail::expanded(detail::as_tile(v, at).any(), axis, at));
}
/// Returns [n] as [1, n].
template <TileLike V>
Tile<ElementOf<V>, 2> row(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> == 1, "row takes a tile of one axis");
  return expand_dims(v, 0, at);
}
/// Returns [n] as [n, 1].
template <TileLike V>
Tile<ElementOf<V>, 2> col(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> == 1, "col takes a tile of one axis");
  return expand_dims(v, 1, at);
}
/// Returns a part of a tile: `dims` elements from `starts` on, by `steps`.
template <TileLike V, size_t N>
TileOf<V> slice(const V& v, const int64_t (&starts)[N], const int64_t (&dims)[N], Line at = Line::here()) {
  return TileOf<V>(slice(detail::as_tile(v, at).any(), {starts, starts + N}, {dims, dims + N}, {}, at));
}
template <TileLike V, size_t N>
TileOf<V> slice(const V& v, const int64_t (&starts)[N], const int64_t (&dims)[N], const int64_t (&steps)[N],
                Line at = Line::here()) {
  return TileOf<V>(slice(detail::as_tile(v, at).any(), {starts, starts + N}, {dims, dims + N}, {steps, steps + N}, at));
}
/// Joins two tiles along an axis.
template <TileLike A, TileLike B>
TileOf<A> cat(const A& a, const B& b, int axis = 0, Line at = Line::here()) {
  detail::check_alike<A, B>();
  return TileOf<A>(cat(std::array{detail::as_tile(a, at).any(), detail::as_tile(b, at).any()}, axis, at));
}
/// Stacks two tiles along a new last axis of extent 2; `split` takes them apart.
template <TileLike A, TileLike B>
Tile<ElementOf<A>, rank_of<A> + 1> join(const A& a, const B& b, Line at = Line::here()) {
  detail::check_alike<A, B>();
  return Tile<ElementOf<A>, rank_of<A> + 1>(
      detail::joined(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), at));
}
/// Returns the two halves of a last axis of extent 2.
template <TileLike A>
std::pair<Tile<ElementOf<A>, rank_of<A> - 1>, Tile<ElementOf<A>, rank_of<A> - 1>> split(const A& a,
                                                                                        Line at = Line::here()) {
  static_assert(rank_of<A> >= 1, "split takes the two halves of the last axis: the tile has one at least");
  using Half = Tile<ElementOf<A>, rank_of<A> - 1>;
  const Any tile = detail::as_tile(a, at).any();
  Half first(detail::half(tile, 0, at));
  return {first, Half(detail::half(tile, 1, at))};
}
/// Returns the elements of two tiles in turn along the last axis.
template <TileLike A, TileLike B>
TileOf<A> interleave(const A& a, const B& b, Line at = Line::here()) {
  static_assert(rank_of<A> >= 1, "interleave takes elements in turn along the last axis: the tiles have one at least");
  detail::check_alike<A, B>();
  return TileOf<A>(detail::interleaved(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), at));
}
/// Reverses an axis.
template <TileLike A>
TileOf<A> flip(const A& a, int axis, Line at = Line::here()) {
  return TileOf<A>(detail::flipped(detail::as_tile(a, at).any(), axis, at));
}
/// Returns along `axis` the elements that the index names.
template <TileLike A, TileLike I>
TileOf<A> take(const A& a, const I& index, int axis, Line at = Line::here()) {
  static_assert(rank_of<A> == rank_of<I>, "take takes a tile and an index of one rank");
  static_assert(std::is_integral_v<ElementOf<I>> && !std::same_as<ElementOf<I>, bool>,
                "the index of take is a tile of integers");
  return TileOf<A>(take(detail::as_tile(a, at).any(), detail::as_tile(index, at).any(), axis, at));
}

}  // namespace weft::k
