#pragma once
// Applies the algebra of reductions: rules that join steps of a reduction, and rules that trade a pass over the data
// for a few more sums, or for a gather. They ask who else reads a value, so they run on a graph without dead code.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the graph rewritten by `nested_reduction_rules`, so that the number of steps in which a graph writes a sum
/// does not decide how it is split. Replaced nodes stay without readers.
Ir join_reductions(Ir ir);

/// Returns the graph rewritten by `reduction_algebra_rules`. Replaced nodes stay without readers. Meant for machines on
/// which a pass over the data costs more than a few more sums and launches.
Ir reduction_algebra(Ir ir);

}  // namespace weft::compiler
