#include "compiler/rewrite/row_reductions.h"

#include <algorithm>
#include <set>

#include "compiler/ir/index_map.h"

namespace weft::compiler {

using graph::Op;

namespace {

/// Returns whether a node reduces the last axes and keeps others.
bool reduces_rows(const Ir& ir, NodeId node) {
  const IrNode& n = ir[node];
  if (n.op != Op::reduce) return false;
  const auto rank = static_cast<int64_t>(ir[n.inputs[0]].type.shape.size());
  const auto& axes = n.attrs->axes;
  return !axes.empty() && axes.front() > 0 && axes.back() == rank - 1 &&
         axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size()) && volume(n.type.shape) > 1;
}

/// Calls visit(node) on `node` and on the values that it is computed from element by element. `visit` returns whether
/// to go on to the inputs.
template <class Visit>
void walk_points(const Ir& ir, NodeId node, Visit visit) {
  std::set<NodeId> seen;
  std::vector<NodeId> pending{node};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    const IrNode& n = ir[id];
    if (!seen.insert(id).second || !visit(id) || !(is_elementwise(n.op) || n.op == Op::reshape)) continue;
    pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
  }
}

}  // namespace

NodeFlags row_values(const Ir& ir) {
  NodeFlags values(ir.nodes.size());
  std::vector<int64_t> statistics(ir.nodes.size());  // of a statistic of rows: the elements of all rows; else 0
  for (NodeId id = 0; id < ir.size(); ++id) {
    const IrNode& n = ir[id];
    const auto at = static_cast<size_t>(id);
    if (reduces_rows(ir, id)) {
      const int64_t size = volume(ir[n.inputs[0]].type.shape);
      statistics[at] = size;
      walk_points(ir, n.inputs[0], [&](int value) {
        if (volume(ir[value].type.shape) < size || values[value]) return false;
        values[value] = true;
        return true;
      });
      continue;
    }
    // A value computed from statistics of rows is one too. Broadcast over the row, it is a row value; broadcast over
    // more than the rows, as the statistics of sums of columns are, it is none.
    for (NodeId input : n.inputs) {
      const auto from = static_cast<size_t>(input);
      if (is_elementwise(n.op) || n.op == Op::reshape) {
        statistics[at] = std::max(statistics[at], statistics[from]);
        values[at] = values[at] || values[from];
      } else if (n.op == Op::broadcast) {
        values[at] = values[at] || statistics[from] >= volume(n.type.shape) || values[from];
      }
    }
  }
  return values;
}

bool reduces_row_value(const Ir& ir, const NodeFlags& row_values, NodeId reduction) {
  bool found = false;
  walk_points(ir, ir[reduction].inputs[0], [&](NodeId id) {
    found = found || row_values[id];
    return !found;
  });
  return found;
}

}  // namespace weft::compiler
