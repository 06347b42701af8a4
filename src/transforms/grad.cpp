// Reverse accumulation: walks from the outputs to the targets, each node once, after everything that uses it.
#include "transforms/grad.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "array/realise.h"
#include "base/error.h"
#include "base/number.h"
#include "graph/build.h"

namespace weft::transforms {
namespace {

using graph::Node;
using graph::Value;
using graph::Values;

// What one node was when the walk began: another thread may evaluate it meanwhile, which drops its inputs.
struct Step {
  std::shared_ptr<Node> node;
  Values inputs;  // empty for leaves and values with storage
  bool leads_to_target = false;
};

std::vector<Step> snapshot(std::span<const Value> outputs, std::span<const Value> targets) {
  std::vector<Step> steps;
  std::unordered_set<const Node*> useful;
  for (const Value& t : targets) useful.insert(t.node.get());
  std::shared_lock lock(graph::structure());
  for (std::shared_ptr<Node>& node : graph::topological(outputs)) {
    Step step{std::move(node), {}, false};
    if (!step.node->storage(0)) step.inputs = step.node->inputs();
    step.leads_to_target = useful.contains(step.node.get()) || std::any_of(step.inputs.begin(), step.inputs.end(), [&](const Value& v) {
      return useful.contains(v.node.get());
    });
    if (step.leads_to_target) useful.insert(step.node.get());
    steps.push_back(std::move(step));
  }
  return steps;
}

// Cotangents that have arrived so far, by node and output.
class Arrived {
 public:
  void add(const Value& value, const Value& cotangent) {
    if (!cotangent || !is_float(value.dtype())) return;
    check(cotangent.type() == value.type(), "grad", "a cotangent of type " + graph::to_string(cotangent.type()) + " for a value of type " +
                                                        graph::to_string(value.type()));
    Values& slots = by_node_[value.node.get()];
    if (slots.empty()) slots.resize(static_cast<size_t>(value.node->outputs()));
    Value& slot = slots[static_cast<size_t>(value.index)];
    slot = slot ? slot + cotangent : cotangent;
  }
  const Values* of(const Node* node) const {
    const auto found = by_node_.find(node);
    return found == by_node_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<const Node*, Values> by_node_;
};

// A composite without a rule of its own: through its body, built on aliases so that inputs which depend on each other stay apart.
Values through_body(const Node& node, std::span<const Value> inputs, std::span<const Value> cotangents) {
  Values aliases;
  for (const Value& v : inputs) aliases.push_back(detail::alias(v));
  return pull_back(node.attrs().composite->body(aliases), cotangents, aliases);
}

Values input_cotangents(const Step& step, const Values& cotangents) {
  const Node& node = *step.node;
  Values outputs;
  for (int k = 0; k < node.outputs(); ++k) outputs.push_back({step.node, k});
  Values result;
  if (node.op() == graph::Op::composite) {
    const auto& own = node.attrs().composite->vjp;
    result = own ? own(step.inputs, outputs, cotangents) : through_body(node, step.inputs, cotangents);
  } else {
    const auto& rule = graph::row(node.op()).vjp;
    if (!rule.rule) return Values(step.inputs.size());
    result = rule.rule(node, step.inputs, outputs, cotangents);
  }
  check(result.size() == step.inputs.size(), "grad", std::string(graph::row(node.op()).name) + " gave another number of cotangents than it has inputs");
  return result;
}

}  // namespace

Values pull_back(std::span<const Value> outputs, std::span<const Value> cotangents, std::span<const Value> targets) {
  Arrived arrived;
  for (size_t k = 0; k < outputs.size(); ++k) arrived.add(outputs[k], cotangents[k]);
  std::vector<Step> steps = snapshot(outputs, targets);
  for (size_t k = steps.size(); k-- > 0;) {
    const Step& step = steps[k];
    if (!step.leads_to_target || step.inputs.empty()) continue;
    const Values* here = arrived.of(step.node.get());
    if (!here) continue;
    const Values flowing = input_cotangents(step, Values(*here));
    for (size_t i = 0; i < flowing.size(); ++i) arrived.add(step.inputs[i], flowing[i]);
  }
  Values result;
  for (const Value& t : targets) {
    const Values* found = arrived.of(t.node.get());
    result.push_back(found ? (*found)[static_cast<size_t>(t.index)] : Value{});
  }
  return result;
}

}  // namespace weft::transforms
