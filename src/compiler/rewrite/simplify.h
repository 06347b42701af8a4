#pragma once
// Algebra on the flat graph: equal nodes are shared, constants folded, and named rules applied to every node as it is
// rebuilt from its simplified inputs, until none fires. Each rule shrinks the graph or moves it toward what the later
// passes match, so that the fixpoint exists.
#include "compiler/ir/ir.h"

namespace weft::compiler {

Ir simplify(Ir ir);

}  // namespace weft::compiler
