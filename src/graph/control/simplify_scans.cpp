// Rules on scans, for any step: what nobody reads is not computed, a stack is not stored twice, what depends on no
// carry is computed for all steps at once, what each step only adds to is summed behind the scan, and products that
// only the results need are computed behind it.
#include <algorithm>
#include <set>

#include "graph/control/scan_form.h"

namespace weft::graph {
namespace {

using Kept = std::function<bool(const Node&)>;
using Used = std::set<std::pair<const Node*, int>>;

/// Returns the results of a scan by other nodes, empty where they are not used; nothing if no rule applies.
Values simplified(const Node& node, const Used& used, const Kept& kept) {
  const Control& c = *node.attrs().control;
  std::vector<bool> results;
  for (int k = 0; k < node.outputs(); ++k) results.push_back(used.contains({&node, k}));
  ScanForm scan(node, inline_composites(c.bodies[0], kept), results);
  bool changed = static_cast<int64_t>(scan.stacks.size()) + c.carry < c.results();
  changed = scan.prune() || changed;
  if (!c.length.symbol() && c.length.bound() > 0) {
    changed = hoist(scan) || changed;
    changed = sum_behind(scan) || changed;
    changed = stack_behind(scan) || changed;
    changed = scan.shift_stacks() || changed;
  }
  if (!changed) return {};
  scan.prune();
  return scan.finish();
}

}  // namespace

/// Scans are rewritten one at a time, the last first: what a derivative no longer reads, the scan before it need not
/// stack.
Graph simplify_scans(const Graph& graph, const Kept& kept) {
  Graph out = graph;
  for (bool changed = true; changed;) {
    changed = false;
    const auto nodes = topological(out.outputs);
    if (std::none_of(nodes.begin(), nodes.end(), [](const auto& node) { return node->op() == Op::scan; })) break;
    Used used;
    for (const Value& v : out.outputs) used.insert({v.node.get(), v.index});
    for (const auto& node : nodes)
      for (const Value& v : node->inputs()) used.insert({v.node.get(), v.index});
    for (size_t k = nodes.size(); k-- > 0 && !changed;) {
      if (nodes[k]->op() != Op::scan || nodes[k]->storage(0)) continue;
      const Values results = simplified(*nodes[k], used, kept);
      Values from, to;
      for (size_t r = 0; r < results.size(); ++r) {
        if (!results[r]) continue;
        from.push_back({nodes[k], static_cast<int>(r)});
        to.push_back(results[r]);
      }
      changed = !results.empty();
      if (changed) out.outputs = substitute(out.outputs, from, to);
    }
  }
  return out;
}

}  // namespace weft::graph
