#pragma once
// Values that kernels of rows compute or read: they are folded along their last axes, or made from such folds.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// By node.
std::vector<bool> row_values(const Ir& ir);
/// Is what the fold goes over such a value, or made from one?
bool folds_row_value(const Ir& ir, const std::vector<bool>& row_values, int fold);

}  // namespace weft::compiler
