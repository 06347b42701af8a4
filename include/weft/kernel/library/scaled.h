#pragma once
// Products of quantised operands, whose elements stand for themselves times a scale.
#include <type_traits>

#include "weft/kernel.h"

namespace weft::k {

namespace detail {
/// Returns c + (a·scales of a) (b·scales of b) as dot_scaled does. An invalid c: the sum begins at 0.
WEFT_API Any dot_scaled(const Any& a, const Any& a_scales, const Any& b, const Any& b_scales, const Any& c, Line at);

template <class S>
Any scales_of(const S& scales, Line at) {
  if constexpr (std::is_arithmetic_v<S>) {
    return constant(float32, static_cast<double>(scales), {}, at);
  } else {
    using Element = ElementOf<S>;
    static_assert(rank_of<S> == 0 || rank_of<S> == 2, "scales are a number, a scalar, or a tile of two axes");
    static_assert(is_floating<Element> || std::same_as<Element, u8>, "scales are floats, or exponents in uint8");
    return as_tile(scales, at).any();
  }
}
}  // namespace detail

/// Returns (a·scales) (b·scales) of [m,k] and [k,n] in float32. Scales are one number, or a tile whose extents divide
/// the operand's: each of them covers a block of equal extents, all rows or columns where an axis has 1. So [m,1] and
/// [1,n] scale rows and columns, [m,k/128] and [k/128,n/128] blocks of 128. They are float32, or narrower floats, or
/// uint8: exponents of 2, 127 for 1 (E8M0 of the OCP microscaling formats, where 255 is NaN).
/// The contracted axis is multiplied in as many parts as there are scales along it; the sum of a part, in float32
/// (int32 of integers), is multiplied by the product of its scales and added, rounded once.
template <TileLike A, class SA, TileLike B, class SB>
Tile<f32, 2> dot_scaled(const A& a, const SA& a_scales, const B& b, const SB& b_scales, Line at = Line::here()) {
  detail::check_dot<A, B>();
  return Tile<f32, 2>(detail::dot_scaled(detail::as_tile(a, at).any(), detail::scales_of(a_scales, at),
                                         detail::as_tile(b, at).any(), detail::scales_of(b_scales, at), {}, at));
}
/// Returns the same added to c [m,n], float32.
template <TileLike A, class SA, TileLike B, class SB, TileLike C>
Tile<f32, 2> dot_scaled(const A& a, const SA& a_scales, const B& b, const SB& b_scales, const C& c,
                        Line at = Line::here()) {
  detail::check_dot<A, B>();
  static_assert(std::same_as<ElementOf<C>, f32>, "dot_scaled adds to float32");
  return Tile<f32, 2>(detail::dot_scaled(detail::as_tile(a, at).any(), detail::scales_of(a_scales, at),
                                         detail::as_tile(b, at).any(), detail::scales_of(b_scales, at),
                                         detail::as_tile(c, at).any(), at));
}

}  // namespace weft::k
