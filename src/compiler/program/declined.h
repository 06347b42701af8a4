#pragma once
// Steps whose library declines after the plan is made: only cuDNN's plans show this, a second after they were begun.
//
// The group behind such a step becomes a small source of its own, in which the region is inlined. The passes compile
// that source, and the steps that they make take the place of the declined step. All other steps stay as they are.
#include "compiler/pipeline.h"

namespace weft::compiler {

/// A group as a source: what it reads from memory are the inputs, its results in memory are the outputs.
struct GroupSource {
  Source source;
  std::vector<int> inputs, outputs;  // nodes of the Ir whose memory they are
};

/// Returns the source of group `group`. Every array is a row-major input or output where its memory is dense, with its
/// axes permuted; a result that takes over an input's memory is an update of it. Regions are inlined all the way down.
GroupSource group_source(const Ir& ir, const Grouping& grouping, const Ordering& ordering, GroupId group);

/// Starts the plans of all library calls in the background.
void begin_calls(const StepPlan& steps);

/// Waits for all library calls, and replaces every step whose call has declined. Returns whether there was one: the new
/// kernels follow those that the plan had, and are not begun yet; the new calls are ready. Throws std::runtime_error
/// where the call is a routine, for which no other code exists.
bool replace_declined(StepPlan& steps, const Ir& ir, const Grouping& grouping, const Ordering& ordering,
                      const PassContext& cx);

}  // namespace weft::compiler
