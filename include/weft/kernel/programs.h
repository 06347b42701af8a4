#pragma once
// What programs of a launch wait for: an element that an earlier program changes, and each other.
#include <array>
#include <concepts>
#include <functional>
#include <type_traits>

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

}  // namespace weft::k
