// Tracing for compile(): placeholders in, graph out.
//
// The function's graph ends at values from outside. Data that it refers to becomes an input of the program, by
// reference. A captured array that was pending before the trace began is evaluated first, so that it is not computed
// again in every call. Numbers are constants.
#include "transforms/traced.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "array/realise.h"
#include "array/routines/random_state.h"
#include "base/error.h"
#include "base/flat_set.h"
#include "graph/build.h"
#include "runtime/trace.h"

namespace weft::transforms {
namespace {

using graph::Node;
using graph::Value;
using graph::Values;

// States of the compiled functions that are traced on this thread, innermost last.
thread_local std::vector<const std::vector<array*>*> captured_states;

class CaptureScope {
 public:
  explicit CaptureScope(const std::vector<array*>& states) { captured_states.push_back(&states); }
  ~CaptureScope() { captured_states.pop_back(); }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
};

bool is_captured(const array* state) {
  return std::any_of(captured_states.begin(), captured_states.end(), [&](const std::vector<array*>* states) {
    return std::find(states->begin(), states->end(), state) != states->end();
  });
}

// A traced function: its results and new states in terms of placeholders. The handles have their old values again.
struct Run {
  Values arguments, states;  // placeholders
  std::vector<array> results, new_states;
  bool drew_key = false;
};

Run run_on_placeholders(const ArrayFunction& fun, const std::vector<graph::Type>& arguments,
                        const std::vector<array*>& states) {
  Run run;
  std::vector<array> inputs, originals;
  for (const graph::Type& type : arguments) {
    run.arguments.push_back(graph::parameter(type, static_cast<int64_t>(inputs.size())));
    inputs.emplace_back(run.arguments.back());
  }
  for (const array* state : states) {
    originals.push_back(*state);
    run.states.push_back(
        graph::parameter(state->value().type(), static_cast<int64_t>(arguments.size() + run.states.size())));
  }
  const auto swap_states = [&](const auto& value_of) {
    for (size_t k = 0; k < states.size(); ++k) *states[k] = value_of(k);
  };
  detail::Trace trace(detail::Trace::Kind::compile);
  CaptureScope scope(states);
  const int64_t draws = detail::implicit_key_uses();
  swap_states([&](size_t k) { return array(run.states[k]); });
  try {
    run.results = fun(inputs);
  } catch (...) {
    swap_states([&](size_t k) { return originals[k]; });
    throw;
  }
  for (const array* state : states) run.new_states.push_back(*state);
  swap_states([&](size_t k) { return originals[k]; });
  run.drew_key = detail::implicit_key_uses() != draws;
  ++runtime::counters().traces;
  return run;
}

// Collects the values at the border of the trace: data, and what was pending before `first_id`.
struct Border {
  Values data, pending;
};

Border border_of(const Values& outputs, const std::unordered_set<const Node*>& placeholders, uint64_t first_id) {
  Border border;
  std::shared_lock lock(graph::structure());
  FlatSet nodes, values;
  std::vector<const Value*> stack;
  const auto push = [&](const Values& more) {
    for (const Value& v : more) stack.push_back(&v);
  };
  push(outputs);
  while (!stack.empty()) {
    const Value& v = *stack.back();
    stack.pop_back();
    const Node& node = *v.node;
    if (!values.insert(node.id() << 16 | static_cast<uint64_t>(v.index)) || placeholders.contains(&node)) continue;
    const bool new_node = node.outputs() == 1 || nodes.insert(&node);
    if (node.storage(0)) border.data.push_back(v);
    else if (node.op() == graph::Op::parameter)
      throw_invalid("compile", "the function uses a placeholder of another function's trace");
    else if (node.id() < first_id && !node.inputs().empty()) border.pending.push_back(v);
    else if (new_node) push(node.inputs());
  }
  return border;
}

void require_same_types(const Run& run) {
  for (size_t k = 0; k < run.states.size(); ++k) {
    const graph::Type &before = run.states[k].type(), &after = run.new_states[k].value().type();
    if (!(before == after))
      throw_invalid("compile", "state " + std::to_string(k) + " was " + graph::to_string(before) + " and became " +
                                   graph::to_string(after) +
                                   ": the state of a compiled function keeps its shape and dtype");
  }
}

// Assigns every value its slot, and collects what the program must compute.
class Slots {
 public:
  Slots(const Values& arguments, const Values& states, const Values& captured) {
    enter(arguments, Slot::From::argument);
    enter(states, Slot::From::state);
    enter(captured, Slot::From::captured);
  }
  Slot of(const Value& v) {
    for (const auto& [value, slot] : known_[v.node.get()])
      if (value == v.index) return slot;
    const Slot slot{Slot::From::program, computed_.size()};
    computed_.push_back(v);
    known_[v.node.get()].emplace_back(v.index, slot);
    return slot;
  }
  const Values& computed() const { return computed_; }

 private:
  void enter(const Values& values, Slot::From from) {
    for (size_t k = 0; k < values.size(); ++k)
      known_[values[k].node.get()].emplace_back(values[k].index, Slot{from, k});
  }
  std::unordered_map<const Node*, std::vector<std::pair<int, Slot>>> known_;
  Values computed_;
};

Values capture(const Run& run, const Values& outputs, uint64_t first_id) {
  std::unordered_set<const Node*> placeholders;
  for (const Values* group : {&run.arguments, &run.states})
    for (const Value& v : *group) placeholders.insert(v.node.get());
  Border border = border_of(outputs, placeholders, first_id);
  if (!border.pending.empty()) {
    detail::realise_all(border.pending);
    border.data.insert(border.data.end(), border.pending.begin(), border.pending.end());
  }
  std::sort(border.data.begin(), border.data.end(), [](const Value& a, const Value& b) {
    return std::pair(a.node->id(), a.index) < std::pair(b.node->id(), b.index);
  });
  return border.data;
}

// Returns the graph of `outputs` with the captured values as further inputs, after arguments and states.
graph::Graph closed(const Run& run, const Values& captured, const Values& outputs) {
  graph::Graph graph;
  for (const Values* group : {&run.arguments, &run.states})
    graph.inputs.insert(graph.inputs.end(), group->begin(), group->end());
  Values replacements;
  for (const Value& v : captured)
    replacements.push_back(graph::parameter(v.type(), static_cast<int64_t>(graph.inputs.size() + replacements.size())));
  {
    std::shared_lock lock(graph::structure());
    graph.outputs = graph::substitute(outputs, captured, replacements);
  }
  graph.inputs.insert(graph.inputs.end(), replacements.begin(), replacements.end());
  return graph;
}

std::shared_ptr<const compiler::Program> build_program(const Run& run, const Values& captured, const Values& computed,
                                                       const std::vector<compiler::Update>& updates) {
  compiler::Source source;
  source.graph = closed(run, captured, computed);
  for (const compiler::Update& u : updates)
    source.updates.push_back({u.output, static_cast<int>(run.arguments.size()) + u.input});
  return compiler::lookup_or_build(source, compiler::default_target());
}

}  // namespace

Traced trace_function(const ArrayFunction& fun, const std::vector<graph::Type>& arguments,
                      const std::vector<array*>& states, bool implicit_key) {
  const uint64_t first_id =
      graph::constant(float32, Number::of_real(0)).node->id();  // ids rise: all nodes of the trace have larger ones
  Run run = run_on_placeholders(fun, arguments, states);
  if (implicit_key && !run.drew_key && run.new_states.back().value() == run.states.back()) {
    run.states.pop_back();
    run.new_states.pop_back();
  }
  require_same_types(run);

  Values outputs;
  for (const auto* group : {&run.results, &run.new_states})
    for (const array& a : *group) outputs.push_back(a.value());
  const Values captured = capture(run, outputs, first_id);

  Traced traced;
  traced.states = run.states.size();
  for (const Value& v : captured) traced.captured.emplace_back(v);
  Slots slots(run.arguments, run.states, captured);
  for (const array& result : run.results) traced.results.push_back(slots.of(result.value()));
  std::unordered_set<size_t> taken;  // each state's buffer is overwritten by one output
  for (size_t k = 0; k < run.new_states.size(); ++k) {
    traced.new_states.push_back(slots.of(run.new_states[k].value()));
    const Slot& slot = traced.new_states.back();
    if (slot.from == Slot::From::program && taken.insert(slot.index).second)
      traced.updates.push_back({static_cast<int>(slot.index), static_cast<int>(k)});
  }
  for (const Value& v : slots.computed()) traced.outputs.push_back(v.type());
  if (!slots.computed().empty()) traced.program = build_program(run, captured, slots.computed(), traced.updates);
  return traced;
}

FunctionGraph graph_of(const ArrayFunction& fun, const std::vector<graph::Type>& arguments) {
  const uint64_t first_id = graph::constant(float32, Number::of_real(0)).node->id();
  const Run run = run_on_placeholders(fun, arguments, {});
  Values outputs;
  for (const array& a : run.results) outputs.push_back(a.value());
  const Values captured = capture(run, outputs, first_id);
  FunctionGraph out;
  out.graph = closed(run, captured, outputs);
  for (const Value& v : captured) out.captured.emplace_back(v);
  return out;
}

std::vector<array> call_inside_trace(const ArrayFunction& fun, const std::vector<array>& arguments,
                                     const std::vector<array*>& states) {
  const bool must_be_captured = !captured_states.empty();
  std::vector<array> before;
  for (const array* state : states) before.push_back(*state);
  std::vector<array> results = fun(arguments);
  for (size_t k = 0; must_be_captured && k < states.size(); ++k) {
    if (is_captured(states[k]) || states[k]->value() == before[k].value()) continue;
    for (size_t i = 0; i < states.size(); ++i) *states[i] = before[i];
    throw_invalid("compile", "a compiled function that is called while another one is traced changes its state " +
                                 std::to_string(k) + ": name that array in the state of the outer function too");
  }
  return results;
}

}  // namespace weft::transforms
