#include "compiler/fusion/rematerialize.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/fusion/group.h"
#include "compiler/fusion/order.h"
#include "compiler/schedule/cost.h"
#include "graph/table.h"

namespace weft::compiler {

namespace {

constexpr int most_attempts = 6;
constexpr size_t largest_copy = 24;  // roots that one copy may recompute

/// When each root is computed and read, by position in the order of groups, and the position with the most live memory.
class Timeline {
 public:
  Timeline(const Ir& source, const std::vector<Layout>& layouts, const std::vector<Update>& updates,
           const Policy& policy, const target::Target& target)
      : ir(source), grouping(group(ir, layouts, policy, &target, updates)),
        ordering(order(ir, grouping, updates, policy, false)), made(ir.nodes.size(), -1), reads(ir.nodes.size()) {
    NodeFlags escapes(ir.nodes.size());
    for (NodeId id : ir.outputs) escapes[output_node(ir, id)] = true;
    std::vector<int64_t> change(ordering.order.size() + 1);
    for (size_t p = 0; p < ordering.order.size(); ++p) {
      const Group& g = grouping.groups[ordering.order[p]];
      for (const Root& root : g.roots) made[root.node] = static_cast<int>(p);
      for (NodeId id : g.reads) reads[id].push_back(static_cast<int>(p));
    }
    in_arena.resize(ir.nodes.size());
    for (NodeId id = 0; id < ir.size(); ++id) {
      auto at = static_cast<size_t>(id);
      in_arena[at] = made[at] >= 0 && ordering.has_buffer[at] && ordering.buffer_owner[at] == id && !escapes[at];
      if (!in_arena[at]) continue;
      change[static_cast<size_t>(made[at])] += bytes(id);
      change[static_cast<size_t>(last_read(id)) + 1] -= bytes(id);
    }
    int64_t now = 0;
    for (size_t p = 0; p < ordering.order.size(); ++p)
      if ((now += change[p]) > peak) peak = now, busiest = static_cast<int>(p);
  }

  int64_t bytes(NodeId id) const { return volume(ir[id].type.shape) * ir[id].type.dtype.size(); }
  int last_read(NodeId id) const { return reads[id].empty() ? made[id] : reads[id].back(); }
  /// Returns the position of the first read after the busiest step, or -1.
  int late_read(NodeId id) const {
    const auto& list = reads[id];
    auto it = std::upper_bound(list.begin(), list.end(), busiest);
    return it == list.end() ? -1 : *it;
  }
  /// Returns whether a node is live at the busiest step, not used by it, and read later.
  bool idles(NodeId id) const {
    const auto& list = reads[id];
    return in_arena[id] && made[id] < busiest && late_read(id) >= 0 &&
           !std::binary_search(list.begin(), list.end(), busiest);
  }

  const Ir& ir;
  Grouping grouping;
  Ordering ordering;
  IndexedVector<NodeId, int> made;                // by node: position of its group, or -1
  IndexedVector<NodeId, std::vector<int>> reads;  // ascending
  NodeFlags in_arena;
  int64_t peak = 0;
  int busiest = 0;
};

/// What it takes to recompute a root.
struct Recomputation {
  std::vector<NodeId> roots;  // itself, and those it needs that are no longer live
  double seconds = 0;         // of moving its bytes and computing, at the machine's stated rates
  int64_t freed = 0;
};

/// Returns nothing if the copy needs too many roots, or one that is computed neither by a rows group nor by a dot.
std::optional<Recomputation> copy_of(const Timeline& time, NodeId node, const NodeFlags& chosen,
                                     const target::Rates& rates, bool tf32) {
  const Ir& ir = time.ir;
  Recomputation copy;
  std::set<NodeId> seen;
  std::vector<NodeId> pending{node};
  const int when = time.late_read(node);
  const auto moving = [&](NodeId id) { return static_cast<double>(time.bytes(id)) / rates.memory(); };
  while (!pending.empty()) {
    NodeId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second) continue;
    const IrNode& n = ir[id];
    auto at = static_cast<size_t>(id);
    const bool root = time.made[at] >= 0;
    if (is_leaf(ir, id) || (root && id != node && (chosen[at] || !time.in_arena[at] || time.last_read(id) >= when))) {
      copy.seconds += moving(id);
      continue;
    }
    if (root) {
      const Group& g = time.grouping.groups[time.grouping.group_of[at]];
      if (g.kind != Group::Kind::rows && g.kind != Group::Kind::dot) return std::nullopt;
      copy.roots.push_back(id);
      copy.seconds += moving(id);
      if (copy.roots.size() > largest_copy) return std::nullopt;
    }
    const double points = static_cast<double>(volume(n.inputs.empty() ? n.type.shape : ir[n.inputs[0]].type.shape));
    if (n.op == graph::Op::dot) {
      const auto contracted = static_cast<size_t>(n.attrs->axes[0]);
      const double flops = 2.0 * static_cast<double>(volume(n.type.shape)) *
                           static_cast<double>(ir[n.inputs[0]].type.shape[contracted].bound());
      copy.seconds += flops / rates.peak(arithmetic_of(ir[n.inputs[0]].type.dtype, tf32));
    } else {
      copy.seconds += points * operations_of(n) / rates.vector;
    }
    pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
  }
  for (NodeId id : copy.roots)
    if (!chosen[id] && time.idles(id)) copy.freed += time.bytes(id);
  return copy;
}

/// Returns the roots to recompute so that the live memory at the busiest step fits, cheapest first.
NodeFlags choose(const Timeline& time, int64_t budget, const target::Rates& rates, bool tf32) {
  NodeFlags chosen(time.ir.nodes.size());
  std::vector<std::pair<double, NodeId>> candidates;
  for (NodeId id = 0; id < time.ir.size(); ++id) {
    if (!time.idles(id) || time.bytes(id) == 0) continue;
    if (auto copy = copy_of(time, id, chosen, rates, tf32))
      candidates.emplace_back(copy->seconds / static_cast<double>(copy->freed), id);
  }
  std::sort(candidates.begin(), candidates.end());
  int64_t alive = time.peak;
  for (const auto& [price, id] : candidates) {
    if (alive <= budget) break;
    if (chosen[id]) continue;
    auto copy = copy_of(time, id, chosen, rates, tf32);
    if (!copy) continue;
    for (NodeId root : copy->roots) chosen[root] = true;
    alive -= copy->freed;
  }
  return chosen;
}

/// Builds the graph in which readers after the busiest step read copies of the chosen roots.
class Copier {
 public:
  Copier(const Timeline& time, const NodeFlags& chosen)
      : time_(time), chosen_(chosen), early_(chosen.size(), -1), late_(chosen.size(), -1) {}

  Ir run() {
    for (NodeId id = 0; id < time_.ir.size(); ++id) copy(id);
    for (NodeId id : time_.ir.inputs) out_.inputs.push_back(early_[id]);
    for (NodeId id : time_.ir.outputs) out_.outputs.push_back(early_[id]);
    carry_labels(time_.ir, out_, [&](NodeId id) { return early_[id]; });
    for (const InlinedRegion& region : time_.ir.regions)  // copies of the function, and what reads a copied argument
      if (const NodeId input = late_[region.input], result = late_[region.result];
          input >= 0 && result >= 0 && result != early_[region.result])
        out_.regions.push_back({region.name, input, result});
    return eliminate_dead_code(std::move(out_));
  }

 private:
  static constexpr NodeId wanted = -2;  // a copy that no reader has requested yet

  NodeId append(NodeId id, const std::vector<NodeId>& inputs, bool later) {
    IrNode node = time_.ir[id];
    node.inputs = inputs;
    node.phase += later;
    out_.nodes.push_back(std::move(node));
    return out_.size() - 1;
  }

  void copy(NodeId id) {
    const IrNode& n = time_.ir[id];
    auto at = static_cast<size_t>(id);
    std::vector<NodeId> inputs;
    if (time_.made[at] > time_.busiest) {
      for (NodeId input : n.inputs) inputs.push_back(late(input));
      early_[at] = late_[at] = append(id, inputs, true);
      return;
    }
    bool differs = chosen_[at];
    for (NodeId input : n.inputs) {
      inputs.push_back(early_[input]);
      differs = differs || (time_.made[at] < 0 && late_[input] != early_[input]);
    }
    early_[at] = append(id, inputs, false);
    late_[at] = differs ? wanted : early_[at];
  }

  /// Returns the node as readers after the busiest step see it. A copy is added just before its first reader.
  NodeId late(NodeId id) {
    auto at = static_cast<size_t>(id);
    if (late_[at] != wanted) return late_[at];
    std::vector<NodeId> inputs;
    for (NodeId input : time_.ir[id].inputs) inputs.push_back(late(input));
    return late_[at] = append(id, inputs, true);
  }

  const Timeline& time_;
  const NodeFlags& chosen_;
  IndexedVector<NodeId, NodeId> early_, late_;  // by node: its id for readers before and after the busiest step
  Ir out_;
};

}  // namespace

Ir recompute(Ir ir, const std::vector<Layout>& layouts, const std::vector<Update>& updates, const Policy& policy,
             const target::Target& target) {
  const target::Rates rates = target::stated_rates(target.machine());
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const Timeline time(ir, layouts, updates, policy, target);
    if (time.peak <= policy.memory_budget) break;
    const NodeFlags chosen = choose(time, policy.memory_budget, rates, policy.numerics.tf32);
    if (std::none_of(chosen.begin(), chosen.end(), [](bool c) { return c; })) break;
    ir = Copier(time, chosen).run();
  }
  return ir;
}

}  // namespace weft::compiler
