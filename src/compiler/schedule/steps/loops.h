#pragma once
// Steps that divide the loops of a group of rows: what they build is a Schedule, and every Schedule is built by some.
// Axes of a group are named d0, d1, … in the order of its domain, reduced ones r0, r1, …, and c0 is the number of the
// part where a map is cut at the borders of a concat.
#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "weft/schedule/steps.h"

namespace weft::compiler {

/// An axis that steps may name.
struct NamedAxis {
  std::string name;
  int64_t extent = 1;  // a symbol at its bound
  bool reduced = false;
};

/// Returns the axes of the group's domain by position. `cut`: the position of the axis that numbers parts; -1: none.
std::vector<NamedAxis> axes_of(const Group& group, int cut = -1);
/// Returns the axes as messages list them: "d0 (48), r0 (1200)".
std::string to_string(const std::vector<NamedAxis>& axes);

/// Returns whether a step divides loops, or concerns the whole of them (guard, any_length).
bool divides_loops(schedule::Kind kind);
/// Returns whether a step names c0.
bool names_cut(const schedule::Steps& steps);

/// What steps have made of axes: one number, and the parts of it, outermost first.
struct DividedAxis {
  struct Part {
    std::string name;
    int64_t extent = 1;
    std::optional<Level> level = {};
  };
  std::vector<int> axes;
  std::vector<Part> parts;
};
/// Returns what steps make of the axes, in their order. Throws as schedule_by_steps does.
std::vector<DividedAxis> divided_axes(const schedule::Steps& steps, const std::vector<NamedAxis>& axes);

/// Builds the schedule that the steps say for a domain; steps of other kinds are passed over. Its extents are set; it
/// is not checked by why_illegal. Throws std::invalid_argument "[schedule] STEP: …" where an axis is unknown, has been
/// divided or bound already, or the machine's kernels have no form for what the axes are bound to.
Schedule schedule_by_steps(const schedule::Steps& steps, const std::vector<NamedAxis>& axes);

/// Returns steps that build the schedule from these axes.
schedule::Steps steps_of(const Schedule& schedule, const std::vector<NamedAxis>& axes);

}  // namespace weft::compiler
