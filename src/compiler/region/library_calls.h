#pragma once
// Regions that a routine of the target answers whole.
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Whether the target has a routine for the composite `region` (Composite::call names it) at its extents and dtypes.
bool library_takes_region(const graph::Node& region, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
