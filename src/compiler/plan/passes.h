#pragma once
// The passes over a StepPlan, in the order of the table in pipeline.cpp. Each returns a new plan; no buffer has a
// location before `allocate`.
#include "compiler/plan/steps.h"
#include "compiler/tune/groups.h"

namespace weft::compiler {

/// Lowers each group to one step, in order: a launch of a kernel, a library call or a nested program; copies stand
/// beside them. Equal kernels are one. Throws std::invalid_argument for a routine that the target does not have.
StepPlan lower_groups(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const TunedGroups& tuned,
                      target::Target& target, const Policy& policy);

/// Makes independent launches of one kernel one launch, with a segment for each of them (arXiv:2007.01277 calls it
/// horizontal fusion): there or here, where no step between them stands in the way. Only results that are kept anyway,
/// or small ones, are moved: others would live longer for it.
StepPlan horizontal_fusion(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering);

/// Makes launches of single programs that follow each other one kernel, and drops the kernels that no step launches any
/// longer.
StepPlan vertical_fusion(StepPlan plan);

/// Places every buffer: inputs and results in the caller's memory, all others in an arena by their lifetimes.
StepPlan allocate(StepPlan plan, const Ir& ir);

/// Marks the kernel parameters that a device may read before the step before has ended: those that are bound to nothing
/// but inputs which no step writes. So it may what only later steps write, which is said of single numbers (the
/// position of a token) and of the cache that attention enters its row into.
StepPlan mark_constants(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering);

}  // namespace weft::compiler
