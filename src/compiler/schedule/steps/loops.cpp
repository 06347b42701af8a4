#include "compiler/schedule/steps/loops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::compiler {

using schedule::Kind;
using schedule::Step;
using schedule::Steps;

std::vector<NamedAxis> axes_of(const Group& group, int cut) {
  std::vector<NamedAxis> out;
  int rows = 0, reduced = 0;
  for (size_t k = 0; k < group.domain.size(); ++k) {
    const DomainVariable& v = group.domain[k];
    const std::string name = static_cast<int>(k) == cut ? "c0"
                             : v.inner                  ? fmt::format("r{}", reduced++)
                                                        : fmt::format("d{}", rows++);
    out.push_back({name, v.extent.bound(), v.inner});
  }
  return out;
}

std::string to_string(const std::vector<NamedAxis>& axes) {
  std::string out;
  for (const NamedAxis& axis : axes) out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", axis.name, axis.extent);
  return out.empty() ? "none" : out;
}

bool divides_loops(Kind kind) { return kind <= Kind::any_length; }

bool names_cut(const Steps& steps) {
  return std::ranges::any_of(steps.list(), [](const Step& step) {
    return divides_loops(step.kind) && std::ranges::find(step.axes, "c0") != step.axes.end();
  });
}

namespace {

using Loop = DividedAxis::Part;

/// Axes that are one number, and the loops that its digits are, outermost first.
struct LoopNest {
  std::vector<int> axes;
  std::vector<Loop> loops;
  bool reduced = false;
  /// Returns whether no step has named it.
  bool untouched() const { return loops.size() == 1 && !loops[0].level; }
  bool on(Level level) const {
    return std::ranges::any_of(loops, [&](const Loop& l) { return l.level.value_or(Level::serial) == level; });
  }
};

struct LoopAt {
  size_t nest, loop;
};

int64_t parts_of(int64_t extent, int64_t factor) { return (extent + factor - 1) / factor; }

class LoopSteps {
 public:
  explicit LoopSteps(const std::vector<NamedAxis>& axes) : axes_(axes) {
    for (size_t k = 0; k < axes.size(); ++k)
      nests_.push_back({{static_cast<int>(k)}, {{axes[k].name, axes[k].extent, {}}}, axes[k].reduced});
  }

  Schedule run(const Steps& steps) {
    apply_all(steps);
    return finish();
  }

  std::vector<DividedAxis> divided(const Steps& steps) {
    apply_all(steps);
    std::vector<DividedAxis> out;
    for (const LoopNest& nest : nests_) out.push_back({nest.axes, nest.loops});
    return out;
  }

 private:
  void apply_all(const Steps& steps) {
    for (const Step& step : steps.list())
      if (divides_loops(step.kind)) step_ = &step, apply(step);
    step_ = nullptr;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw_invalid("schedule", (step_ ? schedule::to_string(*step_) + ": " : "") + what);
  }

  std::string loops_text() const {
    std::string out;
    for (const LoopNest& nest : nests_)
      for (const Loop& l : nest.loops) out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", l.name, l.extent);
    return out.empty() ? "none" : out;
  }

  LoopAt find(const std::string& name) const {
    for (size_t n = 0; n < nests_.size(); ++n)
      for (size_t l = 0; l < nests_[n].loops.size(); ++l)
        if (nests_[n].loops[l].name == name) return {n, l};
    refuse(fmt::format("there is no axis {}: the axes here are {}", name, loops_text()));
  }

  /// Finds a loop that is not bound yet.
  LoopAt open(const std::string& name) const {
    const LoopAt at = find(name);
    if (nests_[at.nest].loops[at.loop].level)
      refuse(fmt::format("axis {} is bound already: divide an axis before it is bound", name));
    return at;
  }

  Loop& loop(LoopAt at) { return nests_[at.nest].loops[at.loop]; }

  void check_new(const std::string& name) const {
    for (const LoopNest& nest : nests_)
      for (const Loop& l : nest.loops)
        if (l.name == name) refuse(fmt::format("there is an axis {} already: choose another name", name));
  }

  void apply(const Step& step) {
    switch (step.kind) {
      case Kind::split: return split(step.axes[0], step.numbers[0], step.makes[0], step.makes[1]);
      case Kind::fuse: return fuse(step.axes, step.makes[0]);
      case Kind::reorder: return reorder(step.axes);
      case Kind::tile:
        split(step.axes[0], step.numbers[0], step.makes[0], step.makes[2]);
        split(step.axes[1], step.numbers[1], step.makes[1], step.makes[3]);
        return reorder(step.makes);
      case Kind::bind: return bind(step.axes[0], level_of(step.word));
      case Kind::vectorize: return bind(step.axes[0], Level::lanes);
      case Kind::unroll: return bind(step.axes[0], Level::unroll);
      case Kind::pad: return pad(step.axes[0], step.numbers[0]);
      case Kind::guard: guarded_ = true; return;
      default: any_length_ = true; return;
    }
  }

  static Level level_of(const std::string& word) {
    return word == "program"   ? Level::grid
           : word == "cluster" ? Level::cluster
           : word == "warp"    ? Level::warps
           : word == "serial"  ? Level::serial
                               : Level::lanes;
  }

  void split(const std::string& name, int64_t factor, const std::string& outer, const std::string& inner) {
    const LoopAt at = open(name);
    for (const std::string& made : {outer, inner})
      if (made != name) check_new(made);
    std::vector<Loop>& loops = nests_[at.nest].loops;
    loops[at.loop] = {outer, parts_of(loops[at.loop].extent, factor), {}};
    loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(at.loop) + 1, {inner, factor, {}});
  }

  void pad(const std::string& name, int64_t extent) {
    Loop& l = loop(open(name));
    if (extent < l.extent)
      refuse(fmt::format("axis {} has {} elements already: pad it to that or to more", name, l.extent));
    l.extent = extent;
  }

  void bind(const std::string& name, Level level) { loop(open(name)).level = level; }

  /// Makes one number of whole axes, or one digit of digits that follow each other.
  void fuse(const std::vector<std::string>& names, const std::string& made) {
    if (std::ranges::find(names, made) == names.end()) check_new(made);
    std::vector<LoopAt> at;
    for (const std::string& name : names) at.push_back(open(name));
    const bool whole = std::ranges::all_of(at, [&](LoopAt a) { return nests_[a.nest].loops.size() == 1; });
    if (whole) return fuse_nests(at, made);
    for (size_t k = 0; k < at.size(); ++k)
      if (at[k].nest != at[0].nest || at[k].loop != at[0].loop + k)
        refuse(
            "only whole axes, or parts of one axis that follow each other, are fused: fuse axes before they are "
            "split");
    std::vector<Loop>& loops = nests_[at[0].nest].loops;
    Loop fused{made, 1, {}};
    for (const LoopAt& a : at) fused.extent *= loops[a.loop].extent;
    const auto first = loops.begin() + static_cast<std::ptrdiff_t>(at[0].loop);
    *first = fused;
    loops.erase(first + 1, first + static_cast<std::ptrdiff_t>(at.size()));
  }

  void fuse_nests(const std::vector<LoopAt>& at, const std::string& made) {
    LoopNest fused{{}, {{made, 1, {}}}};
    for (const LoopAt& a : at) {
      const LoopNest& nest = nests_[a.nest];
      fused.axes.insert(fused.axes.end(), nest.axes.begin(), nest.axes.end());
      fused.loops[0].extent *= nest.loops[0].extent;
      fused.reduced = nest.reduced;
      if (nest.reduced != nests_[at[0].nest].reduced)
        refuse("a reduced axis is fused with one that is not: fuse axes d… and axes r… each among themselves");
    }
    std::vector<size_t> gone;
    for (const LoopAt& a : at) gone.push_back(a.nest);
    const size_t where = gone.empty() ? nests_.size() : *std::ranges::min_element(gone);
    std::vector<LoopNest> left;
    for (size_t k = 0; k <= nests_.size(); ++k) {
      if (k == where) left.push_back(fused);
      if (k < nests_.size() && std::ranges::find(gone, k) == gone.end()) left.push_back(nests_[k]);
    }
    nests_ = std::move(left);
  }

  void reorder(const std::vector<std::string>& names) {
    std::vector<size_t> wanted;
    std::vector<LoopAt> at;
    for (const std::string& name : names) at.push_back(find(name));
    for (size_t k = 0; k < at.size(); ++k) {
      for (size_t j = 0; j < k; ++j)
        if (at[j].nest == at[k].nest && at[j].loop > at[k].loop)
          refuse(fmt::format("{} and {} are parts of one axis, whose order the levels give: bind them instead",
                             names[j], names[k]));
      if (std::ranges::find(wanted, at[k].nest) == wanted.end()) wanted.push_back(at[k].nest);
    }
    std::vector<size_t> positions = wanted;
    std::ranges::sort(positions);
    std::vector<LoopNest> moved = nests_;
    for (size_t k = 0; k < wanted.size(); ++k) moved[positions[k]] = nests_[wanted[k]];
    nests_ = std::move(moved);
  }

  static AxisDivision division_of(const LoopNest& nest, Level untouched) {
    AxisDivision out;
    out.axes = nest.axes;
    for (const Loop& l : nest.loops) {
      const Level level = l.level.value_or(nest.untouched() ? untouched : Level::serial);
      if (!out.parts.empty() && out.parts.back().level == level) out.parts.back().count *= l.extent;
      else out.parts.push_back({level, l.extent});
    }
    return out;
  }

  /// Makes one division of nests that are not divided, and of at most one that is.
  AxisDivision joined(const std::vector<const LoopNest*>& nests, Level untouched, const char* what) const {
    if (nests.size() == 1) return division_of(*nests[0], untouched);
    AxisDivision out{{}, 1, {{untouched, 1}}};
    for (const LoopNest* nest : nests) {
      if (nest->loops.size() > 1 || nest->loops[0].level.value_or(untouched) != untouched)
        refuse(fmt::format("axis {} is divided beside other axes {}: fuse them into one first", nest->loops[0].name,
                           what));
      out.axes.insert(out.axes.end(), nest->axes.begin(), nest->axes.end());
      out.parts[0].count *= nest->loops[0].extent;
    }
    return out;
  }

  const LoopNest& lane_nest() const {
    const LoopNest* found = nullptr;
    for (const LoopNest& nest : nests_) {
      if (!nest.on(Level::lanes)) continue;
      if (found) refuse("two axes are vectorized: a kernel of rows has one tile; fuse the axes before");
      found = &nest;
    }
    if (!found) refuse(fmt::format("no axis is vectorized: vectorize one of {}", loops_text()));
    return *found;
  }

  Schedule finish() {
    Schedule out;
    const LoopNest& lanes = lane_nest();
    const bool reduces = std::ranges::any_of(axes_, &NamedAxis::reduced);
    out.kind = !reduces ? RowClass::map : lanes.reduced ? RowClass::row : RowClass::column;
    out.lanes = division_of(lanes, Level::lanes);
    std::vector<const LoopNest*> programs, loops, cut;
    for (const LoopNest& nest : nests_) {
      if (&nest == &lanes) continue;
      const bool repeats = out.kind == RowClass::map && !nest.untouched() && nest.on(Level::serial);
      const bool parts = out.kind == RowClass::map && nest.loops.size() == 1 && nest.on(Level::unroll);
      (nest.reduced || repeats ? loops : parts ? cut : programs).push_back(&nest);
    }
    if (out.kind == RowClass::row && !loops.empty())
      refuse(fmt::format("{} is reduced and not among the lanes: fuse all axes r…", loops[0]->loops[0].name));
    out.programs = joined(programs, Level::grid, "of programs");
    if (!loops.empty()) out.loop = joined(loops, Level::serial, "of a loop");
    if (cut.size() > 1) refuse("two axes are unrolled whole: a map is cut along one axis");
    if (!cut.empty()) out.cut = division_of(*cut[0], Level::unroll);
    out.guarded_tiles = guarded_, out.any_length = any_length_;
    for (AxisDivision* d : {&out.programs, &out.lanes, &out.loop, &out.cut})
      for (const int axis : d->axes) d->extent *= axes_[static_cast<size_t>(axis)].extent;
    return out;
  }

  const std::vector<NamedAxis>& axes_;
  std::vector<LoopNest> nests_;
  const Step* step_ = nullptr;
  bool guarded_ = false, any_length_ = false;
};

/// What the parts of a division are called, by level; the first is that of copies that are a share apart.
struct PartNames {
  const char* whole;
  const char* apart;
  std::array<const char*, level_count> of_level;
};
constexpr PartNames program_names{"rows", "twin", {"program", "", "", "", "row", ""}};
constexpr PartNames lane_names{"lanes", "half", {"block", "cluster", "", "step", "copy", "lane"}};
constexpr PartNames loop_names{"loop", "part", {"chunk", "", "warp", "turn", "side", ""}};
constexpr PartNames cut_names{"parts", "part", {}};

Steps bound(const Steps& steps, const std::string& name, Level level) {
  switch (level) {
    case Level::grid: return steps.bind(name, "program");
    case Level::cluster: return steps.bind(name, "cluster");
    case Level::warps: return steps.bind(name, "warp");
    case Level::serial: return steps.bind(name, "serial");
    case Level::unroll: return steps.unroll(name);
    default: return steps.vectorize(name);
  }
}

/// Appends the steps of one division.
Steps with_division(Steps steps, const AxisDivision& d, const PartNames& names, const std::vector<NamedAxis>& axes) {
  std::string name = names.whole;
  if (d.axes.size() == 1) {
    name = axes[static_cast<size_t>(d.axes[0])].name;
  } else {
    std::vector<std::string> fused;
    for (const int axis : d.axes) fused.push_back(axes[static_cast<size_t>(axis)].name);
    steps = steps.fuse(fused, name);
  }
  std::span<const AxisPart> parts = d.parts;
  const auto divide = [&](int64_t factor, const std::string& outer, Level level) {
    const std::string inner = parts.size() == 2 ? names.of_level[static_cast<size_t>(parts[1].level)]
                                                : fmt::format("{}_of_{}", names.whole, outer);
    steps = bound(steps.split(name, factor, {outer, inner}), outer, level);
    name = inner, parts = parts.subspan(1);
  };
  int64_t covered = 1;
  for (const AxisPart& part : parts.subspan(d.copies_apart() > 1 ? 1 : 0)) covered *= part.count;
  if (d.copies_apart() > 1) divide(d.share(), names.apart, Level::unroll);
  if (parts_of(d.share(), covered / parts[0].count) != parts[0].count) steps = steps.pad(name, covered);
  while (parts.size() > 1) {
    covered /= parts[0].count;
    divide(covered, names.of_level[static_cast<size_t>(parts[0].level)], parts[0].level);
  }
  return bound(steps, name, parts[0].level);
}

}  // namespace

std::vector<DividedAxis> divided_axes(const Steps& steps, const std::vector<NamedAxis>& axes) {
  return LoopSteps(axes).divided(steps);
}

Schedule schedule_by_steps(const Steps& steps, const std::vector<NamedAxis>& axes) {
  return LoopSteps(axes).run(steps);
}

Steps steps_of(const Schedule& schedule, const std::vector<NamedAxis>& axes) {
  Steps steps;
  const auto add = [&](const AxisDivision& d, const PartNames& names) {
    if (!d.parts.empty()) steps = with_division(std::move(steps), d, names, axes);
  };
  const bool one_program = schedule.programs == AxisDivision{{}, 1, {{Level::grid, 1}}};
  if (!one_program) add(schedule.programs, program_names);
  add(schedule.loop, loop_names);
  add(schedule.cut, cut_names);
  add(schedule.lanes, lane_names);
  if (schedule.guarded_tiles) steps = steps.guard();
  if (schedule.any_length) steps = steps.any_length();
  return steps;
}

}  // namespace weft::compiler
