#pragma once
// Splits long reductions with few results, so that there are programs for the whole machine: a sum over n becomes a sum
// of s partial sums over n / s elements each. This is the only pass that cuts reductions, for all machines.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Splits reductions. On a CPU: those with less than eight results, into a few hundred parts. On a GPU: any, into
/// thousands of programs, except rows and columns that a cluster computes (lower/loops/rows_cluster.cpp,
/// lower/loops/columns.cpp). Partial sums of 16-bit and 8-bit floats are float32. The tree depends on the shape and the
/// kind of machine, not on how large the machine is.
Ir split_reductions(Ir ir, const target::Target& target);

/// Joins nested reductions down columns, where the outer one alone reads the inner one, so that the way a graph writes
/// a sum does not decide how it is cut.
Ir join_reductions(Ir ir);

}  // namespace weft::compiler
