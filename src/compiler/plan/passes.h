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

/// Makes independent launches of one kernel one launch, with a segment for each of them (horizontal fusion,
/// arXiv:2007.01277). The joint launch stands where the earlier one stood or where the later one stood: wherever no
/// step between the two depends on it. Only launches move whose results are kept anyway, or are small: others would
/// live longer.
StepPlan horizontal_fusion(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering);

/// Makes launches of single programs that follow each other one kernel, and drops the kernels that no step launches any
/// longer.
StepPlan vertical_fusion(StepPlan plan);

/// Places every buffer: inputs and results in the caller's memory, all others in an arena by their lifetimes.
StepPlan allocate(StepPlan plan, const Ir& ir);

/// Marks the kernel parameters that a device may read before the previous step has ended. A parameter is marked if
/// every launch binds it to an input that no step writes. It is also marked if only later steps write the input, and
/// that is an input of one element (the position of a token) or the KV cache to which an attention launch appends a
/// row.
StepPlan mark_constants(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering);

}  // namespace weft::compiler
