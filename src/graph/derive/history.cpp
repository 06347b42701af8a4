// A snapshot of the graph of some outputs, for the walks of derivatives and batching.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "graph/build.h"
#include "graph/derive/derive.h"

namespace weft::graph {

Value alias(const Value& value) {
  Attrs attrs;
  attrs.shape = value.shape();
  return make(Op::reshape, {value}, std::move(attrs));
}

Values Step::outputs() const {
  Values all;
  for (int k = 0; k < node->outputs(); ++k) all.push_back({node, k});
  return all;
}

std::vector<Step> history(std::span<const Value> outputs, std::span<const Value> targets, bool nested) {
  std::vector<Step> steps;
  std::unordered_set<const Node*> useful;
  for (const Value& t : targets) useful.insert(t.node.get());
  std::shared_lock lock(structure());
  for (std::shared_ptr<Node>& node : nested ? topological(outputs) : topological(outputs, targets)) {
    Step step{std::move(node), {}};
    if (!step.node->storage(0)) step.inputs = step.node->inputs();
    step.depends =
        useful.contains(step.node.get()) || std::any_of(step.inputs.begin(), step.inputs.end(),
                                                        [&](const Value& v) { return useful.contains(v.node.get()); });
    if (step.depends) useful.insert(step.node.get());
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace weft::graph
