#pragma once
// Replaces one-hot sums by gathers: Σ over j of (j == t ? x[j] : 0) reads the one element x[t]. A classifier's loss is
// written with such a sum, so that it stays one pass over the logits on a CPU.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Rewrites such sums over rows of at least 1024 elements if x, before casts, is an input or the result of a dot: it
/// lies in memory then. A target outside the row still gives 0.
Ir one_hot_gather(Ir ir);

}  // namespace weft::compiler
