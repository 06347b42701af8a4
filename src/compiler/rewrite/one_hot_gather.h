#pragma once
// Replaces one-hot sums by gathers: Σ over j of (j == t ? x[j] : 0) reads the one element x[t]. A classifier's loss is
// written with such a sum, so that it stays one pass over the logits on a CPU.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Rewrites such sums where x lies in memory anyway, as it is or cast. A target outside the row still gives 0.
Ir one_hot_gather(Ir ir);

}  // namespace weft::compiler
