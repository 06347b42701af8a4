#pragma once
// Splits long reductions with few results, so that there are programs for the whole machine: a sum over n becomes a sum
// of s partial sums over n / s elements each. No other pass cuts reductions, on any machine.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Splits reductions. On a CPU: those with fewer than eight results, into a few hundred parts. On a GPU: all, into
/// thousands of programs, except rows and columns that a cluster computes (lower/loops/rows_cluster.cpp,
/// lower/loops/columns.cpp). On both: those over axes on both sides of one that is kept, into columns and rows. Partial
/// sums of 16-bit and 8-bit floats are float32. The reduction tree depends on the shape and on the kind of machine, not
/// on its size.
Ir split_reductions(Ir ir, const target::Target& target);

/// Returns how many programs that each hold a row of `columns` elements, and sums of as many columns, run at once on a
/// large GPU: what its registers hold. Each has one row of loads in flight, so narrow rows need many.
int64_t programs_of_rows(int64_t columns);
/// Returns whether a row kernel should sum columns in so many parts of `each` rows: its programs walk through the rows
/// of a part one after the other.
bool enough_beside_rows(int64_t parts, int64_t each, int64_t columns);

}  // namespace weft::compiler
