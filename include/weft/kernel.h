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
#include <tuple>

#include "weft/kernel/tile.h"

namespace weft::k {

/// Return the number of this program along an axis of the grid.
inline Index program_id(int axis, Line at = Line::here()) { return Index(program(axis, at)); }

/// Returns ceil(a / b).
constexpr int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline Index cdiv(const Index& a, int64_t b, Line at = Line::here()) {
  return Index(apply("floordiv", std::array{(a + (b - 1)).any(), constant(int64, b, {}, at)}, at));
}

// Tiles from numbers.
template <class T, size_t N>
Tile<T, static_cast<int>(N)> full(const int64_t (&dims)[N], Scalar number, Line at = Line::here()) {
  return Tile<T, static_cast<int>(N)>(constant(detail::dtype_of<T>(), number, {dims, dims + N}, at));
}
template <class T, size_t N>
Tile<T, static_cast<int>(N)> zeros(const int64_t (&dims)[N], Line at = Line::here()) {
  return full<T>(dims, 0, at);
}
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
template <class To, Value V>
Tile<To, rank_of<V>> cast(const V& v, Line at = Line::here()) {
  return Tile<To, rank_of<V>>(cast(detail::as_tile(v, at).any(), detail::dtype_of<To>(), at));
}
/// Reads the bits of elements as another type of the same width.
template <class To, Value V>
Tile<To, rank_of<V>> bitcast(const V& v, Line at = Line::here()) {
  return Tile<To, rank_of<V>>(bitcast(detail::as_tile(v, at).any(), detail::dtype_of<To>(), at));
}

// Scalar operators by their names in docs/operators.md.
namespace detail {
template <Value V>
TileOf<V> unary(std::string_view op, const V& v, Line at) {
  return TileOf<V>(apply(op, std::array{as_tile(v, at).any()}, at));
}
}  // namespace detail
template <Value V>
TileOf<V> abs(const V& v, Line at = Line::here()) {
  return detail::unary("abs", v, at);
}
template <Value V>
TileOf<V> sqrt(const V& v, Line at = Line::here()) {
  return detail::unary("sqrt", v, at);
}
template <Value V>
TileOf<V> rsqrt(const V& v, Line at = Line::here()) {
  return detail::unary("rsqrt", v, at);
}
template <Value V>
TileOf<V> recip(const V& v, Line at = Line::here()) {
  return detail::unary("recip", v, at);
}
template <Value V>
TileOf<V> square(const V& v, Line at = Line::here()) {
  return detail::unary("square", v, at);
}
template <Value V>
TileOf<V> floor(const V& v, Line at = Line::here()) {
  return detail::unary("floor", v, at);
}
template <Value V>
TileOf<V> ceil(const V& v, Line at = Line::here()) {
  return detail::unary("ceil", v, at);
}
template <Value V>
TileOf<V> trunc(const V& v, Line at = Line::here()) {
  return detail::unary("trunc", v, at);
}
template <Value V>
TileOf<V> round(const V& v, Line at = Line::here()) {
  return detail::unary("round", v, at);
}
template <Value V>
TileOf<V> sign(const V& v, Line at = Line::here()) {
  return detail::unary("sign", v, at);
}
template <Value V>
TileOf<V> exp(const V& v, Line at = Line::here()) {
  return detail::unary("exp", v, at);
}
template <Value V>
TileOf<V> exp2(const V& v, Line at = Line::here()) {
  return detail::unary("exp2", v, at);
}
template <Value V>
TileOf<V> expm1(const V& v, Line at = Line::here()) {
  return detail::unary("expm1", v, at);
}
template <Value V>
TileOf<V> log(const V& v, Line at = Line::here()) {
  return detail::unary("log", v, at);
}
template <Value V>
TileOf<V> log2(const V& v, Line at = Line::here()) {
  return detail::unary("log2", v, at);
}
template <Value V>
TileOf<V> log1p(const V& v, Line at = Line::here()) {
  return detail::unary("log1p", v, at);
}
template <Value V>
TileOf<V> sin(const V& v, Line at = Line::here()) {
  return detail::unary("sin", v, at);
}
template <Value V>
TileOf<V> cos(const V& v, Line at = Line::here()) {
  return detail::unary("cos", v, at);
}
template <Value V>
TileOf<V> tanh(const V& v, Line at = Line::here()) {
  return detail::unary("tanh", v, at);
}
template <Value V>
TileOf<V> erf(const V& v, Line at = Line::here()) {
  return detail::unary("erf", v, at);
}
template <Value V>
TileOf<V> sigmoid(const V& v, Line at = Line::here()) {
  return detail::unary("sigmoid", v, at);
}

namespace detail {
/// The tile type of two operands, one of which may be a number.
template <class A, class B>
struct Together;
template <Value A, Value B>
struct Together<A, B> {
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "the operands have one element type: cast one of them");
  static_assert(rank_of<A> == rank_of<B> || rank_of<A> == 0 || rank_of<B> == 0,
                "the operands have one rank: use row, col or expand_dims");
  using type = Tile<ElementOf<A>, (rank_of<A> > rank_of<B> ? rank_of<A> : rank_of<B>)>;
};
template <Value A, class N>
requires std::is_arithmetic_v<N>
struct Together<A, N> {
  using type = TileOf<A>;
};
template <class N, Value B>
requires std::is_arithmetic_v<N>
struct Together<N, B> {
  using type = TileOf<B>;
};

template <class T, class V>
Any operand(const V& v, Line at) {
  if constexpr (std::is_arithmetic_v<V>) return constant(dtype_of<T>(), v, {}, at);
  else return as_tile(v, at).any();
}
template <class A, class B>
typename Together<A, B>::type binary(std::string_view op, const A& a, const B& b, Line at) {
  using Result = typename Together<A, B>::type;
  using T = typename Result::Element;
  return Result(apply(op, std::array{operand<T>(a, at), operand<T>(b, at)}, at));
}
}  // namespace detail
template <class A, class B>
auto maximum(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("max", a, b, at);
}
template <class A, class B>
auto minimum(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("min", a, b, at);
}
template <class A, class B>
auto floordiv(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("floordiv", a, b, at);
}
template <class A, class B>
auto mod(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("mod", a, b, at);
}
template <class A, class B>
auto pow(const A& a, const B& b, Line at = Line::here()) {
  return detail::binary("pow", a, b, at);
}
/// Returns a · b + c, rounded once.
template <Value A>
TileOf<A> fma(const A& a, const TileOf<A>& b, const TileOf<A>& c, Line at = Line::here()) {
  return TileOf<A>(apply("fma", std::array{detail::as_tile(a, at).any(), b.any(), c.any()}, at));
}
/// Returns a where the condition holds, else b; both are values, or one is a number.
template <Value C, class A, class B>
auto where(const C& condition, const A& a, const B& b, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<C>, bool>, "the condition is a tile of bool");
  using Both = typename detail::Together<A, B>::type;
  using T = typename Both::Element;
  constexpr int rank = rank_of < C >> Both::rank ? rank_of<C> : Both::rank;
  return Tile<T, rank>(apply(
      "select", std::array{detail::as_tile(condition, at).any(), detail::operand<T>(a, at), detail::operand<T>(b, at)},
      at));
}

// Movement.
template <Value V, size_t N>
Tile<ElementOf<V>, static_cast<int>(N)> reshape(const V& v, const int64_t (&dims)[N], Line at = Line::here()) {
  return Tile<ElementOf<V>, static_cast<int>(N)>(reshape(detail::as_tile(v, at).any(), {dims, dims + N}, at));
}
template <Value V, size_t N>
Tile<ElementOf<V>, static_cast<int>(N)> broadcast_to(const V& v, const int64_t (&dims)[N], Line at = Line::here()) {
  return Tile<ElementOf<V>, static_cast<int>(N)>(broadcast_to(detail::as_tile(v, at).any(), {dims, dims + N}, at));
}
/// Returns axis k of the result from axis axes[k].
template <Value V, size_t N>
TileOf<V> permute(const V& v, const int (&axes)[N], Line at = Line::here()) {
  static_assert(static_cast<int>(N) == rank_of<V>, "one axis of the argument for each axis of the result");
  return TileOf<V>(permute(detail::as_tile(v, at).any(), {axes, axes + N}, at));
}
/// Exchanges the last two axes.
template <Value V>
TileOf<V> trans(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> >= 2, "trans exchanges the last two axes: the tile has two at least");
  std::vector<int> axes;
  for (int k = 0; k < rank_of<V>; ++k) axes.push_back(k);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return TileOf<V>(permute(detail::as_tile(v, at).any(), axes, at));
}
/// Returns the tile with a new axis of extent 1.
template <Value V>
Tile<ElementOf<V>, rank_of<V> + 1> expand_dims(const V& v, int axis, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  std::vector<int64_t> dims = tile.dims(at);
  const int place = axis < 0 ? axis + rank_of<V> + 1 : axis;
  dims.insert(dims.begin() + std::clamp(place, 0, rank_of<V>), 1);
  return Tile<ElementOf<V>, rank_of<V> + 1>(reshape(tile, dims, at));
}
/// Return [n] as [1, n] and as [n, 1].
template <Value V>
Tile<ElementOf<V>, 2> row(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> == 1, "row takes a tile of one axis");
  return expand_dims(v, 0, at);
}
template <Value V>
Tile<ElementOf<V>, 2> col(const V& v, Line at = Line::here()) {
  static_assert(rank_of<V> == 1, "col takes a tile of one axis");
  return expand_dims(v, 1, at);
}
/// Returns a part of a tile: `dims` elements from `starts` on, by `steps`.
template <Value V, size_t N>
TileOf<V> slice(const V& v, const int64_t (&starts)[N], const int64_t (&dims)[N], Line at = Line::here()) {
  return TileOf<V>(slice(detail::as_tile(v, at).any(), {starts, starts + N}, {dims, dims + N}, {}, at));
}
template <Value V, size_t N>
TileOf<V> slice(const V& v, const int64_t (&starts)[N], const int64_t (&dims)[N], const int64_t (&steps)[N],
                Line at = Line::here()) {
  return TileOf<V>(slice(detail::as_tile(v, at).any(), {starts, starts + N}, {dims, dims + N}, {steps, steps + N}, at));
}
/// Joins two tiles along an axis.
template <Value A>
TileOf<A> cat(const A& a, const TileOf<A>& b, int axis = 0, Line at = Line::here()) {
  return TileOf<A>(cat(std::array{detail::as_tile(a, at).any(), b.any()}, axis, at));
}
/// Stacks two tiles along a new last axis of extent 2; `split` takes them apart.
template <Value A>
Tile<ElementOf<A>, rank_of<A> + 1> join(const A& a, const TileOf<A>& b, Line at = Line::here()) {
  return cat(expand_dims(a, -1, at), expand_dims(b, -1, at), rank_of<A>, at);
}
template <Value A>
std::pair<Tile<ElementOf<A>, rank_of<A> - 1>, Tile<ElementOf<A>, rank_of<A> - 1>> split(const A& a,
                                                                                        Line at = Line::here()) {
  const Any tile = detail::as_tile(a, at).any();
  std::vector<int64_t> dims = tile.dims(at), starts(dims.size(), 0), kept(dims.begin(), dims.end() - 1);
  dims.back() = 1;
  const auto half = [&](int64_t k) {
    starts.back() = k;
    return Tile<ElementOf<A>, rank_of<A> - 1>(reshape(slice(tile, starts, dims, {}, at), kept, at));
  };
  auto first = half(0);
  return {first, half(1)};
}
/// Returns the elements of two tiles in turn along the last axis.
template <Value A>
TileOf<A> interleave(const A& a, const TileOf<A>& b, Line at = Line::here()) {
  std::vector<int64_t> dims = b.any().dims(at);
  dims.back() *= 2;
  return TileOf<A>(reshape(join(a, b, at).any(), dims, at));
}
/// Reverses an axis.
template <Value A>
TileOf<A> flip(const A& a, int axis, Line at = Line::here()) {
  const Any tile = detail::as_tile(a, at).any();
  const std::vector<int64_t> dims = tile.dims(at);
  const auto k = static_cast<size_t>(axis < 0 ? axis + rank_of<A> : axis);
  std::vector<int64_t> starts(dims.size(), 0), steps(dims.size(), 1);
  starts.at(k) = dims[k] - 1, steps[k] = -1;
  return TileOf<A>(slice(tile, starts, dims, steps, at));
}
/// Returns along `axis` the elements that the index names.
template <Value A, Value I>
TileOf<A> take(const A& a, const I& index, int axis, Line at = Line::here()) {
  static_assert(rank_of<A> == rank_of<I>, "tile and index have one rank");
  return TileOf<A>(take(detail::as_tile(a, at).any(), detail::as_tile(index, at).any(), axis, at));
}

// Reductions along one axis, which goes, or along all. The order is fixed.
namespace detail {
template <class T, Value V>
Tile<T, rank_of<V> - 1> reduced(std::string_view reducer, const V& v, int axis, Line at) {
  static_assert(rank_of<V> >= 1, "a scalar has no axis to reduce");
  return Tile<T, rank_of<V> - 1>(reduce(reducer, as_tile(v, at).any(), axis, at));
}
template <Value V>
Tile<ElementOf<V>, 0> reduced_wholly(std::string_view reducer, const V& v, Line at) {
  Any left = as_tile(v, at).any();
  for (int axis = rank_of<V>; axis-- > 0;) left = reduce(reducer, left, axis, at);
  return Tile<ElementOf<V>, 0>(left);
}
}  // namespace detail
template <Value V>
auto sum(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("sum", v, axis, at);
}
template <Value V>
auto sum(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("sum", v, at);
}
template <Value V>
auto prod(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("prod", v, axis, at);
}
template <Value V>
auto max(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("max", v, axis, at);
}
template <Value V>
auto max(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("max", v, at);
}
template <Value V>
auto min(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("min", v, axis, at);
}
template <Value V>
auto min(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("min", v, at);
}
template <Value V>
auto any(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<bool>("any", v, axis, at);
}
template <Value V>
auto any(const V& v, Line at = Line::here()) {
  return detail::reduced_wholly("any", v, at);
}
template <Value V>
auto xor_sum(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("xor", v, axis, at);
}
template <Value V>
auto argmax(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<u32>("argmax", v, axis, at);
}
template <Value V>
auto argmin(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<u32>("argmin", v, axis, at);
}
template <Value V>
auto logsumexp(const V& v, int axis, Line at = Line::here()) {
  return detail::reduced<ElementOf<V>>("logsumexp", v, axis, at);
}

namespace detail {
template <class F, class... T>
CombineAny combine_of(const F& f, std::tuple<T...>*) {
  return [f](const std::vector<Any>& low, const std::vector<Any>& high) {
    return [&]<size_t... k>(std::index_sequence<k...>) {
      const auto out = f(Tile<T, 0>(low[k])..., Tile<T, 0>(high[k])...);
      if constexpr (sizeof...(T) == 1) return std::vector<Any>{out.any()};
      else return std::vector<Any>{std::get<k>(out).any()...};
    }
    (std::index_sequence_for<T...>{});
  };
}
}  // namespace detail
/// Reduces by a function of two parts: f(lower, upper) returns a scalar. It is associative.
template <Value V, class F>
requires std::invocable < F, Tile < ElementOf<V>,
0 >, Tile < ElementOf<V>,
    0 >> Tile<ElementOf<V>, rank_of<V> - 1> reduce(const V& v, int axis, const F& f, Line at = Line::here()) {
  return Tile<ElementOf<V>, rank_of<V> - 1>(
      reduce(detail::combine_of(f, static_cast<std::tuple<ElementOf<V>>*>(nullptr)),
             std::array{detail::as_tile(v, at).any()}, axis, at)[0]);
}
/// The same of two tiles of one shape: f(a of the lower part, b of it, a of the upper part, b of it) returns a pair.
template <Value A, Value B, class F>
std::pair<Tile<ElementOf<A>, rank_of<A> - 1>, Tile<ElementOf<B>, rank_of<B> - 1>> reduce(const A& a, const B& b,
                                                                                         int axis, const F& f,
                                                                                         Line at = Line::here()) {
  const std::vector<Any> out =
      reduce(detail::combine_of(f, static_cast<std::tuple<ElementOf<A>, ElementOf<B>>*>(nullptr)),
             std::array{detail::as_tile(a, at).any(), detail::as_tile(b, at).any()}, axis, at);
  return {Tile<ElementOf<A>, rank_of<A> - 1>(out[0]), Tile<ElementOf<B>, rank_of<B> - 1>(out[1])};
}

// Scans: element i from those up to i, or (`reverse`) from i on.
template <Value V>
TileOf<V> cumsum(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("sum", detail::as_tile(v, at).any(), axis, reverse, at));
}
template <Value V>
TileOf<V> cumprod(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("prod", detail::as_tile(v, at).any(), axis, reverse, at));
}
template <Value V>
TileOf<V> cummax(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("max", detail::as_tile(v, at).any(), axis, reverse, at));
}
template <Value V>
TileOf<V> cummin(const V& v, int axis, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan("min", detail::as_tile(v, at).any(), axis, reverse, at));
}
template <Value V, class F>
requires std::invocable < F, Tile < ElementOf<V>,
0 >, Tile < ElementOf<V>,
    0 >> TileOf<V> scan(const V& v, int axis, const F& f, bool reverse = false, Line at = Line::here()) {
  return TileOf<V>(scan(detail::combine_of(f, static_cast<std::tuple<ElementOf<V>>*>(nullptr)),
                        std::array{detail::as_tile(v, at).any()}, axis, reverse, at)[0]);
}

// Order within a tile.
template <Value V>
TileOf<V> sort(const V& v, int axis = -1, bool descending = false, Line at = Line::here()) {
  return TileOf<V>(sort(std::array{detail::as_tile(v, at).any()}, axis, descending, at)[0]);
}
/// Sorts keys, and values along with them.
template <Value K, Value V>
std::pair<TileOf<K>, TileOf<V>> sort_by(const K& keys, const V& values, int axis = -1, bool descending = false,
                                        Line at = Line::here()) {
  const std::vector<Any> out =
      sort(std::array{detail::as_tile(keys, at).any(), detail::as_tile(values, at).any()}, axis, descending, at);
  return {TileOf<K>(out[0]), TileOf<V>(out[1])};
}
/// Returns the k largest elements along the last axis, in descending order.
template <Value V>
TileOf<V> topk(const V& v, int64_t k, Line at = Line::here()) {
  const Any sorted = sort(std::array{detail::as_tile(v, at).any()}, -1, true, at)[0];
  std::vector<int64_t> dims = sorted.dims(at);
  dims.back() = k;
  return TileOf<V>(slice(sorted, std::vector<int64_t>(dims.size(), 0), dims, {}, at));
}
/// Counts how often each of 0 … bins-1 occurs.
template <Value V>
Tile<i32, 1> histogram(const V& index, int64_t bins, Line at = Line::here()) {
  return Tile<i32, 1>(histogram(detail::as_tile(index, at).any(), bins, at));
}

namespace detail {
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, i32, std::conditional_t<std::same_as<T, f64>, f64, f32>>;
}
/// Returns a·b of [m,k] and [k,n], or batches of them, added up in float32 (float64, int32), k ascending.
template <Value A, Value B>
Tile<detail::Sum<ElementOf<A>>, rank_of<A>> dot(const A& a, const B& b, Precision precision = Precision::exact,
                                                Line at = Line::here()) {
  static_assert(rank_of<A> == rank_of<B> && rank_of<A> >= 2, "dot takes tiles of one rank, two axes at least");
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "dot takes tiles of one element type: cast one of them");
  return Tile<detail::Sum<ElementOf<A>>, rank_of<A>>(
      dot(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), {}, precision, at));
}
/// Returns c + a·b.
template <Value A, Value B, class T>
Tile<T, rank_of<A>> dot(const A& a, const B& b, const Tile<T, rank_of<A>>& c, Precision precision = Precision::exact,
                        Line at = Line::here()) {
  static_assert(rank_of<A> == rank_of<B> && rank_of<A> >= 2, "dot takes tiles of one rank, two axes at least");
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "dot takes tiles of one element type: cast one of them");
  return Tile<T, rank_of<A>>(dot(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), c.any(), precision, at));
}

// Control flow. Variables (Mut) carry values from one iteration to the next, and out of a condition.

/// Runs body(i) for i = lo, lo + step, … below hi.
template <class F>
requires std::invocable<F, Index>
void loop(const Index& lo, const Index& hi, int64_t step, const LoopOptions& options, const F& body,
          Line at = Line::here()) {
  loop(
      lo.any(), hi.any(), step, [&](Any i) { body(Index(i)); }, options, at);
}
template <class F>
requires std::invocable<F, Index>
void loop(const Index& lo, const Index& hi, int64_t step, const F& body, Line at = Line::here()) {
  loop(lo, hi, step, LoopOptions{}, body, at);
}
template <class F>
requires std::invocable<F, Index>
void loop(const Index& count, const F& body, Line at = Line::here()) {
  loop(Index(0, at), count, 1, LoopOptions{}, body, at);
}
/// Runs body(k) for k = 0 … n-1 while the kernel is traced: the iterations are written one after the other.
template <class F>
void static_for(int64_t n, const F& body) {
  for (int64_t k = 0; k < n; ++k) body(k);
}
/// Runs the body if the condition, a scalar, holds.
template <Value C, class F>
void when(const C& condition, const F& body, Line at = Line::here()) {
  static_assert(std::same_as<TileOf<C>, Tile<bool, 0>>, "the condition is a bool scalar: reduce a tile by all or any");
  when(detail::as_tile(condition, at).any(), std::function<void()>(body), at);
}
/// Returns what one of two functions returns: a tile, of one type in both.
template <Value C, class F, class G>
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
requires std::same_as<decltype(std::declval<C>()()), Tile<bool, 0>>
void while_(const C& condition, const F& body, Line at = Line::here()) {
  while_([&] { return condition().any(); }, std::function<void()>(body), at);
}

/// Prints text and values.
template <Value... V>
void print(const std::string& text, const V&... values) {
  print(text, std::vector<Any>{detail::as_tile(values, Line{}).any()...}, Line{});
}
/// Fails the launch where the condition does not hold.
template <Value C>
void check(const C& condition, const std::string& text, Line at = Line::here()) {
  assert_(detail::as_tile(condition, at).any(), text, at);
}
inline Index assume_multiple(const Index& v, int64_t divisor, Line at = Line::here()) {
  return Index(assume_multiple(v.any(), divisor, at));
}
inline Index assume_range(const Index& v, int64_t low, int64_t high, Line at = Line::here()) {
  return Index(assume_range(v.any(), low, high, at));
}

// Elements at positions: an integer tile (or index) for each axis of the array; positions broadcast together.
namespace detail {
template <Value... P>
std::vector<Any> positions(Line at, const P&... position) {
  return {as_tile(position, at).any()...};
}
template <Value... P>
inline constexpr int rank_of_positions = std::max({rank_of<P>...});
}  // namespace detail
template <class T, int R, Value... P>
auto gather(const Ref<T, R>& ref, const P&... position) {
  static_assert(sizeof...(P) == R, "a position for each axis of the array");
  return Tile<T, detail::rank_of_positions<P...>>(
      gather(ref.any(), detail::positions(Line{}, position...), {}, Line{}));
}
template <class T, int R, Value V, Value... P>
void scatter(const Ref<T, R>& ref, const V& v, const P&... position) {
  static_assert(sizeof...(P) == R, "a position for each axis of the array");
  scatter(ref.any(), detail::positions(Line{}, position...), detail::as_tile(v, Line{}).any(), {}, Line{});
}
/// Update elements at positions, each at once, and return what was there. `op`: add, min, max, bit_and, bit_or,
/// bit_xor, exchange. The order of programs is the device's own.
template <class T, int R, Value V, Value... P>
auto atomic(std::string_view op, const Ref<T, R>& ref, const V& v, const P&... position) {
  static_assert(sizeof...(P) == R, "a position for each axis of the array");
  return Tile<T, detail::rank_of_positions<P...>>(
      atomic(op, ref.any(), detail::positions(Line{}, position...), detail::as_tile(v, Line{}).any(), {}, Line{}));
}
/// Returns a scratch buffer of the program.
template <class T, size_t N>
Ref<T, static_cast<int>(N)> scratch(const int64_t (&dims)[N], Line at = Line::here()) {
  return Ref<T, static_cast<int>(N)>(scratch(detail::dtype_of<T>(), {dims, dims + N}, at));
}

/// Four words of Philox-4x32-10 (Salmon et al., 2011) for each counter, under a 64-bit seed.
template <Value S, Value C>
std::array<Tile<u32, rank_of<C>>, 4> philox(const S& seed, const C& counter, Line at = Line::here()) {
  const Any key = cast(detail::as_tile(seed, at).any(), uint64, at),
            count = cast(detail::as_tile(counter, at).any(), uint64, at);
  const auto low = [&](const Any& v) { return cast(v, uint32, at); };
  const auto high = [&](const Any& v) {
    return cast(apply("shr", std::array{v, constant(uint64, 32, {}, at)}, at), uint32, at);
  };
  const Any zero = constant(uint32, 0, {}, at);
  const auto word = [&](std::string_view op) {
    return Tile<u32, rank_of<C>>(apply(op, std::array{low(key), high(key), low(count), high(count), zero, zero}, at));
  };
  return {word("philox0"), word("philox1"), word("philox2"), word("philox3")};
}
/// Returns numbers in [0, 1), one for each counter, the same on every device.
template <Value S, Value C>
Tile<f32, rank_of<C>> rand(const S& seed, const C& counter, Line at = Line::here()) {
  const auto bits = philox(seed, counter, at)[0];
  return cast<f32>(bits >> 8, at) * (1.0 / 16777216);
}
/// Returns numbers of the standard normal distribution (Box and Muller, 1958).
template <Value S, Value C>
Tile<f32, rank_of<C>> randn(const S& seed, const C& counter, Line at = Line::here()) {
  const auto bits = philox(seed, counter, at);
  const auto u = (cast<f32>(bits[0] >> 8, at) + 1.0) * (1.0 / 16777216),
             angle = cast<f32>(bits[1] >> 8, at) * (6.283185307179586 / 16777216);
  return sqrt(log(u, at) * -2.0, at) * cos(angle, at);
}

}  // namespace weft::k
