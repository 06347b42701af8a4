// Reverse accumulation: walks from the outputs to the targets and visits each node once, after all its users.
//
// A cotangent has the type of its value, whatever the dtype: those of integers are integers, as in MLX, and end where
// an operator is discrete. Those of complex numbers are paired with tangents by Re(conj(g) · t):
// graph/complex/complex.h.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "graph/build.h"
#include "graph/complex/complex.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

// Cotangents that have arrived, by node and output.
class Arrived {
 public:
  void add(const Value& value, const Value& cotangent) {
    if (!cotangent) return;
    check(cotangent.type() == value.type(), "grad",
          "a cotangent of type " + to_string(cotangent.type()) + " for a value of type " + to_string(value.type()));
    Values& slots = by_node_[value.node.get()];
    if (slots.empty()) slots.resize(static_cast<size_t>(value.node->outputs()));
    Value& slot = slots[static_cast<size_t>(value.index)];
    slot = !slot ? cotangent : value.dtype() == bool_ ? binary(Op::bit_or, slot, cotangent) : slot + cotangent;
  }
  const Values* of(const Node* node) const {
    const auto found = by_node_.find(node);
    return found == by_node_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<const Node*, Values> by_node_;
};

// Differentiates a composite without a rule through its body, built on aliases so that inputs that depend on each other
// stay separate.
Values pull_back_body(const Node& node, std::span<const Value> inputs, std::span<const Value> cotangents) {
  Values aliases;
  for (const Value& v : inputs) aliases.push_back(alias(v));
  return pull_back(node.attrs().composite->body(aliases), cotangents, aliases);
}

/// Applies the row's own rule. A rule that multiplies by a derivative is written as g · f'(z): to multiply by the
/// conjugate of the derivative, it is applied to conj(g) and its result is conjugated. Rules of rearrangements add
/// elements, which bools cannot: these are counted as integers.
Values rule_cotangents(const VjpRule* rule, const Step& step, const Values& cotangents) {
  const Node& node = *step.node;
  const bool conjugated = multiplies_complex(node);
  const bool counted = node.types()[0].dtype == bool_ && rearranges(node.op());
  if (!conjugated && !counted) return rule(node, step.inputs, step.outputs(), cotangents);
  const auto mapped = [](const Values& values, const auto& f) {
    Values out;
    for (const Value& v : values) out.push_back(v ? f(v) : v);
    return out;
  };
  if (conjugated) return mapped(rule(node, step.inputs, step.outputs(), mapped(cotangents, conjugate)), conjugate);
  const Values counts = mapped(cotangents, [](const Value& v) { return cast(v, int32); });
  return mapped(rule(node, step.inputs, step.outputs(), counts), [](const Value& v) { return cast(v, bool_); });
}

Values input_cotangents(const Step& step, const Values& cotangents) {
  const Node& node = *step.node;
  Values result;
  if (node.op() == Op::composite) {
    const auto& own = node.attrs().composite->vjp;
    result = own ? own(step.inputs, step.outputs(), cotangents) : pull_back_body(node, step.inputs, cotangents);
  } else {
    const auto& rule = row(node.op()).vjp;
    if (!rule.rule) return Values(step.inputs.size());
    result = rule_cotangents(rule.rule, step, cotangents);
  }
  check(result.size() == step.inputs.size(), "grad",
        std::string(row(node.op()).name) + " gave another number of cotangents than it has inputs");
  return result;
}

/// Throws where an index that chooses matrices of a product is computed from a target without stop_gradient.
void refuse_matrix_indices(const std::vector<Step>& steps, std::span<const Value> targets) {
  const auto chooses = [](const Step& step) {
    return step.depends && step.node->op() == Op::composite && step.node->attrs().composite->name == matrix_index_name;
  };
  if (std::none_of(steps.begin(), steps.end(), chooses)) return;
  std::unordered_set<const Node*> reached;
  for (const Value& t : targets) reached.insert(t.node.get());
  for (const Step& step : steps) {
    const bool stops = step.node->op() == Op::stop_gradient;
    const bool reads = std::any_of(step.inputs.begin(), step.inputs.end(),
                                   [&](const Value& v) { return reached.contains(v.node.get()); });
    if (stops || !reads) continue;
    reached.insert(step.node.get());
    if (chooses(step))
      throw_invalid("gather_mm",
                    "there is no derivative by the indices of matrices: put stop_gradient around what they are "
                    "computed from");
  }
}

}  // namespace

Values pull_back(std::span<const Value> outputs, std::span<const Value> cotangents, std::span<const Value> targets,
                 bool nested) {
  Arrived arrived;
  for (size_t k = 0; k < outputs.size(); ++k) arrived.add(outputs[k], cotangents[k]);
  const std::vector<Step> steps = history(outputs, targets, nested);
  refuse_matrix_indices(steps, targets);
  for (size_t k = steps.size(); k-- > 0;) {
    const Step& step = steps[k];
    if (!step.depends || step.inputs.empty()) continue;
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

}  // namespace weft::graph
