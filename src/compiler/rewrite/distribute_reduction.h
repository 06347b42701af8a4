#pragma once
// Distributes reductions over linear expressions. Batch norm's backward is dx = a·(g − mean(g) − x̂·mean(g·x̂)). If dx
// is needed only in sums Σ dx·t (a bias or a filter gradient), then
//   Σ dx·t = a·(Σ g·t − mean(g)·Σ t − mean(g·x̂)·Σ x̂·t).
// All sums on the right depend on g, x̂ and t alone, so they run in the same pass as mean(g): one read of the data
// instead of two, and dx is never stored.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces each sum of a linear expression over all axes but the last by the sums of its terms, if every reader of the
/// expression is such a sum. Meant for machines on which a pass over the data costs more than a few more sums.
Ir distribute_reduction(Ir ir);

}  // namespace weft::compiler
