#pragma once
// Warps, cooperative groups and fragments of the kernel language. A thread is an element here: a group of n threads
// works on tiles whose last axis has n elements, and a value of each thread is a tile.
//
//   auto block = k::this_thread_block(256);
//   auto warp = k::tiled_partition<32>(block);
//   auto sum = k::reduce(warp, x(k::ds(256 * k::program_id(0), 256)), k::By::add);   // in all lanes of each warp
//
// weft/kernel/lanes.h has the functions of warps alone (k::warp::shfl, ballot, match_any, …), weft/kernel/fragments.h
// fragments as in WMMA.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "weft/kernel.h"
#include "weft/kernel/erased_async.h"
#include "weft/kernel/fragments.h"
#include "weft/kernel/lanes.h"

namespace weft::k {

/// By what a group reduces and scans.
enum class By : uint8_t { add, mul, min, max, bit_and, bit_or, bit_xor };

namespace detail {
constexpr std::string_view name_of(By by) {
  constexpr std::array names{"add", "mul", "min", "max", "bit_and", "bit_or", "bit_xor"};
  return names[static_cast<size_t>(by)];
}
WEFT_API Any reduced_all(const Any& v, std::string_view op, Line at);
WEFT_API Any scanned_all(const Any& v, std::string_view op, bool exclusive, Line at);
WEFT_API Any ranks(const std::vector<int64_t>& dims, int64_t width, bool of_groups, Line at);
WEFT_API Any lane_of_rank(const Any& members, const Any& rank, Line at);
WEFT_API Any member_ranks(const Any& members, int64_t width, Line at);
WEFT_API Any firsts(const Any& members, const std::vector<int64_t>& dims, int64_t width, Line at);
WEFT_API void check_group(const std::vector<int64_t>& dims, const Any& v, Line at);
}  // namespace detail

/// The threads of a program, as many as a tile of these extents has elements. All are in one group, in row-major order.
template <int R>
class ThreadBlock {
 public:
  /// The number of axes of its tiles.
  static constexpr int rank = R;
  explicit ThreadBlock(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  /// Returns the extents of its tiles.
  const std::vector<int64_t>& dims() const { return dims_; }
  /// Returns the number of threads.
  int64_t size() const {
    int64_t n = 1;
    for (const int64_t d : dims_) n *= d;
    return n;
  }
  /// Returns the number of each thread.
  Tile<i32, R> thread_rank(Line at = Line::here()) const {
    return Tile<i32, R>(detail::ranks(dims_, size(), false, at));
  }
  /// Waits for all threads. Effects of a program take place in the order of its instructions, with a barrier where one
  /// is needed; it is for reading a kernel that was written with it.
  void sync() const {}

 private:
  std::vector<int64_t> dims_;
};
/// Returns the group of n threads of this program.
inline ThreadBlock<1> this_thread_block(int64_t n) { return ThreadBlock<1>({n}); }
/// Returns the group of a tile's elements, for tiles of these extents.
template <size_t N>
ThreadBlock<static_cast<int>(N)> this_thread_block(const int64_t (&dims)[N]) {
  return ThreadBlock<static_cast<int>(N)>({dims, dims + N});
}

/// The threads of all programs of a launch: in each program those of a block.
template <int R>
class GridGroup {
 public:
  explicit GridGroup(ThreadBlock<R> block) : block_(std::move(block)) {}
  /// Returns the number of threads.
  int64_t size(Line at = Line::here()) const { return num_blocks(at) * block_.size(); }
  /// Returns the number of programs.
  int64_t num_blocks(Line at = Line::here()) const { return number_of_programs(at); }
  /// Returns the number of the program.
  Index block_rank(Line at = Line::here()) const { return Index(program_number(at)); }
  /// Waits for all programs, as grid_barrier does.
  void sync(Line at = Line::here()) const { grid_barrier(at); }
  /// Returns the number of each thread.
  Tile<i64, R> thread_rank(Line at = Line::here()) const {
    const Any first = apply("mul", std::array{program_number(at), constant(int64, block_.size(), {}, at)}, at);
    return Tile<i64, R>(apply("add", std::array{cast(block_.thread_rank(at).any(), int64, at), first}, at));
  }

 private:
  ThreadBlock<R> block_;
};
/// Returns the group of all threads of a launch.
template <int R>
GridGroup<R> this_grid(const ThreadBlock<R>& block) {
  return GridGroup<R>(block);
}

/// Groups of W neighbours along the last axis of a block's tiles.
template <int W, int R>
class ThreadBlockTile {
  static_assert(W == 1 || W == 2 || W == 4 || W == 8 || W == 16 || W == 32, "a group has 1, 2, 4, 8, 16 or 32 lanes");

 public:
  /// The number of axes of its tiles.
  static constexpr int rank = R;
  explicit ThreadBlockTile(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  /// Returns the extents of its tiles.
  const std::vector<int64_t>& dims() const { return dims_; }
  /// Returns the number of lanes of a group.
  static constexpr int size() { return W; }
  /// Returns the number of each thread in its group.
  Tile<i32, R> thread_rank(Line at = Line::here()) const { return Tile<i32, R>(detail::ranks(dims_, W, false, at)); }
  /// Returns the number of each thread's group.
  Tile<i32, R> meta_group_rank(Line at = Line::here()) const { return Tile<i32, R>(detail::ranks(dims_, W, true, at)); }
  /// Returns the number of groups.
  int64_t meta_group_size() const { return ThreadBlock<R>(dims_).size() / W; }
  /// Waits for the lanes, as a block's `sync` does.
  void sync() const {}
  /// Returns the element of lane `lane`.
  template <TileLike V, class B>
  TileOf<V> shfl(const V& v, const B& lane, Line at = Line::here()) const {
    return warp::shfl(v, lane, W, at);
  }
  /// Returns the element of the lane `by` before; the first lanes keep theirs.
  template <TileLike V, class B>
  TileOf<V> shfl_up(const V& v, const B& by, Line at = Line::here()) const {
    return warp::shfl_up(v, by, W, at);
  }
  /// Returns the element of the lane `by` behind; the last lanes keep theirs.
  template <TileLike V, class B>
  TileOf<V> shfl_down(const V& v, const B& by, Line at = Line::here()) const {
    return warp::shfl_down(v, by, W, at);
  }
  /// Returns the element of the lane whose number differs in the bits of `mask`.
  template <TileLike V, class B>
  TileOf<V> shfl_xor(const V& v, const B& mask, Line at = Line::here()) const {
    return warp::shfl_xor(v, mask, W, at);
  }
  /// Returns whether the condition holds in all lanes.
  template <TileLike V>
  TileOf<V> all(const V& condition, Line at = Line::here()) const {
    return warp::all(condition, W, at);
  }
  /// Returns whether it holds in any lane.
  template <TileLike V>
  TileOf<V> any(const V& condition, Line at = Line::here()) const {
    return warp::any(condition, W, at);
  }
  /// Returns the mask of the lanes where it holds.
  template <TileLike V>
  Tile<u32, R> ballot(const V& condition, Line at = Line::here()) const {
    return warp::ballot(condition, W, at);
  }
  /// Returns the mask of the lanes that have the same bits.
  template <TileLike V>
  Tile<u32, R> match_any(const V& v, Line at = Line::here()) const {
    return warp::match_any(v, W, at);
  }
  /// Returns the mask of all lanes where all have the same bits, else 0.
  template <TileLike V>
  Tile<u32, R> match_all(const V& v, Line at = Line::here()) const {
    return warp::match_all(v, W, at);
  }

 private:
  std::vector<int64_t> dims_;
};
/// Cuts a group into groups of W threads.
template <int W, class G>
ThreadBlockTile<W, G::rank> tiled_partition(const G& group) {
  return ThreadBlockTile<W, G::rank>(group.dims());
}

/// Lanes of a group of W that belong together: those that a condition chooses, or that have the same label. Lanes that
/// belong to none keep their elements in reductions and scans, and have rank and size 0.
template <int W, int R>
class CoalescedGroup {
 public:
  /// The number of axes of its tiles.
  static constexpr int rank = R;
  CoalescedGroup(std::vector<int64_t> dims, Tile<u32, R> members) : dims_(std::move(dims)), members_(members) {}
  /// Returns the extents of its tiles.
  const std::vector<int64_t>& dims() const { return dims_; }
  /// Returns the mask of the lanes that belong with each.
  const Tile<u32, R>& members() const { return members_; }
  /// Returns the number of lanes that belong with each.
  Tile<i32, R> size(Line at = Line::here()) const { return popc(members_, at); }
  /// Returns the number of each lane among those.
  Tile<i32, R> thread_rank(Line at = Line::here()) const {
    return Tile<i32, R>(detail::member_ranks(members_.any(), W, at));
  }
  /// Returns the element of the lane with this rank; of a rank that the group does not have, its own.
  template <TileLike V, class B>
  TileOf<V> shfl(const V& v, const B& from, Line at = Line::here()) const {
    return moved(v, Tile<i32, R>(ranked(from, at)), at);
  }
  /// Returns the element of the lane whose rank is `by` lower; the first lanes keep theirs.
  template <TileLike V, class B>
  TileOf<V> shfl_up(const V& v, const B& by, Line at = Line::here()) const {
    return moved(v, thread_rank(at) - Tile<i32, R>(ranked(by, at)), at);
  }
  /// Returns the element of the lane whose rank is `by` higher; the last lanes keep theirs.
  template <TileLike V, class B>
  TileOf<V> shfl_down(const V& v, const B& by, Line at = Line::here()) const {
    return moved(v, thread_rank(at) + Tile<i32, R>(ranked(by, at)), at);
  }
  /// Waits for the lanes, as a block's `sync` does.
  void sync() const {}

 private:
  template <class B>
  Any ranked(const B& by, Line at) const {
    return broadcast_to(cast(detail::lane_operand(by, at), int32, at), dims_, at);
  }
  template <TileLike V>
  TileOf<V> moved(const V& v, const Tile<i32, R>& wanted, Line at) const {
    const TileOf<V> own = detail::as_tile(v, at);
    const Tile<i32, R> lane(detail::lane_of_rank(members_.any(), wanted.any(), at));
    return where((wanted >= 0) & (wanted < size(at)), warp::shfl(own, lane, W, at), own, at);
  }
  std::vector<int64_t> dims_;
  Tile<u32, R> members_;
};
/// Returns the lanes where the condition holds: those that would run inside an `if`.
template <int W, int R, TileLike C>
CoalescedGroup<W, R> coalesced_threads(const ThreadBlockTile<W, R>& group, const C& condition, Line at = Line::here()) {
  const Tile<u32, R> mask = warp::ballot(condition, W, at);
  return {group.dims(), where(condition, mask, u32{0}, at)};
}
/// Returns groups of lanes with the same label.
template <int W, int R, TileLike L>
CoalescedGroup<W, R> labeled_partition(const ThreadBlockTile<W, R>& group, const L& label, Line at = Line::here()) {
  return {group.dims(), warp::match_any(label, W, at)};
}
/// Returns two groups: the lanes where the condition holds, and the others.
template <int W, int R, TileLike C>
CoalescedGroup<W, R> binary_partition(const ThreadBlockTile<W, R>& group, const C& condition, Line at = Line::here()) {
  detail::check_condition<C>();
  return {group.dims(), warp::match_any(condition, W, at)};
}

/// Reduces a tile over each group; all lanes get the result. Of a block it is a scalar.
template <int W, int R, TileLike V>
TileOf<V> reduce(const ThreadBlockTile<W, R>& group, const V& v, By by, Line at = Line::here()) {
  static_assert(rank_of<V> == R, "the tile has the axes of the group's block");
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return TileOf<V>(lanes("reduce", tile, W, {}, detail::name_of(by), at));
}
template <int W, int R, TileLike V>
TileOf<V> reduce(const CoalescedGroup<W, R>& group, const V& v, By by, Line at = Line::here()) {
  static_assert(rank_of<V> == R, "the tile has the axes of the group's block");
  return TileOf<V>(lanes("reduce", detail::as_tile(v, at).any(), W, group.members().any(), detail::name_of(by), at));
}
template <int R, TileLike V>
Tile<ElementOf<V>, 0> reduce(const ThreadBlock<R>& group, const V& v, By by, Line at = Line::here()) {
  static_assert(rank_of<V> == R, "the tile has the axes of the block");
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return Tile<ElementOf<V>, 0>(detail::reduced_all(tile, detail::name_of(by), at));
}
/// Combines each element with those of the lanes before it in its group.
template <int W, int R, TileLike V>
TileOf<V> inclusive_scan(const ThreadBlockTile<W, R>& group, const V& v, By by, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return TileOf<V>(lanes("scan", tile, W, {}, detail::name_of(by), at));
}
/// Combines the elements of the lanes before each one in its group; of the first the neutral number.
template <int W, int R, TileLike V>
TileOf<V> exclusive_scan(const ThreadBlockTile<W, R>& group, const V& v, By by, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return TileOf<V>(lanes("scan_exclusive", tile, W, {}, detail::name_of(by), at));
}
/// Combines each element with those of the lanes before it in its group.
template <int W, int R, TileLike V>
TileOf<V> inclusive_scan(const CoalescedGroup<W, R>& group, const V& v, By by, Line at = Line::here()) {
  return TileOf<V>(lanes("scan", detail::as_tile(v, at).any(), W, group.members().any(), detail::name_of(by), at));
}
/// Combines the elements of the lanes before each one in its group; of the first the neutral number.
template <int W, int R, TileLike V>
TileOf<V> exclusive_scan(const CoalescedGroup<W, R>& group, const V& v, By by, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  return TileOf<V>(lanes("scan_exclusive", tile, W, group.members().any(), detail::name_of(by), at));
}
/// Combines each element with those of the lanes before it in its group.
template <int R, TileLike V>
TileOf<V> inclusive_scan(const ThreadBlock<R>& group, const V& v, By by, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return TileOf<V>(detail::scanned_all(tile, detail::name_of(by), false, at));
}
/// Combines the elements of the lanes before each one in its group; of the first the neutral number.
template <int R, TileLike V>
TileOf<V> exclusive_scan(const ThreadBlock<R>& group, const V& v, By by, Line at = Line::here()) {
  const Any tile = detail::as_tile(v, at).any();
  detail::check_group(group.dims(), tile, at);
  return TileOf<V>(detail::scanned_all(tile, detail::name_of(by), true, at));
}

/// Runs f for one thread of a group. Of a block f() is run once; of other groups f(chosen) is, where `chosen`, a tile
/// of bool, is true in the first lane of each: a mask for what it stores. Returns what f returns.
template <int R, class F>
decltype(auto) invoke_one(const ThreadBlock<R>&, const F& f) {
  return f();
}
template <int W, int R, class F>
decltype(auto) invoke_one(const ThreadBlockTile<W, R>& group, const F& f, Line at = Line::here()) {
  return f(Tile<bool, R>(detail::firsts({}, group.dims(), W, at)));
}
template <int W, int R, class F>
decltype(auto) invoke_one(const CoalescedGroup<W, R>& group, const F& f, Line at = Line::here()) {
  return f(Tile<bool, R>(detail::firsts(group.members().any(), group.dims(), W, at)));
}

/// Copies a slice of an array to another one (from an array to scratch, as a rule). On GPUs whole rows go to scratch
/// without passing registers, and the copy ends before what reads it.
template <class G, class T, int R>
void memcpy_async(const G&, const WritablePart<T, R>& to, const Part<T, R>& from, Line at = Line::here()) {
  to.store(At<T, R>(from.load(at), at));
}
/// Waits for copies. Reads of what was copied wait by themselves; it is for reading a kernel that was written with it.
template <class G>
void wait(const G&) {}

}  // namespace weft::k
