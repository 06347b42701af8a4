// Computes a loop once where a derivative runs it again with more results.
#include <algorithm>
#include <utility>

#include "graph/control/control.h"

namespace weft::graph {
namespace {

using NodeList = std::vector<std::shared_ptr<Node>>;

/// Returns whether `more` computes all that `less` does, from the same inputs.
bool extends(const Node& more, const Node& less) {
  const Control& control = *more.attrs().control;
  const Values &a = less.inputs(), &b = more.inputs();
  return less.op() == more.op() && !less.storage(0) && less.attrs().control->key == control.extends->key &&
         a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
}

/// Returns a node and one that extends it, or nothing.
std::pair<std::shared_ptr<Node>, std::shared_ptr<Node>> find_pair(const NodeList& nodes) {
  for (const auto& more : nodes) {
    if (!is_control(more->op()) || more->storage(0) || !more->attrs().control->extends) continue;
    for (const auto& less : nodes)
      if (extends(*more, *less)) return {less, more};
  }
  return {};
}

}  // namespace

/// One pair at a time: a loop that reads another one's results has the inputs of its extension only once the other has
/// been replaced.
Graph share_extended(const Graph& graph) {
  Graph shared = graph;
  for (;;) {
    const auto [less, more] = find_pair(topological(shared.outputs));
    if (!less) return shared;
    Values from, to;
    for (int k = 0; k < less->outputs(); ++k) {
      from.push_back({less, k});
      to.push_back({more, k});
    }
    shared.outputs = substitute(shared.outputs, from, to);
  }
}

}  // namespace weft::graph
