#pragma once
// Finds the values that row kernels compute or read: those that are reduced along their last axes, and those that
// depend on such reductions.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns by node whether it is such a value.
NodeFlags row_values(const Ir& ir);
/// Returns whether the operand of `reduction` is such a value or is computed from one.
bool reduces_row_value(const Ir& ir, const NodeFlags& row_values, NodeId reduction);

}  // namespace weft::compiler
