#pragma once
// Schedules of products and of attention: tiles that a program computes, and how it copies, launches and orders them.
// Axes of a product are b0, b1, … (batch), m, n and k; of attention b0, b1, …, q (queries) and k (keys).
#include "compiler/ir/grouping.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/steps/loops.h"
#include "kernels/attention/attention.h"
#include "target/machine.h"

namespace weft::compiler {

std::vector<NamedAxis> product_axes(const DotPlan& plan);
std::vector<NamedAxis> attention_axes(const AttentionPlan& plan);

/// Returns attention's dtype and extents.
kernels::Attention attention_shape(const AttentionPlan& plan, const Numerics& numerics);

/// Returns the schedule that the rules choose for a product that is tiled.
Schedule product_schedule(const DotPlan& plan, const target::Machine& machine);
/// Returns the blocks that the rules choose for attention by the kernels of src/kernels, forward.
Schedule attention_schedule(const AttentionPlan& plan, const Numerics& numerics, const target::Machine& machine);

/// Builds the schedule of a product or of attention from what the rules choose, which stays where steps say nothing.
/// Throws std::invalid_argument "[schedule] STEP: …" where its kernel cannot have it.
Schedule product_by_steps(const schedule::Steps& steps, const Group& group, const target::Machine& machine);
Schedule attention_by_steps(const schedule::Steps& steps, const Group& group, const Numerics& numerics,
                            const target::Machine& machine);

/// Returns the steps that build such a schedule.
schedule::Steps steps_of_tiles(const Schedule& schedule, const std::vector<NamedAxis>& axes);

}  // namespace weft::compiler
