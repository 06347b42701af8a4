#pragma once
#include "weft/array.h"

/// Compares elements and combines truth values. Part of weft/ops.h. Operands are promoted and broadcast; results are
/// bool.
namespace weft {

/// Returns a == b for each element.
WEFT_API array equal(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a != b for each element: true where either is NaN.
WEFT_API array not_equal(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a > b for each element.
WEFT_API array greater(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a >= b for each element.
WEFT_API array greater_equal(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a < b for each element.
WEFT_API array less(const array& a, const array& b, StreamOrDevice s = {});
/// Returns a <= b for each element.
WEFT_API array less_equal(const array& a, const array& b, StreamOrDevice s = {});
/// Returns whether shapes and all elements are equal, a scalar. With `equal_nan` NaN equals NaN.
WEFT_API array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s = {});
inline array array_equal(const array& a, const array& b, StreamOrDevice s = {}) { return array_equal(a, b, false, s); }
/// Returns |a - b| <= atol + rtol |b| for each element. Equal infinities are close; NaN is close to NaN with
/// `equal_nan`.
WEFT_API array isclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                       StreamOrDevice s = {});
/// Returns whether all elements are close, a scalar, by the rule of `isclose`.
WEFT_API array allclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                        StreamOrDevice s = {});
/// Returns whether each element is NaN; of a complex number: either part.
WEFT_API array isnan(const array& a, StreamOrDevice s = {});
/// Returns whether each element is infinite; of a complex number: either part.
WEFT_API array isinf(const array& a, StreamOrDevice s = {});
/// Returns whether each element is +∞.
WEFT_API array isposinf(const array& a, StreamOrDevice s = {});
/// Returns whether each element is -∞.
WEFT_API array isneginf(const array& a, StreamOrDevice s = {});
/// Returns whether each element is neither infinite nor NaN.
WEFT_API array isfinite(const array& a, StreamOrDevice s = {});
/// Returns a == 0 for each element.
WEFT_API array logical_not(const array& a, StreamOrDevice s = {});
/// Returns whether both elements differ from 0.
WEFT_API array logical_and(const array& a, const array& b, StreamOrDevice s = {});
/// Returns whether either element differs from 0.
WEFT_API array logical_or(const array& a, const array& b, StreamOrDevice s = {});
/// Returns whether exactly one of the two elements differs from 0.
WEFT_API array logical_xor(const array& a, const array& b, StreamOrDevice s = {});

}  // namespace weft
