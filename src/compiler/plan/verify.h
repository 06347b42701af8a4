#pragma once
// Checks the plan of a Program, before and after its buffers are placed, against the groups that it runs.
#include "compiler/plan/steps.h"

namespace weft::compiler {

/// Verifies a plan in near linear time in the number of buffers. Throws internal_error "[verify] RULE: step S (NAME)…"
/// if a rule is broken:
///
///   - exactly one step runs each group, after the groups that it waits for;
///   - a kernel has a buffer for each parameter, of its dtype;
///   - a kernel's written parameters are its groups' results, and nothing else;
///   - inputs are written only if they are updated;
///   - results that leave the program hold their values at the end;
///
/// before `allocate`, when a buffer is known by its node alone:
///
///   - nothing has a location, and no parameter is marked constant;
///
/// and after it:
///
///   - a buffer lies at the planned location of its node, wherever a step names it;
///   - the arrays of one step do not overlap in the arena, and each still holds there what a step reads;
///   - results that leave the program are not in the arena.
void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const StepPlan& plan);

}  // namespace weft::compiler
