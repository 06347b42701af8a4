#pragma once
// Reductions along the axes of arrays as they lie in memory.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the graph with reductions of permuted arrays, and of what is computed from them element by element, as
/// reductions along other axes of the arrays themselves: reduce(f(permute(x)), axes) → permute(reduce(f(x), axes')).
/// What follows sees by the axes of a reduction whether it runs along rows of memory or down columns. What a kernel
/// reads besides in its own order it computes a second time, which costs a GPU less than reads that are not coalesced.
/// Reductions stay as they are where they read arrays with different orders, where adjacent axes are apart in memory,
/// and with all others that read the same permuted array.
Ir reductions_in_memory_order(Ir ir);

}  // namespace weft::compiler
