// Forward accumulation: walks from the targets to the outputs, each node once, after its inputs.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/build.h"
#include "graph/derive/derive.h"

namespace weft::graph {
namespace {

Values push_forward_body(const Node& node, std::span<const Value> inputs, std::span<const Value> tangents) {
  Values aliases;
  for (const Value& v : inputs) aliases.push_back(alias(v));
  return push_forward(node.attrs().composite->body(aliases), aliases, tangents);
}

Values output_tangents(const Step& step, const Values& tangents) {
  const Node& node = *step.node;
  Values result;
  if (node.op() == Op::composite) {
    const auto& own = node.attrs().composite->jvp;
    result = own ? own(step.inputs, step.outputs(), tangents) : push_forward_body(node, step.inputs, tangents);
  } else {
    const auto& rule = row(node.op()).jvp;
    if (!rule.rule) return Values(static_cast<size_t>(node.outputs()));
    result = rule.rule(node, step.inputs, step.outputs(), tangents);
  }
  check(result.size() == static_cast<size_t>(node.outputs()), "jvp",
        std::string(row(node.op()).name) + " gave another number of tangents than it has results");
  for (size_t k = 0; k < result.size(); ++k) {
    const Type& type = node.types()[k];
    check(!result[k] || result[k].type() == type, "jvp",
          "a tangent of type " + (result[k] ? to_string(result[k].type()) : "") + " for a value of type " +
              to_string(type));
  }
  return result;
}

}  // namespace

Values push_forward(std::span<const Value> outputs, std::span<const Value> targets, std::span<const Value> tangents) {
  std::unordered_map<const Node*, Values> known;
  for (size_t k = 0; k < targets.size(); ++k) {
    Values& slots = known[targets[k].node.get()];
    slots.resize(static_cast<size_t>(targets[k].node->outputs()));
    if (!tangents[k]) continue;
    check(
        tangents[k].type() == targets[k].type(), "jvp",
        "a tangent of type " + to_string(tangents[k].type()) + " for a value of type " + to_string(targets[k].type()));
    slots[static_cast<size_t>(targets[k].index)] = tangents[k];
  }
  const auto of = [&](const Value& v) {
    const auto found = known.find(v.node.get());
    return found == known.end() ? Value{} : found->second[static_cast<size_t>(v.index)];
  };
  for (const Step& step : history(outputs, targets)) {
    if (!step.depends || step.inputs.empty() || known.contains(step.node.get())) continue;
    Values arriving;
    for (const Value& input : step.inputs) arriving.push_back(of(input));
    if (std::any_of(arriving.begin(), arriving.end(), [](const Value& t) { return static_cast<bool>(t); }))
      known[step.node.get()] = output_tangents(step, arriving);
  }
  Values result;
  for (const Value& v : outputs) result.push_back(of(v));
  return result;
}

}  // namespace weft::graph
