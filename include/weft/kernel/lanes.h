#pragma once
// Groups of lanes, without types and as warps: a warp is 32 neighbours of a tile's last axis, and parts of it are
// groups of 16, 8, 4, 2 and 1. weft/kernel_group.h has cooperative groups over it.
#include <array>
#include <string_view>
#include <utility>

#include "weft/kernel/functions.h"

namespace weft::k {

/// Computes a function of groups of `width` lanes (1, 2, 4, 8, 16, 32) that lie one after the other along the last axis
/// of v. `what`: shuffle, shuffle_up, shuffle_down, shuffle_xor (`other`: lanes, an integer tile of v's shape or a
/// scalar); all, any, uniform, ballot (v is bool); match_any, match_all; reduce, scan, scan_exclusive by `op` (add,
/// mul, min, max, bit_and, bit_or, bit_xor; `other`: the uint32 mask of the lanes that belong with each, or none).
/// Masks are uint32: bit k is lane k of the group. Throws std::invalid_argument where the last axis is not made of
/// whole groups.
WEFT_API Any lanes(std::string_view what, const Any& v, int64_t width, const Any& other = {},
                   std::string_view op = "add", Line at = Line::here());
/// Returns the number of the program in its grid, row-major, an int64 scalar.
WEFT_API Any program_number(Line at = Line::here());
/// Returns the number of programs of the grid.
WEFT_API int64_t number_of_programs(Line at = Line::here());

namespace detail {
WEFT_API Any bits_set(const Any& v, Line at);
WEFT_API Any first_bit(const Any& v, Line at);

template <class V>
constexpr void check_lanes() {
  static_assert(rank_of<V> >= 1, "lanes lie along the last axis of a tile: it has one axis at least");
}
template <class V>
constexpr void check_condition() {
  check_lanes<V>();
  static_assert(std::same_as<ElementOf<V>, bool>, "a vote is taken of a tile of bool");
}
template <class V>
constexpr void check_mask() {
  static_assert(std::same_as<ElementOf<V>, u32>, "a mask of lanes is a tile of u32");
}
/// Returns lanes as an operand: a number, or a tile of integers.
template <class B>
Any lane_operand(const B& by, Line at) {
  if constexpr (std::is_arithmetic_v<B>) {
    static_assert(std::is_integral_v<B>, "lanes are integers");
    return constant(int32, static_cast<int64_t>(by), {}, at);
  } else {
    static_assert(std::is_integral_v<ElementOf<B>> && !std::same_as<ElementOf<B>, bool>, "lanes are integers");
    return as_tile(by, at).any();
  }
}
template <class V, class B>
TileOf<V> shuffled(std::string_view what, const V& v, const B& by, int width, Line at) {
  check_lanes<V>();
  return TileOf<V>(lanes(what, as_tile(v, at).any(), width, lane_operand(by, at), "add", at));
}
template <class T, class V>
Tile<T, rank_of<V>> of_lanes(std::string_view what, const V& v, int width, Line at) {
  check_lanes<V>();
  return Tile<T, rank_of<V>>(lanes(what, as_tile(v, at).any(), width, {}, "add", at));
}
template <class V>
TileOf<V> combined_lanes(std::string_view what, std::string_view op, const V& v, int width, Line at) {
  check_lanes<V>();
  return TileOf<V>(lanes(what, as_tile(v, at).any(), width, {}, op, at));
}
}  // namespace detail

/// Returns the number of bits that are set, of u32 or i32.
template <TileLike V>
Tile<i32, rank_of<V>> popc(const V& v, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<V>, u32> || std::same_as<ElementOf<V>, i32>, "popc takes a tile of u32 or i32");
  return Tile<i32, rank_of<V>>(detail::bits_set(detail::as_tile(v, at).any(), at));
}
/// Returns the number of the lowest bit that is set, from 1 on; 0 where none is. Of u32 or i32.
template <TileLike V>
Tile<i32, rank_of<V>> ffs(const V& v, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<V>, u32> || std::same_as<ElementOf<V>, i32>, "ffs takes a tile of u32 or i32");
  return Tile<i32, rank_of<V>>(detail::first_bit(detail::as_tile(v, at).any(), at));
}

/// Packs two tiles of 16-bit elements into words, the first one in the low half: they are shuffled at once.
template <TileLike A, TileLike B>
Tile<u32, rank_of<A>> pack(const A& low, const B& high, Line at = Line::here()) {
  detail::check_alike<A, B>();
  static_assert(sizeof(ElementOf<A>) == 2, "pack takes tiles of 16-bit elements");
  const auto word = [&](const auto& v) { return cast<u32>(bitcast<u16>(v, at), at); };
  return word(low) | word(high) << u32{16};
}
/// Returns the two halves of words as elements of T: what `pack` has packed.
template <class T, TileLike V>
std::pair<Tile<T, rank_of<V>>, Tile<T, rank_of<V>>> unpack(const V& v, Line at = Line::here()) {
  static_assert(std::same_as<ElementOf<V>, u32> && sizeof(T) == 2, "unpack takes words of u32 for 16-bit elements");
  const Tile<u32, rank_of<V>> words = detail::as_tile(v, at);
  const auto half = [&](const auto& w) { return bitcast<T>(cast<u16>(w, at), at); };
  Tile<T, rank_of<V>> low = half(words & u32{0xffff});
  return {low, half(words >> u32{16})};
}

/// Functions of warps, by the names of CUDA's. `width`: the lanes of a group, 1, 2, 4 … 32; the last axis is made of
/// whole groups. All lanes of a tile take part: there is no mask, and lanes outside of a condition are chosen by
/// `where`.
namespace warp {

/// Returns the element of lane `lane`, modulo the width.
template <TileLike V, class B>
TileOf<V> shfl(const V& v, const B& lane, int width = 32, Line at = Line::here()) {
  return detail::shuffled("shuffle", v, lane, width, at);
}
/// Returns the element of the lane `by` before; the first lanes of a group keep theirs.
template <TileLike V, class B>
TileOf<V> shfl_up(const V& v, const B& by, int width = 32, Line at = Line::here()) {
  return detail::shuffled("shuffle_up", v, by, width, at);
}
/// Returns the element of the lane `by` behind; the last lanes of a group keep theirs.
template <TileLike V, class B>
TileOf<V> shfl_down(const V& v, const B& by, int width = 32, Line at = Line::here()) {
  return detail::shuffled("shuffle_down", v, by, width, at);
}
/// Returns the element of the lane whose number differs in the bits of `mask`.
template <TileLike V, class B>
TileOf<V> shfl_xor(const V& v, const B& mask, int width = 32, Line at = Line::here()) {
  return detail::shuffled("shuffle_xor", v, mask, width, at);
}
/// Returns whether the condition holds in all lanes of the group.
template <TileLike V>
TileOf<V> all(const V& condition, int width = 32, Line at = Line::here()) {
  detail::check_condition<V>();
  return detail::of_lanes<bool>("all", condition, width, at);
}
/// Returns whether it holds in any lane.
template <TileLike V>
TileOf<V> any(const V& condition, int width = 32, Line at = Line::here()) {
  detail::check_condition<V>();
  return detail::of_lanes<bool>("any", condition, width, at);
}
/// Returns whether it is the same in all lanes.
template <TileLike V>
TileOf<V> uni(const V& condition, int width = 32, Line at = Line::here()) {
  detail::check_condition<V>();
  return detail::of_lanes<bool>("uniform", condition, width, at);
}
/// Returns the mask of the lanes where it holds.
template <TileLike V>
Tile<u32, rank_of<V>> ballot(const V& condition, int width = 32, Line at = Line::here()) {
  detail::check_condition<V>();
  return detail::of_lanes<u32>("ballot", condition, width, at);
}
/// Returns the mask of the lanes that run where a condition holds: what CUDA's __activemask returns inside an `if`.
template <TileLike V>
Tile<u32, rank_of<V>> activemask(const V& condition, int width = 32, Line at = Line::here()) {
  return ballot(condition, width, at);
}
/// Returns the mask of the lanes whose elements have the same bits.
template <TileLike V>
Tile<u32, rank_of<V>> match_any(const V& v, int width = 32, Line at = Line::here()) {
  return detail::of_lanes<u32>("match_any", v, width, at);
}
/// Returns the mask of all lanes where all elements have the same bits, else 0.
template <TileLike V>
Tile<u32, rank_of<V>> match_all(const V& v, int width = 32, Line at = Line::here()) {
  return detail::of_lanes<u32>("match_all", v, width, at);
}
/// Returns the sum of the group's elements, in all of its lanes. The order is that of `sum` over an axis.
template <TileLike V>
TileOf<V> reduce_add(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "add", v, width, at);
}
/// Returns the smallest element of the group.
template <TileLike V>
TileOf<V> reduce_min(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "min", v, width, at);
}
/// Returns the largest element of the group.
template <TileLike V>
TileOf<V> reduce_max(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "max", v, width, at);
}
/// Returns the bits that all elements of the group have.
template <TileLike V>
TileOf<V> reduce_and(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "bit_and", v, width, at);
}
/// Returns the bits that any element has.
template <TileLike V>
TileOf<V> reduce_or(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "bit_or", v, width, at);
}
/// Returns the bits that an odd number of elements has.
template <TileLike V>
TileOf<V> reduce_xor(const V& v, int width = 32, Line at = Line::here()) {
  return detail::combined_lanes("reduce", "bit_xor", v, width, at);
}
/// Returns the number of each lane in its group, for a tile whose last axis has n lanes.
inline Tile<i32, 1> lane_id(int64_t n, int width = 32, Line at = Line::here()) {
  return Tile<i32, 1>(apply("mod", std::array{iota(n, int32, at), constant(int32, width, {}, at)}, at));
}
/// Returns true in one lane of those where the condition holds, the first of each group.
template <TileLike V>
TileOf<V> elect(const V& condition, int width = 32, Line at = Line::here()) {
  const Tile<u32, rank_of<V>> holds = ballot(condition, width, at);
  const Any first = detail::first_bit(holds.any(), at);
  std::vector<int64_t> line(static_cast<size_t>(rank_of<V>), 1);
  const int64_t n = holds.any().dims(at).back();
  line.back() = n;
  const Any own =
      reshape(apply("add", std::array{lane_id(n, width, at).any(), constant(int32, 1, {}, at)}, at), line, at);
  return TileOf<V>(apply("eq", std::array{first, own}, at));
}
/// Waits for the lanes of a warp. Effects of a program take place in the order of its instructions: what one lane wrote
/// before, all see after, here and without it. It is for reading a kernel that was written with it.
inline void sync() {}

}  // namespace warp
}  // namespace weft::k
