#pragma once
// Holds the finished plan of a Program against the groups that it runs.
#include "compiler/plan/steps.h"

namespace weft::compiler {

/// Throws internal_error "[verify] RULE: step S (NAME)…" where a rule is broken. Each group is run by one step, in an
/// order that keeps what it waits for before it; a kernel's buffers are as many and of the dtypes of its parameters,
/// lie where the plan has placed their nodes, and are written by nobody but their group; arrays of one step do not
/// overlap in the arena, and each still holds there what a step reads; inputs are written only where they are updated;
/// results that leave the program do not lie in the arena and hold their values at the end. The cost is near linear in
/// the number of buffers.
void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const StepPlan& plan);

}  // namespace weft::compiler
