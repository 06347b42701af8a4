#include "compiler/schedule/single_pass.h"

#include <algorithm>
#include <set>

#include "compiler/ir/index_map.h"
#include "compiler/rewrite/framed_sums.h"
#include "compiler/schedule/cost.h"
#include "compiler/schedule/rows.h"
#include "compiler/schedule/splits.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;

namespace {

/// Returns whether the kernel of the row needs it once more behind both passes, for an element of the result or for
/// another reduction.
bool needed_later(const Ir& ir, const Users& users, const FramedSum& found) {
  const int64_t rows = volume(ir[found.sum].type.shape);
  std::set<NodeId> seen(found.inside.begin(), found.inside.end());
  seen.insert(found.frame), seen.insert(found.sum);
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

/// Returns the bytes that a pass over all elements reads: of the arrays of at least one element for each of x.
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

/// Returns whether a reduction runs along rows: of those whose last axis is reduced all but the ones that are cut.
bool along_rows(const Ir& ir, NodeId reduction, const target::Target& target) {
  const IrNode& n = ir[reduction];
  const Shape& shape = ir[n.inputs[0]].type.shape;
  auto last = static_cast<int64_t>(shape.size()) - 1;
  while (last > 0 && shape[static_cast<size_t>(last)] == 1) --last;
  return std::binary_search(n.attrs->axes.begin(), n.attrs->axes.end(), last) &&
         !cuts_into_columns(ir, reduction, target);
}

/// Returns whether reading the elements again takes longer than the arithmetic of sums with a frame.
bool pays(const Ir& ir, const Users& users, const FramedSum& found, const target::Target& target) {
  // Of a column that a GPU reads: thousands of columns share the L1 of an SM, which holds this much of each.
  constexpr double column_on_chip = 32;  // bytes
  const int64_t count = volume(ir[found.sum].type.shape);
  const bool rows = along_rows(ir, found.sum, target);
  if (rows && clusters_share_few(count, target.machine())) return false;
  const auto elements = static_cast<double>(volume(ir[found.operand].type.shape));
  const double bytes = bytes_of_pass(ir, found.operand);
  const double on_chip =
      rows ? bytes_on_chip(target, needed_later(ir, users, found), bytes / elements) : column_on_chip;
  if (bytes / static_cast<double>(count) <= on_chip) return false;
  const target::Rates rates = target::stated_rates(target.machine());
  Reuse again{};
  again.back() = bytes;
  const double operations =
      elements * kernel::cost_of_frame(found.reducer) / static_cast<double>(tiles_of_step(found.reducer));
  return memory_seconds(again, rates) > operations / rates.vector;
}

}  // namespace

Ir single_pass_reductions(Ir ir, const target::Target& target, const SinglePassWish& wish) {
  if (!target.machine().simt && ir.scheduled.empty()) return ir;
  if (framed_sums(ir).empty()) return ir;
  const Users readers = users(ir);
  return eliminate_dead_code(join_framed_sums(std::move(ir), [&](const Ir& graph, const FramedSum& sum) {
    const std::optional<bool> asked = wish(graph, sum.sum);
    return asked ? *asked : target.machine().simt && pays(graph, readers, sum, target);
  }));
}

}  // namespace weft::compiler
