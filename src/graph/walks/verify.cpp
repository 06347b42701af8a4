// Holds every node of a graph against its row: what passes returns to a graph must still be one.
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

[[noreturn]] void broken(const Node& node, const std::string& what) {
  throw_internal("verify", fmt::format("node {} ({}): {}", node.id(), row(node.op()).name, what));
}

void verify_value(const Node& user, const Value& v) {
  if (!v.node) broken(user, "an input is empty");
  if (v.index < 0 || v.index >= v.node->outputs())
    broken(user, fmt::format("an input is output {} of a node with {}", v.index, v.node->outputs()));
  if (v.node->id() >= user.id()) broken(user, "an input is younger than its user");
}

void verify_node(const Node& node) {
  const Row& r = row(node.op());
  const int given = static_cast<int>(node.inputs().size());
  if (given < r.min_inputs || (r.max_inputs >= 0 && given > r.max_inputs))
    broken(node, fmt::format("{} inputs", given));
  if (const std::string_view unread = unread_attribute(node.op(), node.attrs()); !unread.empty())
    broken(node, fmt::format("has attribute {}, which the operator does not read", unread));
  std::vector<Type> types, results;
  for (const Value& v : node.inputs()) {
    verify_value(node, v);
    types.push_back(v.type());
  }
  try {
    const std::vector<Shape> shapes = r.shape(node.attrs(), types);
    const std::vector<Dtype> dtypes = r.dtype(node.attrs(), types);
    for (size_t k = 0; k < shapes.size(); ++k) results.push_back({shapes[k], dtypes.at(k)});
  } catch (const std::invalid_argument& e) {
    broken(node, e.what());
  }
  if (results != node.types())
    broken(node, fmt::format("has type {}, its row says {}", list(node.types()), list(results)));
}

}  // namespace

void verify(const Graph& graph) {
  std::unordered_set<const Node*> inputs;
  for (const Value& v : graph.inputs) {
    check(v.node && v.node->op() == Op::parameter, "verify", "an input of the graph is not a parameter");
    check(inputs.insert(v.node.get()).second, "verify", "an input of the graph is listed twice");
  }
  for (const Value& v : graph.outputs)
    check(v.node && v.index >= 0 && v.index < v.node->outputs(), "verify", "an output of the graph is no value");
  for (const auto& node : topological(graph.outputs)) {
    if (node->storage(0)) continue;
    if (node->op() == Op::parameter && !inputs.count(node.get()))
      broken(*node, "a parameter that is not an input of the graph");
    verify_node(*node);
  }
}

}  // namespace weft::graph
