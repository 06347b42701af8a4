#pragma once
// Predicts the time of each step of a plan: the cost model of a launch, with what caches hold from the steps before.
#include <vector>

#include "compiler/plan/steps.h"
#include "compiler/program.h"
#include "compiler/schedule/cost.h"

namespace weft::compiler {

/// Returns for each step how long ago, in bytes of traffic, the memory that it touches was touched before: in a run
/// that follows another one.
std::vector<Reuse> reuse_of(const StepPlan& plan);

/// Returns the prediction of each step, in runs that follow each other. Nested programs have no time of their own:
/// their steps are predicted by their own Programs.
std::vector<Prediction> predict(const StepPlan& plan, const target::Machine& machine, const target::Rates& rates);

}  // namespace weft::compiler
