#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "compiler/plan/arena.h"
#include "compiler/plan/passes.h"

namespace weft::compiler {

namespace {

class Allocation {
 public:
  Allocation(StepPlan plan, const Ir& ir) : plan_(std::move(plan)), ir_(ir) {}

  StepPlan run() {
    check(!plan_.placed, "allocate", "the plan's buffers have locations already");
    place_inputs();
    place_outputs();
    place_arena();
    for (Step& step : plan_.steps) fill_in(step);
    plan_.placed = true;
    return std::move(plan_);
  }

 private:
  void place_inputs() {
    for (size_t k = 0; k < ir_.inputs.size(); ++k)
      plan_.locations[ir_.inputs[k]] = {Location::In::input, static_cast<int>(k), 0};
  }

  /// A result that lies in an input, or in an earlier result, stays there. All others get buffers of their own.
  void place_outputs() {
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      OutputPlan& out = plan_.outputs[k];
      const auto [it, fresh] =
          plan_.locations.try_emplace(out.buffer, Location{Location::In::output, static_cast<int>(k), 0});
      out.location = it->second;
      out.owns = fresh;
      out.bytes = fresh ? buffer_bytes(plan_, ir_, out.buffer) : 0;
    }
  }

  void place_arena() {
    std::map<NodeId, Lifetime> lifetimes;
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      for (const std::vector<NodeId>& nodes : plan_.steps[s].nodes)
        for (const NodeId node : nodes) {
          if (plan_.locations.contains(node)) continue;
          const auto now = static_cast<int>(s);
          const auto [it, fresh] =
              lifetimes.try_emplace(node, Lifetime{std::max<int64_t>(buffer_bytes(plan_, ir_, node), 1), now, now, -1});
          it->second.last = now;
        }
    std::vector<Lifetime> list;
    for (const auto& [node, lifetime] : lifetimes) list.push_back(lifetime);
    plan_.live_bytes = live_bytes(list);
    plan_.arena_bytes = assign_offsets(list);
    size_t k = 0;
    for (const auto& [node, lifetime] : lifetimes) plan_.locations[node] = {Location::In::arena, 0, list[k++].offset};
  }

  void fill_in(Step& step) const {
    for (Traffic& t : step.traffic) t.location = plan_.locations.at(t.node);
    for (size_t s = 0; s < step.segments.size(); ++s)
      for (const NodeId node : step.nodes[s]) step.segments[s].buffers.push_back(plan_.locations.at(node));
    if (!step.segments.empty()) return;
    for (size_t k = 0; k < step.nodes[0].size(); ++k) {
      step.operands.push_back(plan_.locations.at(step.nodes[0][k]));
      if (!step.offsets.empty()) step.operands.back().offset += step.offsets[k];
    }
  }

  StepPlan plan_;
  const Ir& ir_;
};

}  // namespace

StepPlan allocate(StepPlan plan, const Ir& ir) { return Allocation(std::move(plan), ir).run(); }

}  // namespace weft::compiler
