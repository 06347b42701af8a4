#pragma once
// Checks the finished plan of a Program against the groups that it runs.
#include "compiler/plan/steps.h"

namespace weft::compiler {

/// Verifies a plan in near linear time in the number of buffers. Throws internal_error "[verify] RULE: step S (NAME)…"
/// if a rule is broken:
///
///   - exactly one step runs each group, after the groups that it waits for;
///   - a kernel has a buffer for each parameter, of its dtype and at the planned location of its node;
///   - a kernel's written parameters are its groups' results, and nothing else;
///   - the arrays of one step do not overlap in the arena, and each still holds there what a step reads;
///   - inputs are written only if they are updated;
///   - results that leave the program are not in the arena, and hold their values at the end.
void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const StepPlan& plan);

}  // namespace weft::compiler
