#pragma once
// Helpers that the files of complex functions share.
#include <limits>

#include "graph/build.h"
#include "graph/complex/complex.h"

namespace weft::graph {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

Value is_zero(const Value& v);
Value larger(const Value& a, const Value& b);
Value smaller(const Value& a, const Value& b);
Value magnitude_of(const Value& v);
/// Returns `size` with its sign changed where the sign bit of `sign` is set, also for -0.
Value with_sign_of(const Value& size, const Value& sign);
Value is_nan(const Value& v);
/// Returns a where the condition holds, else b.
Parts choose(const Value& condition, const Parts& a, const Parts& b);

// ---- complex_inverse.cpp ----
Parts arcsine(const Parts& z);
Parts arccosine(const Parts& z);
Parts hyperbolic_arccosine(const Parts& z);
Parts hyperbolic_arctangent(const Parts& z);

}  // namespace weft::graph
