#pragma once
// Matches an epilogue with what libraries' descriptors can say (kernel::DotDesc): scales, a bias, an activation from
// their list with the value before it, a residual.
#include <string_view>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Sets `asked` and `asked_operands` of a plan, or neither if the descriptor cannot say what the epilogue does.
void ask_library(DotPlan& plan);

/// Returns whether a region of this name is the derivative of an activation that libraries multiply a matmul with.
bool is_library_slope(std::string_view region);

}  // namespace weft::compiler
