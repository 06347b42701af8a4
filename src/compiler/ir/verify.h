#pragma once
// Holds a graph between two passes against the rules that every pass relies on.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// What a Program's caller sees of its graph: no pass changes it.
struct Interface {
  std::vector<graph::Type> inputs, outputs;
  std::vector<bool> row_major;  // by input
};
Interface interface_of(const Ir& ir);

/// Throws internal_error "[verify] RULE: NODE" where a rule is broken: operands exist and come before their users,
/// their number and the node's type follow from the operator's row, flags stand where they mean something, each
/// parameter is an input once, outputs exist. Costs about as much as building the types once.
void verify(const Ir& ir);
/// The same, and the inputs and outputs are those of `source`.
void verify(const Ir& ir, const Interface& source);

}  // namespace weft::compiler
