#include <set>
#include <utility>

#include "base/error.h"
#include "compiler/plan/passes.h"

namespace weft::compiler {

namespace {

bool is_input(const Location& at) { return at.in == Location::In::input; }

/// Returns the inputs that some step writes, by their indices.
std::set<int> written_inputs(const StepPlan& plan, const Ir& ir, const Ordering& ordering) {
  std::set<int> out;
  for (const NodeId node : overwritten(ir, ordering))
    if (const auto it = plan.locations.find(node); it != plan.locations.end() && is_input(it->second))
      out.insert(it->second.index);
  return out;
}

}  // namespace

StepPlan mark_constants(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering) {
  check(plan.placed, "mark_constants", "the plan's buffers have no locations yet");
  const std::set<int> written = written_inputs(plan, ir, ordering);
  std::set<int> so_far;  // inputs that earlier steps write
  for (kernel::Kernel& kernel : plan.kernels)
    for (kernel::Param& p : kernel.params) p.constant = true;
  for (const Step& step : plan.steps) {
    const bool appends_row = !step.groups.empty() && grouping.groups[step.groups[0]].kind == Group::Kind::attention;
    std::set<int> now;  // inputs that this step writes
    for (const StepSegment& segment : step.segments)
      for (size_t k = 0; k < segment.buffers.size(); ++k) {
        kernel::Param& p = plan.kernels[step.kernel].params[k];
        const Location& at = segment.buffers[k];
        const bool input = is_input(at), late = so_far.contains(at.index);
        if (input && p.written) now.insert(at.index);
        const bool is_scalar = input && volume(ir[ir.inputs[static_cast<size_t>(at.index)]].type.shape) == 1;
        p.constant = p.constant && input &&
                     (p.written ? appends_row && !late : !written.contains(at.index) || (is_scalar && !late));
      }
    for (const Location& at : step.operands)
      if (is_input(at) && written.contains(at.index)) now.insert(at.index);
    so_far.merge(now);
  }
  return plan;
}

}  // namespace weft::compiler
