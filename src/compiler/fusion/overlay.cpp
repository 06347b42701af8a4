// Which results begin as one of their operands, and what else their groups read of it.
#include <algorithm>
#include <set>

#include "compiler/fusion/order.h"

#include "compiler/ir/index_map.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"
#include "graph/calls/kernel_call.h"

namespace weft::compiler {

namespace {

using graph::KernelUse;

/// Calls visit(operand, result) for each in-out array of a kernel: the positions among the node's inputs and results.
template <class Visit>
void each_in_out(const graph::KernelProgram& program, Visit visit) {
  size_t operand = 0, result = 0;
  for (const graph::KernelArray& array : program.arrays) {
    if (array.use == KernelUse::in_out) visit(operand, result);
    operand += array.use != KernelUse::out ? 1 : 0;
    result += array.use != KernelUse::in ? 1 : 0;
  }
}

}  // namespace

std::vector<Overlay> overlays(const Ir& ir, const Grouping& grouping, const Group& group) {
  std::vector<Overlay> out;
  if (const NodeId node = overlaid(group); node >= 0) {
    const NodeId value = ir[node].inputs[0];
    out.push_back({node, value, memory_of(ir, grouping.strides, grouping.is_root, value)});
  }
  if (group.kind != Group::Kind::call || !group.call.kernel) return out;
  const CallPlan& plan = group.call;
  each_in_out(*plan.kernel, [&](size_t operand, size_t result) {
    const NodeId node = plan.results[result];
    if (node >= 0) out.push_back({node, ir[node].inputs[operand], plan.operands[operand]});
  });
  return out;
}

bool may_take_over(const Ir& ir, const Grouping& grouping, const Group& group, const Overlay& overlay) {
  if (group.kind == Group::Kind::call)
    return std::count(group.call.operands.begin(), group.call.operands.end(), overlay.operand) == 1;
  const IrNode& n = ir[overlay.result];
  std::set<NodeId> others;
  std::vector<NodeId> pending(n.inputs.begin() + 1, n.inputs.end());
  if (group.kind == Group::Kind::attention)
    for (const size_t k : {size_t{0}, size_t{3}}) pending.push_back(ir[group.roots[0].node].inputs[k]);
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (id == overlay.operand) return false;
    if (!others.insert(id).second || grouping.is_root[id]) continue;
    pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
  }
  return true;
}

bool begins_with_copies(const Ordering& ordering, const Group& group) {
  bool copies = std::any_of(group.roots.begin(), group.roots.end(),
                            [&](const Root& root) { return ordering.copied_from[root.node] >= 0; });
  if (group.kind == Group::Kind::call && group.call.kernel)
    each_in_out(*group.call.kernel, [&](size_t, size_t result) { copies = copies || group.call.results[result] < 0; });
  return copies;
}

}  // namespace weft::compiler
