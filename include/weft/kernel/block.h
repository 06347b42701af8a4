#pragma once
// Blocks of arrays by their numbers, as a grid walks over them.
#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/kernel/slice.h"

namespace weft::k {

/// Returns block number `i` of `size` elements of an axis, as a subscript: `x(block(i, 64), all)`.
inline Ds block(int64_t i, int64_t size) { return ds(i * size, size); }
inline Ds block(const Index& i, int64_t size, Line at = Line::here()) {
  return ds(Index(apply("mul", std::array{i.any(), constant(int64, size, {}, at)}, at)), size);
}

/// An axis of a Block that is one index, and leaves no axis.
struct Squeezed {};
/// An axis of a Block that is one index, and leaves no axis.
inline constexpr Squeezed squeezed{};

/// An axis of a Block whose index counts elements, so that blocks may overlap or begin anywhere.
struct Window {
  /// The number of elements.
  int64_t size = 1;
  /// The elements between neighbours.
  int64_t step = 1;
};
/// Returns an axis of a Block of `size` elements, `step` apart, whose index counts elements.
constexpr Window window(int64_t size, int64_t step = 1) { return {size, step}; }

namespace detail {

template <class E>
concept block_axis = std::integral<E> || std::same_as<E, Squeezed> || std::same_as<E, Window>;

/// An index that a map returns: a traced value, or a number.
inline Index as_index(const Index& i, Line) { return i; }
template <std::integral N>
Index as_index(N i, Line at) {
  return Index(static_cast<int64_t>(i), at);
}
template <class T>
requires(std::is_integral_v<T> && !std::same_as<T, i64>) Index as_index(const Tile<T, 0>& i, Line at) {
  return Index(cast(i.any(), int64, at));
}
template <class T>
Index as_index(const Mut<T, 0>& i, Line at) {
  return as_index(i.get(at), at);
}
template <class T>
Index as_index(const Part<T, 0>& i, Line at) {
  return as_index(i.load(at), at);
}

inline Index subscript_of(Squeezed, const Index& i, Line) { return i; }
inline Ds subscript_of(Window w, const Index& i, Line) { return ds(i, w.size, w.step); }
template <std::integral N>
Ds subscript_of(N size, const Index& i, Line at) {
  return block(i, static_cast<int64_t>(size), at);
}

}  // namespace detail

/// A block of an array with A axes, and which one a program takes: for each axis a size, `squeezed`, or
/// `window(size, step)`; and a function from the program's numbers along the axes of the grid (or from any other
/// indices) to one index for each axis. A size's index counts blocks, the others' count elements. The function may read
/// indices from arrays, so that a list of blocks is what a kernel works on.
template <class Map, detail::block_axis... A>
class Block {
 public:
  /// Makes a block of its axes and a function.
  Block(std::tuple<A...> axes, Map map) : axes_(std::move(axes)), map_(std::move(map)) {}

  /// Returns the block of an array that the indices choose, as a slice: loaded as an operand, stored by assignment.
  template <class Array, class... I>
  auto operator()(const Array& array, const I&... indices) const {
    static_assert(sizeof...(A) == Array::rank, "a Block names each axis of the array");
    static_assert(std::invocable<Map, const I&...>, "the indices are those that the function of the Block takes");
    const auto chosen = map_(indices...);
    static_assert(std::tuple_size_v<std::remove_const_t<decltype(chosen)>> == sizeof...(A),
                  "the function of a Block returns one index for each axis: a std::tuple");
    return sliced(array, chosen, std::index_sequence_for<A...>{});
  }

 private:
  template <class Array, class Chosen, size_t... K>
  auto sliced(const Array& array, const Chosen& chosen, std::index_sequence<K...>) const {
    const Line at{};
    return array(detail::subscript_of(std::get<K>(axes_), detail::as_index(std::get<K>(chosen), at), at)...);
  }
  std::tuple<A...> axes_;
  Map map_;
};
/// Deduces the type of a block from its axes, `Block(std::tuple{64, squeezed, 128}, map)`.
template <class Map, class... A>
Block(std::tuple<A...>, Map) -> Block<Map, A...>;

}  // namespace weft::k
