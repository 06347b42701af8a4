#pragma once
// Reductions and scans over a whole grid. Within a program a tile is reduced and scanned by the language itself
// (weft/kernel/order.h); the functions here go through arrays that are longer than a tile, alone or with others.
#include "weft/kernel.h"

namespace weft::k {

namespace detail {
/// A slice of `size` elements as a scalar or a tile; elements outside of the array are `other`.
template <class X>
auto loaded(const X& x, const Index& first, int64_t size, Scalar other, Line at) {
  const Span span{.start = first.any(), .size = size};
  return Tile<typename X::Element, 1>(load(x.any(), std::array{span}, {.other = other}, at));
}
template <class T>
Tile<T, 0> only(const Tile<T, 1>& one, Line at) {
  return Tile<T, 0>(reshape(one.any(), {}, at));
}
}  // namespace detail

/// Returns the reduction of this program's share of x [n]: of the blocks of `block` elements that have the program's
/// number along axis 0 of the grid, and of those a grid further. `f` combines two tiles, or two scalars, of the element
/// type; it is associative and commutative, `identity` changes nothing. With one program it is the reduction of all of
/// x: two kernels, many programs and then one of what they gave, reduce an array of any length in one fixed order.
template <detail::reference X, class F>
Tile<typename X::Element, 0> grid_reduce(const X& x, int64_t block, Scalar identity, const F& f,
                                         Line at = Line::here()) {
  static_assert(X::rank == 1, "grid_reduce takes an array of one axis");
  Mut sum = full<typename X::Element>({block}, identity, at);
  loop(
      program_id(0, at) * block, x.extent(0, at), block * num_programs(0, at),
      [&](const Index& i) { sum = f(sum.get(at), detail::loaded(x, i, block, identity, at)); }, at);
  return reduce(sum.get(at), 0, f, at);
}

/// Combines `v` into y(0), one program after another along a sequential axis of the grid, from the first one on: a
/// reduction in the order of the programs, in one kernel.
template <detail::reference Y, TileLike V, class F>
void reduce_in_order(const Y& y, const V& v, int axis, const F& f, Line at = Line::here()) {
  static_assert(Y::rank == 1 && rank_of<V> == 0, "reduce_in_order combines a scalar into an array of one axis");
  const auto part = detail::as_tile(v, at);
  const auto first = program_id(axis, at) == 0;
  when(
      first, [&] { y(0) = part; }, at);
  when(
      !first, [&] { y(0) = f(y(0).load(at), part); }, at);
}

/// Scans x [n] into y [n] by one program that goes through it block by block: y(i) combines x(0) … x(i), or, if
/// `exclusive`, x(0) … x(i-1), of which `identity` is the first one. `f` combines a lower and an upper part, two tiles
/// or two scalars; it is associative.
template <detail::reference X, detail::reference Y, class F>
void scan_all(const X& x, const Y& y, int64_t block, Scalar identity, const F& f, bool exclusive = false,
              Line at = Line::here()) {
  using T = typename X::Element;
  static_assert(X::rank == 1 && Y::rank == 1, "scan_all takes arrays of one axis");
  Mut carry = scalar<T>(identity, at);
  loop(
      Index(0, at), x.extent(0, at), block,
      [&](const Index& i) {
        const auto before = broadcast_to(carry.get(at), {block}, at);
        const auto scanned = f(before, scan(detail::loaded(x, i, block, identity, at), 0, f, false, at));
        const auto head = reshape(carry.get(at), {1}, at);
        y(ds(i, block)) = exclusive && block > 1 ? cat(head, slice(scanned, {0}, {block - 1}, at), 0, at)
                          : exclusive            ? head
                                                 : scanned;
        carry = detail::only(slice(scanned, {block - 1}, {1}, at), at);
      },
      at);
}

/// Scans this program's block of x [n] into y [n], behind `before`, a scalar that combines all elements in front of the
/// block. With one kernel that reduces blocks (`block_reduce`), one that scans what they gave (`scan_all`, exclusive),
/// and this one, an array is scanned by any number of programs.
template <detail::reference X, detail::reference Y, TileLike B, class F>
void block_scan(const X& x, const Y& y, int64_t block, const B& before, Scalar identity, const F& f,
                Line at = Line::here()) {
  static_assert(X::rank == 1 && Y::rank == 1 && rank_of<B> == 0, "block_scan takes arrays of one axis and a scalar");
  const auto first = program_id(0, at) * block;
  const auto head = broadcast_to(detail::as_tile(before, at), {block}, at);
  y(ds(first, block)) = f(head, scan(detail::loaded(x, first, block, identity, at), 0, f, false, at));
}
/// Returns the reduction of this program's block of x [n]: elements program · block, … . `f` is associative.
template <detail::reference X, class F>
Tile<typename X::Element, 0> block_reduce(const X& x, int64_t block, Scalar identity, const F& f,
                                          Line at = Line::here()) {
  static_assert(X::rank == 1, "block_reduce takes an array of one axis");
  return reduce(detail::loaded(x, program_id(0, at) * block, block, identity, at), 0, f, at);
}

/// Scans this program's block of x [n] into y [n] along a sequential axis 0 of the grid, in one kernel: what lies in
/// front of the block is the element of y that the program before stored last.
template <detail::reference X, detail::reference Y, class F>
void scan_in_order(const X& x, const Y& y, int64_t block, Scalar identity, const F& f, Line at = Line::here()) {
  const auto last = detail::loaded(y, program_id(0, at) * block - 1, 1, identity, at);
  block_scan(x, y, block, detail::only(last, at), identity, f, at);
}

}  // namespace weft::k
