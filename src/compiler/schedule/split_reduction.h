#pragma once
// Splits long reductions with few results, so that there are programs for the whole machine: a sum over n becomes a sum
// of s partial sums over n / s elements each. No other pass cuts reductions, on any machine.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Splits reductions. On a CPU: those with fewer than eight results, into a few hundred parts, and those over axes on
/// both sides of one that is kept, into columns and rows. On a GPU: all, into
/// thousands of programs, except rows and columns that a cluster computes (lower/loops/rows_cluster.cpp,
/// lower/loops/columns.cpp). Partial sums of 16-bit and 8-bit floats are float32. The reduction tree depends on the
/// shape and on the kind of machine, not on its size.
Ir split_reductions(Ir ir, const target::Target& target);

}  // namespace weft::compiler
