#pragma once
// Simplifies the flat graph: shares equal nodes, folds constants, and applies named rules to every node as it is
// rebuilt from its simplified inputs, until none fires. Each rule makes the graph smaller or brings it closer to the
// form that later passes match, so that rewriting ends.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the simplified graph. Replaced nodes stay without readers.
Ir simplify(Ir ir);

/// Copies an input that is not row-major before a call other than attention reads it, or a scatter or an assignment
/// starts from it: these take row-major arrays.
Ir with_plain_operands(Ir ir);

}  // namespace weft::compiler
