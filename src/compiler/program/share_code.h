#pragma once
// Code that programs of different lengths have in common.
#include <cstddef>

#include "compiler/plan/steps.h"
#include "target/target.h"

namespace weft::compiler {

/// Replaces the plan's kernels from number `first` on by general ones (kernel/family/family.h), where others of their
/// families have been compiled for this target, and appends their numbers to the symbols of launches. Returns whether
/// any was replaced.
bool share_code(StepPlan& plan, size_t first, target::Target& target);

}  // namespace weft::compiler
