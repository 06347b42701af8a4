#include "compiler/plan/steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::compiler {

int64_t buffer_bytes(const StepPlan& plan, const Ir& ir, NodeId buffer) {
  if (buffer >= ir.size()) return plan.scratch_bytes.at(buffer);
  if (const auto padded = plan.padded_bytes.find(buffer); padded != plan.padded_bytes.end()) return padded->second;
  return volume(ir[buffer].type.shape) * ir[buffer].type.dtype.size();
}

void absorb(Step& step, const Step& other) {
  step.groups.insert(step.groups.end(), other.groups.begin(), other.groups.end());
  step.work += other.work;
  step.cost.bytes += other.cost.bytes;
  step.cost.flops += other.cost.flops;
  step.cost.products += other.cost.products;
  step.cost.operations += other.cost.operations;
  step.cost.row_sums += other.cost.row_sums;
  step.cost.arithmetic = std::max(step.cost.arithmetic, other.cost.arithmetic);
  step.traffic.insert(step.traffic.end(), other.traffic.begin(), other.traffic.end());
  if (step.what.empty()) step.what = other.what;
}

std::set<NodeId> overwritten(const Ir& ir, const Ordering& ordering) {
  std::set<NodeId> out;
  for (const Copy& copy : ordering.last) out.insert(copy.to);
  for (NodeId id = 0; id < ir.size(); ++id)
    if (const NodeId owner = ordering.buffer_owner[id]; owner != id) out.insert(owner);
  return out;
}

namespace {

std::string to_string(const Location& p) {
  static constexpr const char* in[] = {"input", "output", "arena"};
  if (p.in == Location::In::arena) return fmt::format("arena+{}", p.offset);
  return fmt::format("{}{}{}", in[static_cast<int>(p.in)], p.index, p.offset ? fmt::format("+{}", p.offset) : "");
}

/// Lists the buffers of a step's first segment, or its operands.
std::string buffers(const StepPlan& plan, const Step& step) {
  std::string text;
  if (plan.placed) {
    for (const Location& location : step.segments.empty() ? step.operands : step.segments[0].buffers)
      text += " " + to_string(location);
  } else {
    for (const NodeId node : step.nodes[0]) text += fmt::format(" %{}", node);
  }
  return text;
}

}  // namespace

std::string print(const StepPlan& plan) {
  std::string text = plan.placed ? fmt::format("arena {} bytes ({} alive), ", plan.arena_bytes, plan.live_bytes) : "";
  text += fmt::format("{} kernels\n", plan.kernels.size());
  for (const Step& step : plan.steps) {
    text += step.call ? fmt::format("{} by {}", step.name, step.call->name()) : step.name;
    if (step.segments.size() > 1) text += fmt::format(" ({} segments)", step.segments.size());
    text += buffers(plan, step);
    if (!step.segments.empty()) text += fmt::format(" grid {}", step.segments[0].grid);
    text += "\n";
  }
  return text;
}

}  // namespace weft::compiler
