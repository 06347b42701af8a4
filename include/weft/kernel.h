#pragma once
// The kernel language: programs on tiles, written as C++ functions and traced when they are first called.
//
//   using namespace weft;
//   void softmax(k::In<float, 2> x, k::Out<float, 2> y) {
//     const int64_t n = x.dim(1);
//     auto row = k::program_id(0);
//     auto v = x(row, k::ds(0, n)).load(-INFINITY);
//     auto e = k::exp(v - k::max(v, 0));
//     y(row, k::ds(0, n)) = e / k::sum(e, 0);
//   }
//
// A tile has zero to four axes of any extent. Operators work element by element on tiles of one dtype and one shape;
// scalars and axes of extent 1 repeat, and `row`, `col`, `expand_dims` give the axes. Slices are guarded at the edges
// of arrays. docs/kernels.md is the reference; weft/kernel_function.h makes a kernel a function of arrays.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "weft/kernel/block.h"
#include "weft/kernel/functions.h"
#include "weft/kernel/order.h"
#include "weft/kernel/packed.h"
#include "weft/kernel/random.h"
#include "weft/kernel/slice.h"

namespace weft::k {

namespace detail {
[[noreturn]] WEFT_API void refuse_divisor(int64_t b, Line at);
}

/// Returns the number of this program along an axis of the grid.
inline Index program_id(int axis, Line at = Line::here()) { return Index(program(axis, at)); }

/// Returns a length as a value: of a number a constant, of a dynamic one the run-time scalar.
inline Index extent(const Dim& length, Line at = Line::here()) {
  return length.is_static() ? Index(length.bound(), at) : Index(value_of(length.symbol(), at));
}

/// Returns the number of programs along an axis of the grid, which may be a run-time scalar.
inline Index program_count(int axis, Line at = Line::here()) { return Index(programs_along(axis, at)); }

/// Returns ceil(a / b), b positive.
constexpr int64_t cdiv(int64_t a, int64_t b) {
  if (b < 1) detail::refuse_divisor(b, Line{});
  return (a + b - 1) / b;
}
inline Index cdiv(const Index& a, int64_t b, Line at = Line::here()) {
  if (b < 1) detail::refuse_divisor(b, at);
  const Any more = apply("add", std::array{a.any(), constant(int64, b - 1, {}, at)}, at);
  return Index(apply("floordiv", std::array{more, constant(int64, b, {}, at)}, at));
}

namespace detail {
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, i32, std::conditional_t<std::same_as<T, f64>, f64, f32>>;

template <class A, class B>
constexpr void check_dot() {
  static_assert(rank_of<A> == rank_of<B> && rank_of<A> >= 2, "dot takes tiles of one rank, two axes at least");
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "dot takes tiles of one element type: cast one of them");
}
}  // namespace detail
/// Returns a·b of [m,k] and [k,n], or batches of them, added up in float32 (float64, int32), k ascending.
template <TileLike A, TileLike B>
Tile<detail::Sum<ElementOf<A>>, rank_of<A>> dot(const A& a, const B& b, Precision precision = Precision::exact,
                                                Line at = Line::here()) {
  detail::check_dot<A, B>();
  return Tile<detail::Sum<ElementOf<A>>, rank_of<A>>(
      dot(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), {}, precision, at));
}
/// Returns c + a·b.
template <TileLike A, TileLike B, TileLike C>
TileOf<C> dot(const A& a, const B& b, const C& c, Precision precision = Precision::exact, Line at = Line::here()) {
  detail::check_dot<A, B>();
  static_assert(rank_of<C> == rank_of<A>, "dot adds to a tile of the rank of its operands");
  return TileOf<C>(
      dot(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), detail::as_tile(c, at).any(), precision, at));
}

// Control flow. Variables (Mut) carry values from one iteration to the next, and out of a condition.

/// Runs body(i) for i = lo, lo + step, … below hi.
template <class F>
requires std::invocable<F, Index>
void loop(const Index& lo, const Index& hi, int64_t step, const F& body, Line at = Line::here()) {
  const std::function<void(Any)> each = [&](Any i) { body(Index(i)); };
  loop(lo.any(), hi.any(), step, each, at);
}
template <class F>
requires std::invocable<F, Index>
void loop(const Index& count, const F& body, Line at = Line::here()) { loop(Index(0, at), count, 1, body, at); }
/// Runs body(i) for i = 0 … n-1, iterations that may run at once: none reads what another one writes. Behind the loop
/// all see what they stored in scratch. It stands in no loop and no condition, and assigns no variables of the outside;
/// parallel loops of a kernel have equally many iterations, and nothing else writes arrays before one.
template <class F>
requires std::invocable<F, Index>
void parallel(int64_t n, const F& body, Line at = Line::here()) {
  const std::function<void(Any)> each = [&](Any i) { body(Index(i)); };
  parallel(n, each, at);
}
/// Runs body(k) for k = 0 … n-1 while the kernel is traced: the iterations are written one after the other.
template <class F>
void static_for(int64_t n, const F& body) {
  for (int64_t k = 0; k < n; ++k) body(k);
}
/// Runs the body if the condition, a scalar, holds.
template <TileLike C, class F>
void when(const C& condition, const F& body, Line at = Line::here()) {
  static_assert(std::same_as<TileOf<C>, Tile<bool, 0>>, "the condition is a bool scalar: reduce a tile by all or any");
  when(detail::as_tile(condition, at).any(), std::function<void()>(body), at);
}
/// Returns what one of two functions returns: a tile, of one type in both.
template <TileLike C, class F, class G>
auto if_else(const C& condition, const F& then, const G& otherwise, Line at = Line::here()) {
  static_assert(std::same_as<TileOf<C>, Tile<bool, 0>>, "the condition is a bool scalar: reduce a tile by all or any");
  const Any chosen = detail::as_tile(condition, at).any();
  if constexpr (std::is_void_v<decltype(then())>) {
    const auto plain = [](const auto& f) {
      return [&f] {
        f();
        return std::vector<Any>{};
      };
    };
    if_else(chosen, plain(then), plain(otherwise), at);
  } else {
    using R = TileOf<decltype(then())>;
    static_assert(std::same_as<R, TileOf<decltype(otherwise())>>, "both functions return a tile of one type");
    return R(if_else(
        chosen, [&] { return std::vector<Any>{detail::as_tile(then(), at).any()}; },
        [&] { return std::vector<Any>{detail::as_tile(otherwise(), at).any()}; }, at)[0]);
  }
}
/// Runs the body while condition() holds.
template <class C, class F>
requires TileLike<std::invoke_result_t<C>>
void while_(const C& condition, const F& body, Line at = Line::here()) {
  using Condition = TileOf<std::invoke_result_t<C>>;
  static_assert(std::same_as<Condition, Tile<bool, 0>>, "the condition is a bool scalar: reduce a tile by all or any");
  while_([&] { return detail::as_tile(condition(), at).any(); }, std::function<void()>(body), at);
}

/// A text, with the line where it stands.
struct Text {
  /// The text.
  std::string text;
  /// The line where it stands.
  Line line;
  Text(const char* t, Line at = Line::here()) : text(t), line(at) {}
  Text(std::string t, Line at = Line::here()) : text(std::move(t)), line(at) {}
};
/// Prints text and values.
template <TileLike... V>
void print(const Text& text, const V&... values) {
  print(text.text, std::vector<Any>{detail::as_tile(values, text.line).any()...}, text.line);
}
/// Fails the launch where the condition does not hold.
template <TileLike C>
void check(const C& condition, const std::string& text, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<C>, bool>, "check takes a tile of bool");
  assert_(detail::as_tile(condition, at).any(), text, at);
}
/// Returns an index that `divisor` divides. The interpreter and both targets check it.
inline Index assume_multiple(const Index& v, int64_t divisor, Line at = Line::here()) {
  return Index(assume_multiple(v.any(), divisor, at));
}
/// Returns an index within bounds. The interpreter and both targets check it.
inline Index assume_range(const Index& v, int64_t low, int64_t high, Line at = Line::here()) {
  return Index(assume_range(v.any(), low, high, at));
}

/// Returns which tile program (i, j) of a grid of m x n takes, so that programs that run together read few rows and
/// columns of tiles: bands of `group` rows of tiles, each from column to column. Every tile is taken once.
inline std::pair<Index, Index> swizzle2d(const Index& i, const Index& j, int64_t m, int64_t n, int64_t group,
                                         Line at = Line::here()) {
  const auto [row, column] = swizzle2d(i.any(), j.any(), m, n, group, at);
  return {Index(row), Index(column)};
}
/// Returns the same for the programs of a grid of one axis, by their number.
inline std::pair<Index, Index> swizzle2d(const Index& number, int64_t m, int64_t n, int64_t group,
                                         Line at = Line::here()) {
  return swizzle2d(Index(0, at), number, m, n, group, at);
}

namespace detail {
template <class A>
concept reference = requires {
  typename A::Element;
  A::rank;
}
&&std::derived_from<A, Ref<typename A::Element, A::rank>>;
template <class A>
inline constexpr bool is_input = false;
template <class T, int R>
inline constexpr bool is_input<In<T, R>> = true;

template <class A, class... P>
constexpr void check_positions() {
  static_assert(sizeof...(P) == A::rank, "give one position for each axis of the array");
  static_assert(((std::is_integral_v<ElementOf<P>> && !std::same_as<ElementOf<P>, bool>)&&...),
                "positions are tiles of integers");
}
template <class A, class V, class... P>
constexpr void check_written() {
  check_positions<A, P...>();
  static_assert(!is_input<A>, "an In array is only read: declare it as Out or InOut to write it");
  static_assert(std::same_as<ElementOf<V>, typename A::Element>,
                "the value has another element type than the array: cast it");
}
template <class... P>
inline constexpr int rank_of_positions = std::max({rank_of<P>...});

template <class A, class... P>
auto gathered(Line at, const A& array, const P&... position) {
  check_positions<A, P...>();
  return Tile<typename A::Element, rank_of_positions<P...>>(
      gather(array.any(), std::array{as_tile(position, at).any()...}, {}, at));
}
template <class A, class V, class... P>
void scattered(Line at, const A& array, const V& v, const P&... position) {
  check_written<A, V, P...>();
  scatter(array.any(), std::array{as_tile(position, at).any()...}, as_tile(v, at).any(), {}, at);
}
}  // namespace detail

/// Returns elements at positions: an integer tile (or index) for each axis of the array; positions broadcast together.
/// Elements outside of the array are 0, and are not stored.
template <detail::reference A, TileLike P0>
auto gather(const A& array, const P0& p0, Line at = Line::here()) {
  return detail::gathered(at, array, p0);
}
template <detail::reference A, TileLike P0, TileLike P1>
auto gather(const A& array, const P0& p0, const P1& p1, Line at = Line::here()) {
  return detail::gathered(at, array, p0, p1);
}
template <detail::reference A, TileLike P0, TileLike P1, TileLike P2>
auto gather(const A& array, const P0& p0, const P1& p1, const P2& p2, Line at = Line::here()) {
  return detail::gathered(at, array, p0, p1, p2);
}
template <detail::reference A, TileLike P0, TileLike P1, TileLike P2, TileLike P3>
auto gather(const A& array, const P0& p0, const P1& p1, const P2& p2, const P3& p3, Line at = Line::here()) {
  return detail::gathered(at, array, p0, p1, p2, p3);
}
/// Stores elements at positions. Where several have one position, any of them is stored.
template <detail::reference A, TileLike V, TileLike P0>
void scatter(const A& array, const V& v, const P0& p0, Line at = Line::here()) {
  detail::scattered(at, array, v, p0);
}
template <detail::reference A, TileLike V, TileLike P0, TileLike P1>
void scatter(const A& array, const V& v, const P0& p0, const P1& p1, Line at = Line::here()) {
  detail::scattered(at, array, v, p0, p1);
}
template <detail::reference A, TileLike V, TileLike P0, TileLike P1, TileLike P2>
void scatter(const A& array, const V& v, const P0& p0, const P1& p1, const P2& p2, Line at = Line::here()) {
  detail::scattered(at, array, v, p0, p1, p2);
}
template <detail::reference A, TileLike V, TileLike P0, TileLike P1, TileLike P2, TileLike P3>
void scatter(const A& array, const V& v, const P0& p0, const P1& p1, const P2& p2, const P3& p3,
             Line at = Line::here()) {
  detail::scattered(at, array, v, p0, p1, p2, p3);
}
/// Says that a slice of an array is read soon, by this program or by another one: it is brought into a cache. A hint,
/// which changes no result; the slice may lie outside of the array.
template <class T, int R>
void prefetch(const Part<T, R>& slice, Line at = Line::here()) {
  prefetch(slice.ref(), slice.spans(), at);
}
/// Returns a scratch buffer of the program.
template <class T, size_t N>
Ref<T, static_cast<int>(N)> scratch(const int64_t (&dims)[N], Line at = Line::here()) {
  return Ref<T, static_cast<int>(N)>(scratch(detail::dtype_of<T>(), {dims, dims + N}, at));
}

}  // namespace weft::k

#include "weft/kernel/atomics.h"
