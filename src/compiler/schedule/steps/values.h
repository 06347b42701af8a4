#pragma once
// Steps of values: where a value is computed and stored, into how many parts a reduction is split, and the steps that
// each group gets by the values that it computes.
#include <optional>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/schedule/schedule.h"
#include "target/target.h"
#include "weft/schedule/steps.h"

namespace weft::compiler {

/// Marks the values that steps store (compute_root, and steps of loops of rows), or compute where they are read
/// (inline, compute_at). Throws std::invalid_argument "[schedule] STEP: …" for a value that cannot be.
Ir place_scheduled_values(Ir ir);

/// Splits the reductions that steps split (split_reduce): each is one of parts, and one of what they give. Throws
/// std::invalid_argument where the value is not made by one reduction, or the parts do not divide its axis.
Ir split_scheduled_reductions(Ir ir);

/// Returns whether steps want a sum and its frame in one pass (online_softmax) or not; nothing where they are silent.
std::optional<bool> wants_single_pass(const Ir& ir, NodeId sum);
/// Throws std::invalid_argument where steps want that of a value that is made of no sum with a frame, nor of attention.
void check_single_pass(const Ir& ir);

/// The steps of a group, those of its values one behind another.
struct GroupSteps {
  GroupId group;
  schedule::Steps steps;  // those of loops, staging and launching
};
/// Returns the groups that have steps. Throws std::invalid_argument where a value is not computed as its steps say:
/// `inline` and `compute_at` of a value that has to be stored or is computed elsewhere, steps of loops of a value that
/// several kernels compute, two lists for one kernel.
std::vector<GroupSteps> scheduled_groups(const Ir& ir, const Grouping& grouping);

/// Returns the axes of the group that steps name, as the target's kernels divide it.
std::string axes_text(const Ir& ir, const Grouping& grouping, const Group& group, const target::Target& target);

/// Builds the schedule of a group of rows. Throws std::invalid_argument with the reason where the group cannot have it
/// on the target.
Schedule schedule_rows_by(const schedule::Steps& steps, const Ir& ir, const Grouping& grouping, const Group& group,
                          target::Target& target);
/// Returns steps that build the kernel of a group of rows, by the given schedule or the rules'; parts of one element
/// are left out.
schedule::Steps steps_of_rows(const std::optional<Schedule>& given, const Ir& ir, const Grouping& grouping,
                              const Group& group, target::Target& target);

}  // namespace weft::compiler
