// weft/control.h: bodies are traced on placeholders and closed; values that they capture become constants of the node.
#include "weft/control.h"

#include "array/op_support.h"
#include "base/error.h"
#include "graph/control/control.h"
#include "transforms/closure.h"
#include "transforms/watched.h"

namespace weft {
namespace {

using graph::Value;
using graph::Values;

Values placeholders(const std::vector<graph::Type>& types) {
  Values out;
  for (const graph::Type& t : types) out.push_back(graph::parameter(t));
  return out;
}

std::vector<graph::Type> types_of(const std::vector<array>& arrays) {
  std::vector<graph::Type> types;
  for (const array& a : arrays) types.push_back(a.value().type());
  return types;
}

void require_carry(const char* op, const std::vector<array>& given, const std::vector<array>& init) {
  if (given.size() != init.size())
    throw_invalid(op, "the body returns a carry of " + std::to_string(given.size()) +
                          " arrays, but it was started with " + std::to_string(init.size()));
  for (size_t k = 0; k < init.size(); ++k)
    if (!(given[k].value().type() == init[k].value().type()))
      throw_invalid(op, "carry " + std::to_string(k) + " was " + detail::describe(init[k]) + " and became " +
                            detail::describe(given[k]) + ": it keeps its shape and dtype (convert with astype)");
}

void require_predicate(const char* op, const array& pred) {
  if (pred.dtype() != bool_ || pred.ndim() != 0)
    throw_invalid(op, "the condition must be one bool, shape (), got " + detail::describe(pred));
}

/// Runs a function on placeholders of these types.
template <class F>
transforms::Body traced(const std::vector<graph::Type>& types, F run) {
  transforms::Body body{placeholders(types), {}};
  body.results = transforms::values_of(run(transforms::arrays_of(body.arguments)));
  return body;
}

/// Moves captured values to the front: bodies take the constants, then their own arguments.
graph::Graph constants_first(graph::Graph graph, size_t arguments) {
  std::rotate(graph.inputs.begin(), graph.inputs.begin() + static_cast<std::ptrdiff_t>(arguments), graph.inputs.end());
  return graph;
}

}  // namespace

std::vector<array> cond(const array& pred, const ArrayFunction& true_fun, const ArrayFunction& false_fun,
                        const std::vector<array>& operands) {
  require_predicate("cond", pred);
  const uint64_t first_id = transforms::next_node_id();
  detail::Trace trace(detail::Trace::Kind::compile);
  const std::vector<graph::Type> types = types_of(operands);
  const transforms::Body bodies[] = {traced(types, true_fun), traced(types, false_fun)};
  const auto &a = bodies[0].results, &b = bodies[1].results;
  if (graph::types_of(a) != graph::types_of(b)) {
    const auto text = [](const Values& values) {
      std::string out;
      for (const Value& v : values) out += (out.empty() ? "" : ", ") + graph::to_string(v.type());
      return out;
    };
    throw_invalid("cond", "both functions must return arrays of the same shapes and dtypes; for true: " + text(a) +
                              "; for false: " + text(b));
  }
  if (a.empty()) return {};
  Values inputs = transforms::values_of(operands);
  std::vector<graph::Graph> graphs = transforms::close(bodies, first_id, inputs);
  return transforms::arrays_of(graph::cond(pred.value(), inputs, std::move(graphs[0]), std::move(graphs[1])));
}

std::vector<array> while_loop(const ScalarFunction& cond_fun, const ArrayFunction& body_fun,
                              const std::vector<array>& init, std::optional<int64_t> max_steps) {
  if (max_steps && *max_steps < 0)
    throw_invalid("while_loop", "max_steps must not be negative, got " + std::to_string(*max_steps));
  if (init.empty()) throw_invalid("while_loop", "needs something to carry: a loop over nothing never ends");
  const uint64_t first_id = transforms::next_node_id();
  detail::Trace trace(detail::Trace::Kind::compile);
  const std::vector<graph::Type> types = types_of(init);
  const transforms::Body bodies[] = {traced(types,
                                            [&](const std::vector<array>& carry) {
                                              const array pred = cond_fun(carry);
                                              require_predicate("while_loop", pred);
                                              return std::vector<array>{pred};
                                            }),
                                     traced(types, [&](const std::vector<array>& carry) {
                                       std::vector<array> next = body_fun(carry);
                                       require_carry("while_loop", next, init);
                                       return next;
                                     })};
  Values constants;
  std::vector<graph::Graph> graphs = transforms::close(bodies, first_id, constants);
  return transforms::arrays_of(
      graph::while_loop(constants, transforms::values_of(init), constants_first(std::move(graphs[0]), init.size()),
                        constants_first(std::move(graphs[1]), init.size()), max_steps.value_or(-1)));
}

namespace {

Dim steps_of(const std::vector<array>& xs, std::optional<int64_t> length) {
  if (xs.empty() && !length)
    throw_invalid("scan", "without arrays to go through, say how many steps there are (length)");
  if (length && *length < 0)
    throw_invalid("scan", "the number of steps must not be negative, got " + std::to_string(*length));
  std::optional<Dim> steps;
  if (length) steps = *length;
  for (size_t k = 0; k < xs.size(); ++k) {
    if (xs[k].ndim() == 0)
      throw_invalid("scan", "array " + std::to_string(k) + " is a scalar: there is nothing to go through");
    const Dim n = xs[k].shape(0);
    if (steps && !(n == *steps)) {
      const std::string wanted = steps->symbol() ? steps->symbol()->name : std::to_string(steps->bound());
      throw_invalid("scan", "array " + std::to_string(k) + ", " + detail::describe(xs[k]) + ", should have " + wanted +
                                " elements along its first axis");
    }
    steps = n;
  }
  return *steps;
}

}  // namespace

std::pair<std::vector<array>, std::vector<array>> scan(const ScanFunction& f, const std::vector<array>& init,
                                                       const std::vector<array>& xs, std::optional<int64_t> length,
                                                       bool reverse) {
  const Dim steps = steps_of(xs, length);
  const uint64_t first_id = transforms::next_node_id();
  detail::Trace trace(detail::Trace::Kind::batch);  // random numbers differ from step to step
  trace.set_extent(steps);
  std::vector<graph::Type> types = types_of(init);
  for (const array& x : xs) types.push_back({Shape(x.shape().begin() + 1, x.shape().end()), x.dtype()});
  transforms::Body body = traced(types, [&](const std::vector<array>& in) {
    const auto carry_end = in.begin() + static_cast<std::ptrdiff_t>(init.size());
    auto [carry, given] = f(std::vector<array>(in.begin(), carry_end), std::vector<array>(carry_end, in.end()));
    require_carry("scan", carry, init);
    carry.insert(carry.end(), given.begin(), given.end());
    return carry;
  });
  Values stacked = transforms::values_of(xs);
  body.arguments.insert(body.arguments.end(), trace.key_placeholders().begin(), trace.key_placeholders().end());
  stacked.insert(stacked.end(), trace.keys().begin(), trace.keys().end());
  if (body.results.empty()) return {};
  Values constants;
  graph::Graph step = transforms::close(std::span(&body, 1), first_id, constants)[0];
  const std::vector<array> results =
      transforms::arrays_of(graph::scan(constants, transforms::values_of(init), stacked,
                                        constants_first(std::move(step), body.arguments.size()), steps, reverse));
  const auto carry_end = results.begin() + static_cast<std::ptrdiff_t>(init.size());
  return {std::vector<array>(results.begin(), carry_end), std::vector<array>(carry_end, results.end())};
}

}  // namespace weft
