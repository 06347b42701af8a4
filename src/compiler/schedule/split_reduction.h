#pragma once
// Long reductions with few results, for devices that are filled by many programs only: Σ over n becomes Σ of s sums
// over n / s each.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Rows and columns that blocks of threads share (lower/loops/rows_cluster.cpp, lower/loops/columns.cpp) stay whole.
/// Low floats are summed in float32 on the way. Other trees, not other values: the parts are as many for a shape,
/// whatever the device holds.
Ir split_reductions(Ir ir, const target::Target& target);
/// Reductions down columns of what other such reductions have left, as one each: the first half of the above.
Ir join_reductions(Ir ir);

}  // namespace weft::compiler
