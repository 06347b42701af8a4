#pragma once
// Σ over j of (j == t ? x[j] : 0) reads one element: a gather. The loss of a classifier is written with such sums, so
// that it stays one pass over its logits on a CPU.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Only where x lies in memory anyway, as it is or cast. Targets outside the row still pick nothing.
Ir one_hot_gather(Ir ir);

}  // namespace weft::compiler
