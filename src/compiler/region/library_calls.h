#pragma once
// Finds composites that one routine of the target computes as a whole.
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Returns whether the target has a routine for the composite `region` (Composite::call names it) at its extents and
/// dtypes.
bool library_takes_region(const graph::Node& region, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
