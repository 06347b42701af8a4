#include "compiler/schedule/online_softmax.h"

#include <algorithm>
#include <set>

#include "compiler/ir/index_map.h"
#include "compiler/rewrite/scaled_sums.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/rows.h"
#include "compiler/schedule/splits.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;

namespace {

/// Returns whether the kernel of the row needs it once more behind both passes, for an element of the result or for
/// another reduction.
bool needed_later(const Ir& ir, const Users& users, const ScaledSum& found) {
  const int64_t rows = volume(ir[found.sum].type.shape);
  std::set<NodeId> seen(found.inside.begin(), found.inside.end());
  seen.insert(found.maximum), seen.insert(found.sum);
  std::vector<NodeId> pending(seen.begin(), seen.end());
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const NodeId user : users[id]) {
      const bool computes = is_elementwise(ir[user].op) || is_movement(ir[user].op);
      if (seen.contains(user)) continue;
      if (volume(ir[id].type.shape) > rows || (computes && volume(ir[user].type.shape) > rows)) return true;
      if (computes && seen.insert(user).second) pending.push_back(user);
    }
  }
  return false;
}

/// Returns the bytes that a pass over all rows reads: of the arrays of at least one element for each of x.
double bytes_of_pass(const Ir& ir, NodeId operand) {
  const int64_t elements = volume(ir[operand].type.shape);
  double bytes = 0;
  std::set<NodeId> seen;
  std::vector<NodeId> pending{operand};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    const IrNode& n = ir[id];
    if (!seen.insert(id).second || volume(n.type.shape) < elements) continue;
    if (is_elementwise(n.op) || (is_movement(n.op) && n.op != Op::concat))
      pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
    else if (n.op != Op::iota && n.op != Op::constant && n.op != Op::random_bits)
      bytes += static_cast<double>(elements) * static_cast<double>(n.type.dtype.size());
  }
  return bytes;
}

/// Returns the bytes of a row that its second pass finds on chip: in the registers or the shared memory of a block.
/// That of a whole cluster counts where a row is there anyway, for what needs it later. Blocks that bring their parts
/// of a row there for two passes alone wait for each other twice, and take about as long as reading it twice.
double bytes_on_chip(const target::Target& target, bool later, double bytes_of_element) {
  const int64_t blocks = later ? target.machine().max_cluster : 1;
  return std::max(static_cast<double>(most_kept_bytes(target) * blocks),
                  static_cast<double>(row_in_registers) * bytes_of_element);
}

/// Returns whether reading rows again takes longer than the arithmetic of sums with a frame.
bool pays(const Ir& ir, const Users& users, const ScaledSum& found, const target::Target& target) {
  const int64_t count = volume(ir[found.sum].type.shape);
  if (clusters_share_few(count, target.machine())) return false;
  const auto elements = static_cast<double>(volume(ir[found.operand].type.shape)), rows = static_cast<double>(count);
  const double bytes = bytes_of_pass(ir, found.operand);
  if (bytes / rows <= bytes_on_chip(target, needed_later(ir, users, found), bytes / elements)) return false;
  const target::Rates rates = target::stated_rates(target.machine());
  Reuse again{};
  again.back() = bytes;
  const auto reducer = kernel::Reducer::logsumexp;
  const double operations = elements * kernel::cost_of_frame(reducer) / static_cast<double>(tiles_of_step(reducer));
  return memory_seconds(again, rates) > operations / rates.vector;
}

}  // namespace

Ir online_softmax(Ir ir, const target::Target& target) {
  if (scaled_sums(ir).empty()) return ir;
  const Users readers = users(ir);
  return eliminate_dead_code(join_scaled_sums(
      std::move(ir), [&](const Ir& graph, const ScaledSum& sum) { return pays(graph, readers, sum, target); }));
}

}  // namespace weft::compiler
