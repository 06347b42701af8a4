#pragma once
// Long reductions with few results, cut so that there are programs for the whole machine: Σ over n becomes Σ of s sums
// over n / s each. The one place where a reduction is cut, for all machines.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Threads of a CPU want a few hundred parts of reductions that leave less than eight results. A GPU wants thousands of
/// programs of any reduction; rows and columns that its blocks of threads share (lower/loops/rows_cluster.cpp,
/// lower/loops/columns.cpp) stay whole, and low floats are summed in float32 on the way. The tree depends on the shape
/// and the kind of machine, not on how large the machine is.
Ir split_reductions(Ir ir, const target::Target& target);

/// Nested reductions down columns, the inner one read by the outer one alone, as one each: how a graph says a sum does
/// not decide how it is cut.
Ir join_reductions(Ir ir);

}  // namespace weft::compiler
