#pragma once
// What compile() returns, as other transforms see it.
#include <memory>
#include <vector>

#include "compiler/program.h"
#include "weft/transforms.h"

namespace weft::transforms {

/// Returns the program that a call of `fun` with these arguments runs, without running it; null where nothing is
/// computed. A function that compile() has not made is compiled for it.
std::shared_ptr<const compiler::Program> program_for(const ArrayFunction& fun, const std::vector<array>& arguments);

}  // namespace weft::transforms
