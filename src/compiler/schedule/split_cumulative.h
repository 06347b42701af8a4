#pragma once
// Long cumulative reductions of few rows, for devices that are filled by many programs only: parts are reduced side by
// side, and what comes before each of them is added.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Low floats are added up in float32 on the way. Other trees, not other values: the parts are as many for a shape,
/// whatever the device holds.
Ir split_cumulative(Ir ir);

}  // namespace weft::compiler
