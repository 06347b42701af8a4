// Passes a traced function to a callback, one operation after the other.
#include "io/program/export_callback.h"

#include "base/error.h"
#include "graph/calls/kernel_call.h"
#include "graph/table.h"
#include "io/program/tape.h"

namespace weft::io {
namespace {

using graph::Attrs;
using graph::Node;
using graph::Op;
using graph::Value;
using graph::Values;
using Described = std::vector<std::tuple<std::string, Shape, Dtype>>;

/// Returns name and value of each field that differs from its default.
std::vector<StateT> fields(const Attrs& a) {
  const Attrs plain;
  std::vector<StateT> out;
  const auto field = [&](const char* name, StateT value) {
    out.emplace_back(std::string(name));
    out.push_back(std::move(value));
  };
  for (const AttrList& list : attr_lists())
    if (!(a.*list.member).empty()) field(list.key, Strides(a.*list.member));
  if (!a.shape.empty()) field("shape", a.shape);
  if (a.dtype != plain.dtype) field("dtype", a.dtype);
  if (!(a.number == plain.number))
    field("number", a.number.integral ? StateT(Strides{a.number.i}) : StateT(a.number.f));
  if (!a.call.empty()) field("call", a.call);
  if (a.kernel) field("kernel", a.kernel->kernel.name);
  if (a.packed) field("packed", true);
  if (a.reducer != plain.reducer) field("reducer", std::string(kernel::name(a.reducer)));
  if (a.mode != plain.mode) field("mode", std::string(graph::name(a.mode)));
  if (a.generator != plain.generator) field("generator", std::string("philox"));
  return out;
}

class Teller {
 public:
  Teller(const ExportCallback& callback, CallbackState& state) : callback_(callback), state_(state) {}

  std::string name(const Value& v) {
    state_.kept.emplace_back(v);
    return state_.namer.get_name(state_.kept.back());
  }
  Described described(const Values& values) {
    Described out;
    for (const Value& v : values) out.emplace_back(name(v), v.shape(), v.dtype());
    return out;
  }
  void tell(const char* type, const char* key, ExportCallbackInput::mapped_type value) {
    callback_({{"type", std::string(type)}, {key, std::move(value)}});
  }
  void operation(const std::shared_ptr<Node>& node) {
    Values results;
    for (int k = 0; k < node->outputs(); ++k) results.push_back({node, k});
    callback_({{"type", std::string("primitive")},
               {"inputs", described(node->inputs())},
               {"outputs", described(results)},
               {"name", std::string(graph::row(node->op()).name)},
               {"arguments", fields(node->attrs())}});
  }

 private:
  const ExportCallback& callback_;
  CallbackState& state_;
};

}  // namespace

void tell(const ExportCallback& callback, const graph::Graph& traced, const std::vector<std::string>& keywords,
          const std::vector<array>& captured, CallbackState& state) {
  const size_t arguments = traced.inputs.size() - captured.size();
  graph::Graph graph = graph::inline_composites(traced);
  Values inputs(graph.inputs.begin(), graph.inputs.begin() + static_cast<std::ptrdiff_t>(arguments)), stored;
  for (const array& a : captured) stored.push_back(a.value());
  graph.outputs = graph::substitute(
      graph.outputs, Values(graph.inputs.begin() + static_cast<std::ptrdiff_t>(arguments), graph.inputs.end()), stored);
  std::vector<std::shared_ptr<Node>> operations;
  std::vector<std::pair<std::string, array>> constants;
  Teller teller(callback, state);
  const Described input_names = teller.described(inputs);
  const auto constant = [&](const Value& v) {
    if (state.told.emplace(v.node.get(), v.index).second) constants.emplace_back(teller.name(v), array(v));
  };
  for (const Value& v : stored) constant(v);
  for (const auto& node : graph::topological(graph.outputs)) {
    if (node->op() == Op::cond || node->op() == Op::while_loop || node->op() == Op::scan)
      throw_invalid("export_function", "a callback is told of operations one by one, and " +
                                           std::string(graph::row(node->op()).name) +
                                           " has graphs of its own: export to a file");
    if (node->op() == Op::constant) constant({node, 0});
    else if (node->op() != Op::parameter && !node->storage(0)) operations.push_back(node);
  }

  teller.tell("inputs", "inputs", input_names);
  std::vector<std::pair<std::string, std::string>> by_key;
  for (size_t k = 0; k < keywords.size(); ++k)
    by_key.emplace_back(keywords[k], std::get<0>(input_names[arguments - keywords.size() + k]));
  teller.tell("keyword_inputs", "keywords", std::move(by_key));
  teller.tell("outputs", "outputs", teller.described(graph.outputs));
  teller.tell("constants", "constants", std::move(constants));
  for (const auto& node : operations) teller.operation(node);
}

}  // namespace weft::io
