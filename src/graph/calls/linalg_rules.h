#pragma once
// What the rules of decompositions share: checks of matrices, batches, factors.
#include "graph/calls/call_rules.h"
#include "graph/calls/linalg.h"
#include "graph/calls/linalg_reference.h"
#include "graph/rows.h"

namespace weft::graph::linalg {

/// Throws unless the last two axes are fixed and the numbers are float32 or float64; `square` and `tall` (as many rows
/// as columns at least) as matrices that lie column by column.
void check_matrices(const char* name, const Type& v, bool square, bool tall = false);
/// [b…] of matrices [b…, m, n], and that with further axes behind.
Type batch_of(const Type& v, std::vector<Dim> further, Dtype dtype);

/// Further batch axes in front of those that are there.
Values batched_call(const Node& node, ValueSpan x, std::span<const int> axes);
/// Everything before the last two axes of the first input is a batch, in all inputs and results.
Factors batch_factors(const Attrs& attrs, TypeSpan in, TypeSpan out);

}  // namespace weft::graph::linalg
