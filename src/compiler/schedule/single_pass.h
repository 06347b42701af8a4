#pragma once
// Decides which sums become one reduction with their frame on a GPU (rewrite/framed_sums.h): one pass over the elements
// instead of two, for some more arithmetic.
#include "compiler/ir/ir.h"

namespace weft::target {
class Target;
}

namespace weft::compiler {

/// Returns the graph with those joined whose elements would be read again from beyond what a program has on chip, if
/// that takes longer than the arithmetic. Replaced nodes are dropped.
Ir single_pass_reductions(Ir ir, const target::Target& target);

}  // namespace weft::compiler
