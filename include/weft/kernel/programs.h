#pragma once
// What programs of a launch have to do with each other: they wait for an element that an earlier one changes, or for
// all; those of a cluster reach each other's shared memory.
#include <array>
#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/kernel.h"
#include "weft/kernel/erased_async.h"

namespace weft::k {

/// Waits until an element of an array, at one index for each axis, is what the condition says: a value, or a function
/// that takes the element and returns a bool scalar. Returns the element. What was done before the release that wrote
/// it is seen from then on. A program waits for those with a lower number alone, in a grid with an axis of
/// k::Order::ordered; elements have 32 or 64 bits, and atomics change them.
template <detail::reference A, class F>
Tile<typename A::Element, 0> wait_until(const A& array, const std::array<Index, A::rank>& position, const F& condition,
                                        MemoryOrder order = MemoryOrder::acquire,
                                        MemoryScope scope = MemoryScope::device, Line at = Line::here()) {
  using T = typename A::Element;
  using Element = Tile<T, 0>;
  static_assert(!detail::is_input<A>, "nobody changes an In array: declare it as InOut to wait for an element");
  std::array<Any, A::rank> where;
  for (size_t k = 0; k < where.size(); ++k) where[k] = position[k].any();
  const std::function<Any(Any)> holds = [&](Any found) {
    if constexpr (std::invocable<F, Element>) {
      static_assert(std::same_as<TileOf<std::invoke_result_t<F, Element>>, Tile<bool, 0>>,
                    "the condition of a wait returns a bool scalar");
      return detail::as_tile(condition(Element(found)), at).any();
    } else {
      return apply("eq", std::array{found, detail::element_operand<T>(condition, at)}, at);
    }
  };
  return Element(wait_until(array.any(), where, holds, Ordering{order, scope}, at));
}
/// Waits until an element of an array of one axis is what the condition says.
template <detail::reference A, class F>
requires(A::rank == 1) Tile<typename A::Element, 0> wait_until(const A& array, const Index& element, const F& condition,
                                                               MemoryOrder order = MemoryOrder::acquire,
                                                               MemoryScope scope = MemoryScope::device,
                                                               Line at = Line::here()) {
  return wait_until(array, std::array{element}, condition, order, scope, at);
}

/// A slice of a buffer of another program of the cluster.
template <class T, int R>
class NeighbourPart {
 public:
  NeighbourPart(AnyRef ref, std::vector<Span> spans, Index rank)
      : ref_(std::move(ref)), spans_(std::move(spans)), rank_(std::move(rank)) {}
  /// Returns the tile.
  Tile<T, R> load(Line at = Line::here()) const { return Tile<T, R>(load_neighbour(ref_, spans_, rank_.any(), at)); }
  /// Stores a tile.
  const NeighbourPart& operator=(const At<T, R>& v) const {
    store_neighbour(ref_, spans_, rank_.any(), v.any, v.line);
    return *this;
  }

 private:
  AnyRef ref_;
  std::vector<Span> spans_;
  Index rank_;
};

/// A buffer of another program of the cluster.
template <class T, int R>
class Neighbour {
 public:
  Neighbour(AnyRef ref, Index rank) : ref_(std::move(ref)), rank_(std::move(rank)) {}
  /// Returns a slice: for each axis ds(start, size), all, or one index, which drops the axis. It lies within the
  /// buffer.
  template <detail::subscript... S>
  auto operator()(const S&... subscripts) const {
    static_assert(sizeof...(S) == R, "a slice has one subscript for each axis of the buffer");
    constexpr int left = (0 + ... + static_cast<int>(detail::keeps_axis<S>));
    return NeighbourPart<T, left>(ref_, {detail::span_of(subscripts, Line{})...}, rank_);
  }

 private:
  AnyRef ref_;
  Index rank_;
};
/// Returns the buffer of program `rank` of the cluster that is this one here. Between the accesses of two programs
/// stands a barrier of the cluster; so it does before the first access and behind the last one.
template <class T, int R>
Neighbour<T, R> neighbour(const Ref<T, R>& buffer, const Index& rank) {
  return {buffer.any(), rank};
}

/// The programs along the last axis of a grid with k::Order::cluster.
class ClusterGroup {
 public:
  /// Returns the number of programs.
  int64_t num_blocks(Line at = Line::here()) const { return cluster_size(at); }
  /// Returns the number of this program among them.
  Index block_rank(Line at = Line::here()) const { return Index(cluster_rank(at)); }
  /// Waits for all of them.
  void sync(Line at = Line::here()) const { cluster_barrier(at); }
  /// Returns the buffer of program `rank` that is this one here, as neighbour does.
  template <class T, int R>
  Neighbour<T, R> map_shared_rank(const Ref<T, R>& buffer, const Index& rank) const {
    return neighbour(buffer, rank);
  }
};
/// Returns the cluster of this program.
inline ClusterGroup this_cluster() { return {}; }

}  // namespace weft::k
