#pragma once
// What the rules of decompositions share: checks of matrices, batches, factors.
#include "graph/calls/call_rules.h"
#include "graph/calls/linalg.h"
#include "graph/calls/linalg_reference.h"
#include "graph/rows.h"

namespace weft::graph::linalg {

/// Throws unless the last two axes are fixed and the dtype is float32, float64 or complex; `square`, and `tall` (at
/// least as many rows as columns), refer to column-major matrices.
void check_matrices(const char* name, const Type& v, bool square, bool tall = false);
/// Returns the type [b…, further…] for matrices [b…, m, n].
Type batch_of(const Type& v, std::vector<Dim> further, Dtype dtype);

/// Applies the call with an additional leading batch axis.
Values batched_call(const Node& node, ValueSpan x, std::span<const int> axes);
/// All axes but the last two of the first input are batch axes, in all inputs and results.
Factors batch_factors(const Attrs& attrs, TypeSpan in, TypeSpan out);

}  // namespace weft::graph::linalg
