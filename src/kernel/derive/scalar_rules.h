#pragma once
// Derivatives of scalar operators in tile IR, from the rows of kernel/operators.
#include <span>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// Returns whether the operator changes smoothly with its arguments; otherwise its derivative is zero.
bool is_smooth(ScalarOp op);

/// Appends g · ∂y/∂args[k] for each argument k and returns them; y is the operator's result. no_value: the derivative
/// is zero. The arguments of select have theirs too, not its condition.
std::vector<Value> derivatives(Builder& b, ScalarOp op, Value g, std::span<const Value> args, Value y);

}  // namespace weft::kernel
