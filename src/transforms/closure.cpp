#include "transforms/closure.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "graph/build.h"

namespace weft::transforms {

using graph::Node;
using graph::Value;
using graph::Values;

namespace {

/// Collects the captured values of several bodies, each once.
class Captures {
 public:
  Captures(uint64_t first_id, Values& captured) : first_id_(first_id), captured_(captured) {}

  void add(const Body& body) {
    std::unordered_set<const Node*> arguments;
    for (const Value& v : body.arguments) arguments.insert(v.node.get());
    std::unordered_set<const Node*> seen;
    Values stack = body.results;
    while (!stack.empty()) {
      const Value v = stack.back();
      stack.pop_back();
      const Node& node = *v.node;
      if (arguments.contains(&node)) continue;
      const bool data = node.storage(0) != nullptr;
      if (data || node.op() == graph::Op::parameter || (node.id() < first_id_ && !node.inputs().empty())) enter(v);
      else if (seen.insert(&node).second) stack.insert(stack.end(), node.inputs().begin(), node.inputs().end());
    }
  }

 private:
  void enter(const Value& v) {
    std::unordered_set<int>& indices = known_[v.node.get()];
    if (indices.insert(v.index).second) captured_.push_back(v);
  }
  uint64_t first_id_;
  Values& captured_;
  std::unordered_map<const Node*, std::unordered_set<int>> known_;
};

}  // namespace

uint64_t next_node_id() { return graph::constant(float32, Number::of_real(0)).node->id() + 1; }

std::vector<graph::Graph> close(std::span<const Body> bodies, uint64_t first_id, Values& captured) {
  std::shared_lock lock(graph::structure());
  Values found;
  Captures captures(first_id, found);
  for (const Body& body : bodies) captures.add(body);
  std::vector<graph::Graph> graphs;
  for (const Body& body : bodies) {
    graph::Graph closed;
    Values from = body.arguments;
    from.insert(from.end(), found.begin(), found.end());
    for (size_t k = 0; k < from.size(); ++k)
      closed.inputs.push_back(graph::parameter(from[k].type(), static_cast<int64_t>(k)));
    closed.outputs = graph::substitute(body.results, from, closed.inputs);
    graphs.push_back(std::move(closed));
  }
  captured.insert(captured.end(), found.begin(), found.end());
  return graphs;
}

std::string graph_key(const graph::Graph& graph) { return graph::digest(graph).hex(); }

Values values_of(const std::vector<array>& arrays) {
  Values values;
  for (const array& a : arrays) values.push_back(a.value());
  return values;
}

std::vector<array> arrays_of(std::span<const Value> values) {
  std::vector<array> arrays;
  for (const Value& v : values) arrays.emplace_back(v);
  return arrays;
}

}  // namespace weft::transforms
