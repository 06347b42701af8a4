#include "compiler/eager/held.h"

#include <algorithm>
#include <atomic>

#include "base/flat_set.h"
#include "compiler/layout/view.h"
#include "graph/table.h"

namespace weft::compiler {

namespace {

using graph::Node;
using graph::NodeRefs;
using graph::Op;

bool is_pending(const Node& node) {
  return !node.storage(0) && node.op() != Op::constant && node.op() != Op::parameter && node.op() != Op::iota;
}

/// Returns the positions in `nodes` of pending ones to which more refers than the graph does. Most nodes have one user,
/// and nothing is counted for them.
std::vector<size_t> held(const NodeRefs& nodes) {
  std::vector<size_t> shared;
  FlatMap numbers;
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k]->use_count() == 1 || !is_pending(**nodes[k])) continue;
    numbers.insert(nodes[k]->get(), static_cast<int>(shared.size()));
    shared.push_back(k);
  }
  std::vector<int64_t> users(shared.size());
  for (size_t n = shared.empty() ? nodes.size() : shared.front() + 1; n < nodes.size(); ++n)
    for (const graph::Value& input : (*nodes[n])->inputs())
      if (const int found = numbers.find(input.node.get()); found >= 0) ++users[static_cast<size_t>(found)];
  std::vector<size_t> out;
  for (size_t n = 0; n < shared.size(); ++n)
    if (nodes[shared[n]]->use_count() > users[n]) out.push_back(shared[n]);
  return out;
}

std::atomic<bool> keeps = false;

constexpr double cheap = 4;           // operations an element
constexpr double costly = 2 * cheap;  // more than any number of them that is cheap

/// Operations an element that it takes to compute a node again, of those that only its inputs must be known for.
double operations(const Node& node) {
  if (moves_only(node.op())) return 0;
  const int scalar = graph::row(node.op()).scalar;
  if (scalar >= 0) return kernel::info(static_cast<kernel::ScalarOp>(scalar)).flops;
  return node.op() == Op::cast || node.op() == Op::select ? 1 : costly;
}

/// The operations an element that it takes to compute nodes of a graph from what is stored.
class Costs {
 public:
  double of(const Node& node) const {
    const int found = numbers_.find(&node);
    return found < 0 ? 0 : costs_[static_cast<size_t>(found)];
  }
  /// Adds a node after its inputs.
  void add(const Node& node) {
    double cost = operations(node);
    for (const graph::Value& input : node.inputs()) cost += of(*input.node);
    set(node, std::min(cost, costly));
  }
  void set(const Node& node, double cost) {
    const auto [number, fresh] = numbers_.insert(&node, static_cast<int>(costs_.size()));
    if (fresh) costs_.push_back(cost);
    else costs_[static_cast<size_t>(number)] = cost;
  }

 private:
  FlatMap numbers_;
  std::vector<double> costs_;
};

}  // namespace

graph::Values held_values(const NodeRefs& nodes) {
  const std::vector<size_t> candidates = held(nodes);
  graph::Values out;
  if (candidates.empty()) return out;
  Costs costs;
  size_t next = 0;
  for (size_t k = 0; k < nodes.size() && next < candidates.size(); ++k) {
    const Node& node = **nodes[k];
    if (is_pending(node)) costs.add(node);
    if (k != candidates[next]) continue;
    ++next;
    if (costs.of(node) <= cheap) continue;
    out.push_back({*nodes[k], 0});
    costs.set(node, 0);
  }
  return out;
}

void set_keeps_held(bool on) { keeps = on; }
bool keeps_held() { return keeps; }

}  // namespace weft::compiler
