#include "compiler/plan/loop_carry.h"

#include <algorithm>

namespace weft::compiler {

namespace {

using Kind = CarryBuffer::Kind;

/// Returns the first stacked result of a body that is `value`, or 0, which is no stacked result of a loop with a carry.
size_t stack_of(const graph::Control& c, const graph::Value& value) {
  const graph::Values& results = c.bodies.back().outputs;
  const auto found = std::find(results.begin() + c.carry, results.end(), value);
  return found == results.end() ? 0 : static_cast<size_t>(found - results.begin());
}

CarryBuffer buffer_for(const graph::Control& c, size_t k) {
  const graph::Graph& body = c.bodies.back();
  const graph::Value &before = body.inputs[static_cast<size_t>(c.constants) + k], &after = body.outputs[k];
  if (before == after) return {};
  if (const size_t stack = stack_of(c, after)) return {Kind::stacked_after, stack};
  if (const size_t stack = stack_of(c, before)) return {Kind::stacked_before, stack};
  return {};
}

}  // namespace

LoopBody::LoopBody(const graph::Control& control) {
  const graph::Graph& body = control.bodies.back();
  std::vector<bool> written(body.outputs.size(), true);
  for (size_t k = 0; k < static_cast<size_t>(control.carry); ++k) {
    carry.push_back(buffer_for(control, k));
    if (carry[k].kind == Kind::stacked_after) written[k] = false;
    if (carry[k].kind == Kind::stacked_before) written[carry[k].stack] = false;
  }
  source.graph.inputs = body.inputs;
  for (size_t k = 0; k < body.outputs.size(); ++k) {
    const auto output = static_cast<int>(source.graph.outputs.size());
    output_of.push_back(written[k] ? output : -1);
    if (!written[k]) continue;
    source.graph.outputs.push_back(body.outputs[k]);
    if (k < carry.size() && carry[k].kind == Kind::in_place)
      source.updates.push_back({output, static_cast<int>(control.constants) + static_cast<int>(k), true});
  }
}

void LoopBody::settle(const Program& program, const graph::Control& control) {
  for (size_t k = 0; k < carry.size(); ++k)
    if (carry[k].kind == Kind::in_place && program.input_of(static_cast<size_t>(output_of[k])) !=
                                               static_cast<int>(control.constants) + static_cast<int>(k))
      carry[k].kind = Kind::alternating;
}

}  // namespace weft::compiler
