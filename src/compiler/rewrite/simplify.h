#pragma once
// Simplifies the flat graph: shares equal nodes, folds constants, and applies named rules to every node as it is
// rebuilt from its simplified inputs, until none fires. Each rule makes the graph smaller or closer to the form that
// later passes match, so that the fixpoint exists.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Nodes that were replaced stay, without readers.
Ir simplify(Ir ir);

/// What a call reads lies row-major in memory, and so does what a scatter or an assignment starts from: an input that
/// does not is copied first.
Ir with_plain_operands(Ir ir);

}  // namespace weft::compiler
