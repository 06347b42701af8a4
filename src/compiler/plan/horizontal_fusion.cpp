#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "compiler/plan/passes.h"

namespace weft::compiler {

namespace {

class HorizontalFusion {
 public:
  HorizontalFusion(const StepPlan& plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering)
      : plan_(plan), ir_(ir), grouping_(grouping), ordering_(ordering), position_(grouping.groups.size(), -1) {}

  std::vector<Step> run(std::vector<Step> steps) {
    for (Step& step : steps) {
      const bool launch = step.kind == Step::Kind::launch;
      if (launch && !fills_device(step) && merge(step)) continue;
      if (launch) latest_[step.kernel] = static_cast<int>(steps_.size());
      add(std::move(step));
    }
    // Emptied launches have moved to a later place. A copy runs no group either.
    std::erase_if(steps_, [](const Step& s) { return s.kind == Step::Kind::launch && s.groups.empty(); });
    return std::move(steps_);
  }

 private:
  int64_t bytes(NodeId node) const { return buffer_bytes(plan_, ir_, node); }

  void add(Step step) {
    for (const GroupId g : step.groups) position_[g] = static_cast<int>(steps_.size());
    steps_.push_back(std::move(step));
  }

  /// Returns whether a launch keeps the device busy by itself: few programs that each use many blocks, over much data;
  /// or many products on tensor cores. With others of its kind it would be no faster, and what it reads would live
  /// until the last of them. Products of one launch have their operands described to TMA, those of several have not.
  bool fills_device(const Step& step) const {
    constexpr int64_t much = int64_t{16} << 20, many = 64;
    if (plan_.kernels[step.kernel].any_size && step.segments[0].grid >= many) return true;
    int64_t read = 0;
    for (const NodeId node : grouping_.groups[step.groups[0]].reads) read += bytes(node);
    const std::vector<kernel::Inst>& insts = plan_.kernels[step.kernel].body.insts;
    return read >= much && std::any_of(insts.begin(), insts.end(), [](const kernel::Inst& i) { return i.parallel; });
  }

  /// Returns whether a group's results are kept anyway, or small.
  bool movable(GroupId group) const {
    constexpr int64_t small = 1 << 16;
    const std::vector<Root>& roots = grouping_.groups[group].roots;
    return std::all_of(roots.begin(), roots.end(), [&](const Root& r) {
      return ordering_.buffer_owner[r.node] != r.node || bytes(r.node) <= small;
    });
  }

  /// Returns whether a group waits for the step at `position`.
  bool waits_for(GroupId group, int position) const {
    const std::vector<GroupId>& after = ordering_.after[group];
    return std::any_of(after.begin(), after.end(), [&](GroupId before) { return position_[before] == position; });
  }

  /// Returns whether the step at `position` may run after all that follow it so far.
  bool may_wait(int position) const {
    for (size_t k = static_cast<size_t>(position) + 1; k < steps_.size(); ++k) {
      if (steps_[k].kind == Step::Kind::copy) return false;
      for (const GroupId group : steps_[k].groups)
        if (waits_for(group, position)) return false;
    }
    return true;
  }

  /// Moves the segments of a launch behind those of another.
  static void join(Step& into, Step& from) {
    const auto append = [](auto& to, auto& more) {
      to.insert(to.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
    };
    append(into.segments, from.segments);
    append(into.nodes, from.nodes);
    absorb(into, from);
  }

  /// Joins the launch with an earlier one of its kernel, at either position. Returns whether it is a part of the plan.
  bool merge(Step& step) {
    const auto it = latest_.find(step.kernel);
    const GroupId g = step.groups[0];
    if (it == latest_.end() || begins_with_copies(ordering_, grouping_.groups[g]))
      return false;  // a copied operand ties it to its location
    const int at = it->second;
    Step& earlier = steps_[static_cast<size_t>(at)];
    if (!movable(g) || !movable(earlier.groups[0])) return false;
    int ready = -1;  // the last step that this group waits for
    for (const GroupId before : ordering_.after[g]) ready = std::max(ready, position_[before]);
    if (ready < at) {
      join(earlier, step);
      position_[g] = at;
      return true;
    }
    if (!may_wait(at) || waits_for(g, at)) return false;
    join(step, earlier);
    earlier.groups.clear();  // emptied: dropped at the end
    earlier.segments.clear();
    it->second = static_cast<int>(steps_.size());
    add(std::move(step));
    return true;
  }

  const StepPlan& plan_;
  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& ordering_;
  std::vector<Step> steps_;
  IndexedVector<GroupId, int> position_;    // by group: its step
  std::unordered_map<size_t, int> latest_;  // kernel → the step that a launch of it may join
};

}  // namespace

StepPlan horizontal_fusion(StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering) {
  HorizontalFusion fusion(plan, ir, grouping, ordering);
  plan.steps = fusion.run(std::move(plan.steps));
  return plan;
}

}  // namespace weft::compiler
