#pragma once
// Values that kernels of rows compute or read: they are reduced along their last axes, or made from such reductions.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// By node.
std::vector<bool> row_values(const Ir& ir);
/// Is what the reduction goes over such a value, or made from one?
bool reduces_row_value(const Ir& ir, const std::vector<bool>& row_values, int reduction);

}  // namespace weft::compiler
