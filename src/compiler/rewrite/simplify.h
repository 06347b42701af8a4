#pragma once
// Algebra on the flat graph: equal nodes are shared, constants folded, and named rules applied to every node as it is
// rebuilt from its simplified inputs, until none fires. Each rule shrinks the graph or moves it toward what the later
// passes match, so that the fixpoint exists.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Nodes that were replaced stay, without readers.
Ir simplify(Ir ir);

/// What a call reads lies row-major in memory, and so does what a scatter or an assignment starts from: an input that
/// does not is copied first.
Ir with_plain_operands(Ir ir);

}  // namespace weft::compiler
