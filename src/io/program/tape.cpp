#include "io/program/tape.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "graph/build.h"
#include "graph/calls/kernel_call.h"
#include "graph/control/control.h"

namespace weft::io {

namespace {

using graph::Attrs;
using graph::Node;
using graph::Op;
using graph::Value;
using graph::Values;

/// The lengths that the tape's symbols have where it is replayed.
using Lengths = std::map<const Symbol*, Dim>;

void bind(Lengths& lengths, const Shape& written, const Shape& given) {
  if (written.size() != given.size()) return;
  for (size_t k = 0; k < written.size(); ++k)
    if (written[k].symbol()) lengths.try_emplace(written[k].symbol(), given[k]);
}

Shape bound_shape(const Shape& shape, const Lengths& lengths) {
  Shape out = shape;
  for (Dim& d : out)
    if (d.symbol())
      if (const auto it = lengths.find(d.symbol()); it != lengths.end()) d = it->second;
  return out;
}

/// Returns a region whose body is a tape. Its inputs may have other shapes than those it was written with (with a batch
/// axis in front, for example): then the rules decide whether they fit.
std::shared_ptr<const graph::Composite> region(const Tape::Entry& entry) {
  auto composite = std::make_shared<graph::Composite>();
  composite->name = entry.name;
  composite->key = entry.key;
  composite->call = entry.attrs.call;
  composite->integers = entry.attrs.integers;
  composite->attention = entry.attention;
  composite->body = [body = entry.body](std::span<const Value> inputs) { return replay(*body, inputs); };
  return composite;
}

graph::Graph body_of(const Tape& tape, const Lengths& lengths) {
  graph::Graph body;
  for (const graph::Type& t : tape.inputs)
    body.inputs.push_back(
        graph::parameter({bound_shape(t.shape, lengths), t.dtype}, static_cast<int64_t>(body.inputs.size())));
  body.outputs = replay(tape, body.inputs);
  return body;
}

std::shared_ptr<const graph::Control> control_of(const Tape::Entry::Control& written, const Lengths& lengths) {
  graph::Control control;
  for (const auto& body : written.bodies) control.bodies.push_back(body_of(*body, lengths));
  control.constants = written.constants, control.carry = written.carry,
  control.length = bound_shape({written.length}, lengths)[0];
  control.max_steps = written.max_steps, control.reverse = written.reverse;
  return graph::make_control(std::move(control));
}

/// Checks what the compiler assumes of a region that claims to be attention.
void check_attention(const graph::AttentionRegion& region, const Values& inputs) {
  const size_t key = region.mask ? 4 : 3;
  if (inputs.size() != (region.derivative ? 6u : 3u) + (region.mask ? 1u : 0u) + (region.dropout > 0 ? 1u : 0u))
    throw_invalid("attention", "takes q, k, v, perhaps a mask and a key of dropout, and for its derivative three more");
  if (!(region.dropout >= 0 && region.dropout < 1)) throw_invalid("attention", "the rate of dropout is from 0 to 1");
  if (region.dropout > 0 &&
      (inputs[key].dtype() != uint32 || inputs[key].type().rank() < 1 ||
       inputs[key].type().rank() + 1 > inputs[0].type().rank() || !(inputs[key].shape().back() == 2)))
    throw_invalid("attention", "the key of dropout is two uint32 words, or such a pair for each index of leading axes");
  for (size_t k = 0; k < 3; ++k)
    if (inputs[k].type().rank() < 2 || inputs[k].type().rank() != inputs[0].type().rank() ||
        !is_float(inputs[k].dtype()))
      throw_invalid("attention", "q, k and v are floats of one rank, at least 2");
}

Values replay_entry(const Tape::Entry& entry, Values inputs, const Lengths& lengths) {
  Attrs attrs = entry.attrs;
  attrs.shape = bound_shape(attrs.shape, lengths);
  if (entry.op == Op::composite) {
    if (entry.attention) check_attention(*entry.attention, inputs);
    attrs.composite = region(entry);
    attrs.call.clear();
    attrs.integers.clear();
  }
  if (entry.control) attrs.control = control_of(*entry.control, lengths);
  return graph::make_all(entry.op, std::move(inputs), std::move(attrs));
}

class TapeWriter {
 public:
  Tape write(const graph::Graph& graph) {
    for (const Value& v : graph.inputs) {
      numbers_.emplace(v.node.get(), static_cast<int>(tape_.inputs.size()));
      tape_.inputs.push_back(v.type());
    }
    int next = static_cast<int>(tape_.inputs.size());
    for (const auto& node : graph::topological(graph.outputs)) {
      if (numbers_.contains(node.get())) continue;
      check(node->op() != Op::parameter && !node->storage(0), "export", "a value comes from outside of the function");
      tape_.entries.push_back(entry(*node));
      numbers_.emplace(node.get(), next++);
    }
    for (const Value& v : graph.outputs) tape_.outputs.push_back(ref(v));
    return std::move(tape_);
  }

 private:
  Tape::Ref ref(const Value& v) const { return {numbers_.at(v.node.get()), v.index}; }

  Tape::Entry entry(const Node& node) const {
    Tape::Entry e{node.op(), {}, node.attrs(), {}, {}, nullptr};
    for (const Value& v : node.inputs()) e.inputs.push_back(ref(v));
    if (const auto control = std::exchange(e.attrs.control, nullptr)) {
      e.control.emplace(Tape::Entry::Control{
          {}, control->constants, control->carry, control->max_steps, control->length, control->reverse});
      for (const graph::Graph& body : control->bodies)
        e.control->bodies.push_back(std::make_shared<const Tape>(tape_of(body)));
    }
    if (node.op() != Op::composite) return e;
    const auto region = std::exchange(e.attrs.composite, nullptr);
    e.name = region->name;
    e.key = region->key;
    e.attention = region->attention;
    e.attrs.call = region->call;
    e.attrs.integers = region->integers;
    graph::Graph body;
    for (const Value& v : node.inputs())
      body.inputs.push_back(graph::parameter(v.type(), static_cast<int64_t>(body.inputs.size())));
    body.outputs = region->body(body.inputs);
    e.body = std::make_shared<const Tape>(tape_of(body));
    return e;
  }

  Tape tape_;
  std::unordered_map<const Node*, int> numbers_;
};

}  // namespace

Tape tape_of(const graph::Graph& graph) { return TapeWriter().write(graph); }

Values replay(const Tape& tape, std::span<const Value> inputs) {
  if (inputs.size() != tape.inputs.size())
    throw_invalid("replay", "the function takes " + std::to_string(tape.inputs.size()) + " arrays, got " +
                                std::to_string(inputs.size()));
  Lengths lengths;
  std::vector<Values> values;
  for (size_t k = 0; k < inputs.size(); ++k) {
    bind(lengths, tape.inputs[k].shape, inputs[k].shape());
    values.push_back({inputs[k]});
  }
  const auto find = [&](const Tape::Ref& r) {
    if (r.first < 0 || static_cast<size_t>(r.first) >= values.size() || r.second < 0 ||
        static_cast<size_t>(r.second) >= values[static_cast<size_t>(r.first)].size())
      throw_invalid("replay", "value " + std::to_string(r.first) + "." + std::to_string(r.second) + " does not exist");
    return values[static_cast<size_t>(r.first)][static_cast<size_t>(r.second)];
  };
  for (size_t k = 0; k < tape.entries.size(); ++k) {
    Values operands;
    try {
      for (const Tape::Ref& r : tape.entries[k].inputs) operands.push_back(find(r));
      values.push_back(replay_entry(tape.entries[k], std::move(operands), lengths));
    } catch (const std::logic_error& e) {
      throw std::invalid_argument("entry " + std::to_string(k) + ": " + e.what());
    }
  }
  Values outputs;
  for (const Tape::Ref& r : tape.outputs) outputs.push_back(find(r));
  return outputs;
}

}  // namespace weft::io
