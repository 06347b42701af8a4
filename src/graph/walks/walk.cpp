// Walks over graphs, all without recursion: topological order, substitution, inlining of composites.
#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/flat_set.h"
#include "graph/build.h"
#include "graph/walks/inlined.h"

namespace weft::graph {
namespace {

/// A node that a walk came to, by a reference to it that the graph holds.
struct Reached {
  uint64_t id = 0;
  const std::shared_ptr<Node>* node = nullptr;
};

/// Sorts by id. A node is made after its inputs, so this is a topological order, and the order in which the program was
/// written. The ids of most nodes of a graph are close together: a bit for each id says how many are before it. The
/// older ones are sorted by comparison.
void sort_by_id(std::vector<Reached>& nodes) {
  constexpr size_t few = 16;
  if (nodes.size() <= few) {
    std::ranges::sort(nodes, {}, &Reached::id);
    return;
  }
  const uint64_t last = std::ranges::max(nodes, {}, &Reached::id).id;
  const uint64_t first = last - std::min(last, 8 * nodes.size());
  const auto recent = std::partition(nodes.begin(), nodes.end(), [&](const Reached& r) { return r.id < first; });
  std::ranges::sort(nodes.begin(), recent, {}, &Reached::id);
  struct Word {
    uint64_t ids = 0;  // a bit for each that is there
    size_t before = 0;
  };
  std::vector<Word> words((last - first) / 64 + 1);
  for (auto r = recent; r != nodes.end(); ++r) words[(r->id - first) / 64].ids |= uint64_t{1} << (r->id - first) % 64;
  for (size_t k = 1; k < words.size(); ++k)
    words[k].before = words[k - 1].before + static_cast<size_t>(std::popcount(words[k - 1].ids));
  const std::vector<Reached> unsorted(recent, nodes.end());
  for (const Reached& r : unsorted) {
    const Word& word = words[(r.id - first) / 64];
    const uint64_t smaller = word.ids & ((uint64_t{1} << (r.id - first) % 64) - 1);
    recent[static_cast<std::ptrdiff_t>(word.before) + std::popcount(smaller)] = r;
  }
}

constexpr size_t few_nodes = 16;  // room for them is made at once: most evaluations have fewer

/// Returns the nodes that `outputs` reach without passing through a node for which `stops` is true; such nodes are not
/// listed. They are found in `outputs` and in the inputs of nodes, which must stay where they are.
template <class Stops>
std::vector<Reached> reach(std::span<const Value> outputs, Stops stops) {
  FlatSet seen;
  std::vector<const std::shared_ptr<Node>*> stack;
  std::vector<Reached> nodes;
  stack.reserve(few_nodes);
  nodes.reserve(few_nodes);
  const auto visit = [&](const Value& v) {
    if (v.node && !stops(*v.node) && seen.insert(v.node.get())) stack.push_back(&v.node);
  };
  for (const Value& v : outputs) visit(v);
  while (!stack.empty()) {
    nodes.push_back({(*stack.back())->id(), stack.back()});
    stack.pop_back();
    for (const Value& v : (*nodes.back().node)->inputs()) visit(v);
  }
  sort_by_id(nodes);
  return nodes;
}

std::vector<std::shared_ptr<Node>> held(const std::vector<Reached>& nodes) {
  std::vector<std::shared_ptr<Node>> out;
  out.reserve(nodes.size());
  for (const Reached& r : nodes) out.push_back(*r.node);
  return out;
}

NodeRefs refs(const std::vector<Reached>& nodes) {
  NodeRefs out;
  out.reserve(nodes.size());
  for (const Reached& r : nodes) out.push_back(r.node);
  return out;
}

/// New values of rebuilt nodes, by node.
class Replacements {
 public:
  void set(const Value& from, const Value& to) {
    Values& values = at(from.node.get());
    if (values.empty()) values.resize(static_cast<size_t>(from.node->outputs()));
    values[static_cast<size_t>(from.index)] = to;
  }
  void set(const Node* node, Values values) { at(node) = std::move(values); }

  const Value& of(const Value& v) const {
    const int found = numbers_.find(v.node.get());
    if (found < 0) return v;
    const Value& value = values_[static_cast<size_t>(found)][static_cast<size_t>(v.index)];
    return value ? value : v;
  }
  Values of(std::span<const Value> vs) const {
    Values out;
    out.reserve(vs.size());
    for (const Value& v : vs) out.push_back(of(v));
    return out;
  }

  /// Returns whether any input of the node is replaced by another value.
  bool change(const Node& node) const {
    return std::ranges::any_of(node.inputs(), [&](const Value& v) { return of(v) != v; });
  }

 private:
  Values& at(const Node* node) {
    const auto [number, fresh] = numbers_.insert(node, static_cast<int>(values_.size()));
    if (fresh) values_.emplace_back();
    return values_[static_cast<size_t>(number)];
  }
  FlatMap numbers_;  // by node: where its values are
  std::vector<Values> values_;
};

Values outputs_of(const std::shared_ptr<Node>& node) {
  Values out;
  for (int k = 0; k < node->outputs(); ++k) out.push_back({node, k});
  return out;
}

/// Rebuilds a node on new inputs; replacements keep the types.
Values rebuild(const Node& node, Values inputs) {
  return outputs_of(std::make_shared<Node>(node.op(), std::move(inputs), node.shared_attrs(), node.shared_types()));
}

}  // namespace

bool is_region(const Node& node) { return node.op() == Op::composite && !node.storage(0); }

Values body_of(const Node& node, const Values& inputs) {
  const Composite& region = *node.attrs().composite;
  Values results = region.body(inputs);
  check(results.size() == node.types().size(), region.name, "the body has another number of results");
  for (size_t k = 0; k < results.size(); ++k)
    check(results[k].type() == node.types()[k], region.name, "the body's results have other types than the region");
  return results;
}

namespace {

/// Returns `outputs` with regions expanded recursively, except those that are kept. Nodes with ids up to `before` are
/// not changed. `inlined` gets what is expanded.
Values expanded(const Values& outputs, uint64_t before, const std::function<bool(const Node&)>& kept,
                std::vector<InlinedComposite>& inlined) {
  Replacements new_values;
  for (const Reached& reached : reach(outputs, [&](const Node& n) { return n.id() <= before; })) {
    const Node& node = **reached.node;
    if (is_region(node) && !(kept && kept(node))) {
      const Values inputs = new_values.of(node.inputs());
      uint64_t last = 0;  // what a body makes comes after its inputs
      for (const Value& v : inputs) last = std::max(last, v.node->id());
      Values results = expanded(body_of(node, inputs), last, kept, inlined);
      if (inputs.size() == 1 && results.size() == 1)
        inlined.push_back({node.attrs().composite->name, inputs[0], results[0]});
      new_values.set(&node, std::move(results));
    } else if (new_values.change(node)) {
      new_values.set(&node, rebuild(node, new_values.of(node.inputs())));
    }
  }
  return new_values.of(outputs);
}

}  // namespace

NodeRefs reachable(std::span<const Value> outputs) {
  return refs(reach(outputs, [](const Node&) { return false; }));
}

NodeRefs reachable(std::span<const Value> outputs, const std::function<bool(const Node&)>& stops) {
  return refs(reach(outputs, stops));
}

std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs) {
  return held(reach(outputs, [](const Node&) { return false; }));
}

std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs, std::span<const Value> stop_at) {
  std::unordered_set<const Node*> stop;
  for (const Value& v : stop_at) stop.insert(v.node.get());
  return held(reach(outputs, [&](const Node& node) { return stop.contains(&node); }));
}

Graph inline_composites(const Graph& graph, const std::function<bool(const Node&)>& kept) {
  std::vector<InlinedComposite> inlined;
  return inline_composites(graph, kept, inlined);
}

Graph inline_composites(const Graph& graph, const std::function<bool(const Node&)>& kept,
                        std::vector<InlinedComposite>& inlined) {
  return {graph.inputs, expanded(graph.outputs, 0, kept, inlined)};
}

Values substitute(std::span<const Value> outputs, std::span<const Value> from, std::span<const Value> to) {
  check(from.size() == to.size(), "substitute", "one replacement for each value");
  if (from.empty()) return {outputs.begin(), outputs.end()};
  Replacements new_values;
  std::unordered_set<const Node*> stop;
  for (size_t k = 0; k < from.size(); ++k) {
    if (!(from[k].type() == to[k].type()))
      throw_internal("substitute",
                     "a value of type " + to_string(to[k].type()) + " for one of type " + to_string(from[k].type()));
    new_values.set(from[k], to[k]);
    if (from[k].node->outputs() == 1) stop.insert(from[k].node.get());
  }
  for (const Reached& reached : reach(outputs, [&](const Node& n) { return stop.contains(&n); })) {
    const std::shared_ptr<Node>& node = *reached.node;
    if (!new_values.change(*node)) continue;
    const Values rebuilt = rebuild(*node, new_values.of(node->inputs()));
    for (int k = 0; k < node->outputs(); ++k) {
      const Value old{node, k};
      if (new_values.of(old) == old)
        new_values.set(old, rebuilt[static_cast<size_t>(k)]);  // an output that is replaced keeps its replacement
    }
  }
  return new_values.of(outputs);
}

}  // namespace weft::graph
