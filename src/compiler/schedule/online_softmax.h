#pragma once
// Decides which maxima and sums of exponentials become one reduction on a GPU (rewrite/scaled_sums.h): one pass over a
// row instead of two, for some more arithmetic.
#include "compiler/ir/ir.h"

namespace weft::target {
class Target;
}

namespace weft::compiler {

/// Returns the graph with those joined whose rows would be read again from beyond what a program has on chip, if that
/// takes longer than the arithmetic. Replaced nodes are dropped.
Ir online_softmax(Ir ir, const target::Target& target);

}  // namespace weft::compiler
