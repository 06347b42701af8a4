#pragma once
// Atomic updates of arrays, and what programs of a launch agree by: a lock, the last program.
//
// Programs update in an order of the device's own. Integers end up the same in every order. Sums of floats do not: a
// kernel with them is refused where results are to have the same bits in every run, which is the default
// (weft::set_numerics).
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "weft/kernel.h"
#include "weft/kernel/lanes.h"

namespace weft::k {

/// An atomic operation: its name, what it orders and for whom, and the line where it stands. `name`: add, min, max,
/// bit_and, bit_or, bit_xor, exchange.
struct Atomic {
  /// The name of the operation.
  std::string_view name;
  /// What it orders, and for whom.
  Ordering how;
  /// The line where it stands.
  Line line;
  /// Makes an operation of a name.
  Atomic(const char* n, MemoryOrder order = MemoryOrder::relaxed, MemoryScope scope = MemoryScope::device,
         Line at = Line::here())
      : name(n), how(Ordering{order, scope}), line(at) {}
};

namespace detail {
template <class T, class V>
Any element_operand(const V& v, Line at) {
  if constexpr (!std::is_arithmetic_v<V>)
    static_assert(std::same_as<ElementOf<V>, T>, "the value has another element type than the array: cast it");
  return operand<T>(v, at);
}
template <class A, class V, class... P>
constexpr void check_updated() {
  if constexpr (std::is_arithmetic_v<V>) check_written<A, Tile<typename A::Element, 0>, P...>();
  else check_written<A, V, P...>();
}
}  // namespace detail

/// Updates elements at positions (an integer tile or index for each axis), each at once, and returns what was there. A
/// position outside of the array is left out.
template <detail::reference A, class V, TileLike... P>
auto atomic(const Atomic& op, const A& array, const V& v, const P&... position) {
  detail::check_updated<A, V, P...>();
  using T = typename A::Element;
  const std::array<Any, sizeof...(P)> at{detail::as_tile(position, op.line).any()...};
  return Tile<T, detail::rank_of_positions<P...>>(
      atomic(op.name, array.any(), at, detail::element_operand<T>(v, op.line), {}, op.how, op.line));
}
/// Updates the elements of a slice, and returns what was there. Where nobody reads that, a GPU adds several at once.
template <class T, int R, class V>
Tile<T, R> atomic(const Atomic& op, const WritablePart<T, R>& slice, const V& v) {
  return Tile<T, R>(atomic(op.name, slice.ref(), std::span<const Span>(slice.spans()),
                           detail::element_operand<T>(v, op.line), {}, op.how, op.line));
}
/// Replaces the elements that are as expected by `v`, and returns what was there. `how`: an Atomic named "exchange".
template <detail::reference A, class E, class V, TileLike... P>
auto compare_exchange(const Atomic& how, const A& array, const E& expected, const V& v, const P&... position) {
  detail::check_updated<A, V, P...>();
  using T = typename A::Element;
  const std::array<Any, sizeof...(P)> at{detail::as_tile(position, how.line).any()...};
  return Tile<T, detail::rank_of_positions<P...>>(
      compare_exchange(array.any(), at, detail::element_operand<T>(expected, how.line),
                       detail::element_operand<T>(v, how.line), {}, how.how, how.line));
}

/// A lock in memory: an element of an array of int32 that is 0 while nobody has it. What a program writes while it has
/// the lock, later ones see. A program waits for it alone: locks that wait for each other never end.
template <detail::reference A>
class Mutex {
  static_assert(std::same_as<typename A::Element, i32> && A::rank == 1, "a lock is an element of an array of int32");

 public:
  Mutex(const A& array, const Index& element) : array_(array), element_(element) {}
  /// Waits until the lock is free, and takes it.
  void lock(Line at = Line::here()) const {
    const Atomic take("exchange", MemoryOrder::acquire, MemoryScope::device, at);
    while_([&] { return compare_exchange(take, array_, 0, 1, element_) != 0; }, [] {}, at);
  }
  /// Gives it back.
  void unlock(Line at = Line::here()) const {
    atomic(Atomic("exchange", MemoryOrder::release, MemoryScope::device, at), array_, 0, element_);
  }
  /// Runs f while it has the lock.
  template <class F>
  void locked(const F& f, Line at = Line::here()) const {
    lock(at);
    f();
    unlock(at);
  }

 private:
  A array_;
  Index element_;
};

/// Returns true in the last program of the launch that comes here, which sees what all others have written before.
/// `counter`: an element of an array of int32 that begins at 0 and is left at the number of programs. Each program
/// comes here once.
template <detail::reference A>
Tile<bool, 0> last_program(const A& counter, const Index& element, Line at = Line::here()) {
  static_assert(std::same_as<typename A::Element, i32> && A::rank == 1, "a counter is an element of an array of int32");
  const Atomic count("add", MemoryOrder::acq_rel, MemoryScope::device, at);
  return atomic(count, counter, 1, element) == static_cast<i32>(number_of_programs(at) - 1);
}

}  // namespace weft::k
