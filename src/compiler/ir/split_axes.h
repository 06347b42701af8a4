#pragma once
// Splits axes of a group's domain in two, so that indices which divide an axis become plain sums of variables.
#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Returns whether a group reduces nothing and all axes of its domain have a static extent that is not 0.
bool is_static_map(const Group& group);

/// Replaces variable k of the domain by digits: (v / extent, v % extent). The extent divides that of the variable.
void split_variable(Group& group, size_t k, int64_t extent);

/// Splits a variable of the domain that e divides, at a divisor of its extent. Returns whether there was one.
bool split_divided(Group& group, ix::Expr e);

}  // namespace weft::compiler
