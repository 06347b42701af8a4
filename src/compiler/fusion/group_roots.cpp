// Finds the roots that do not depend on how groups form: outputs, results of reductions, dots and calls, and operands
// that these read from memory. Chooses the layouts of results that are free to choose.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "compiler/fusion/grouper.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"
#include "compiler/schedule/work.h"
#include "target/rates.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;

/// Marks these roots and chooses layouts, by kind of operator.
void Grouper::find_roots() {
  const NodeCounts outputs = escapes(ir_);
  mark_outputs();
  mark_operators();
  number_calls();
  pad_rows();
  lay_out_attention();
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (ir_[id].op == Op::dot) find_region(id, outputs);
  for (NodeId id = 0; id < ir_.size() && target_ && target_->machine().has_clusters(); ++id)
    if (const NodeId cache = kv_append(ir_, users_, id); cache >= 0) kv_caches_[id] = cache, appends_.insert(cache);
  for (const DotRegion& region : dots_) mark_operands_of(region);
  find_sorted_rows();
  count_gathered_points();
  for (NodeId id = 0; id < ir_.size(); ++id) mark_operands(id);
  mark_sorted_rows();
  if (target_) mark_scatter_rows();
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (ir_[id].gemv) mark_gemv_vector(id);
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (ir_[id].gemv) mark_gemv_result(id, outputs);
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (strides_[id].empty()) strides_[id] = row_major_strides(ir_[id].type.shape);
}

void Grouper::mark(NodeId node) {
  if (!is_leaf(ir_, node)) base_root_[node] = true;
}

/// Marks the nodes in whose memory outputs lie, row-major.
void Grouper::mark_outputs() {
  for (NodeId id : ir_.outputs) {
    const NodeId node = output_node(ir_, id);
    mark(node);
    if (!is_leaf(ir_, node)) strides_[node] = row_major_strides(ir_[node].type.shape);
  }
}

/// Marks the results of operators that no other group computes inline.
void Grouper::mark_operators() {
  for (NodeId id = 0; id < ir_.size(); ++id) {
    const Op op = ir_[id].op;
    if (op == Op::reduce || op == Op::dot || op == Op::cumulative || writes_operand(op) || is_call(op) ||
        ir_[id].materialized || ir_[id].compute == Compute::root)
      mark(id);
  }
}

/// Gives each call an id, which the nodes of its results share.
void Grouper::number_calls() {
  std::map<std::string, int> call_ids;
  for (NodeId id = 0; id < ir_.size(); ++id) {
    if (!is_call(ir_[id].op)) continue;
    auto [it, fresh] = call_ids.try_emplace(call_key(ir_[id]), static_cast<int>(calls_.size()));
    if (fresh) calls_.emplace_back();
    calls_[static_cast<size_t>(it->second)].push_back(id);
    call_of_[id] = it->second;
  }
  call_operands_.resize(calls_.size());
}

/// Returns whether a reader needs the node row-major: calls do, and scatters, which start from it.
bool Grouper::read_whole(NodeId node) const {
  const std::span<const NodeId> readers = users_[node];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
    return (is_call(ir_[reader].op) && !is_attention(ir_[reader])) ||
           (writes_operand(ir_[reader].op) && ir_[reader].inputs[0] == node);
  });
}

/// Chooses the layouts of attention's results, or their parts in one array.
void Grouper::lay_out_attention() {
  for (const std::vector<NodeId>& results : calls_) {
    if (!is_attention(ir_[results[0]])) continue;
    for (const NodeId id : results)
      if (strides_[id].empty() && !read_whole(id)) strides_[id] = preferred_strides(ir_, users_, id);
    pack_results(results);
  }
}

/// Finds what a dot's kernel computes besides. Its results are roots in the dot's place. `outputs`: escapes of the
/// graph.
void Grouper::find_region(NodeId dot, const NodeCounts& outputs) {
  DotRegion region = region_of(dot, outputs);
  if (region.sum >= 0 && dot_of_.contains(region.sum)) region.sum = -1, region.summed = kernel::OperandSum::none;
  base_root_[dot] = false;
  mark(region.result);
  for (const NodeId id : region.stored) mark(id);
  const NodeId result = region.result;
  strides_[result] = layout_of(region);
  for (const NodeId id : region.stored) strides_[id] = strides_[result];
  for (const NodeId id : region.stored) dot_of_[id] = dots_.size();
  if (region.sum >= 0) dot_of_[region.sum] = dots_.size();
  dot_of_[result] = dots_.size();
  dots_.push_back(std::move(region));
}

/// Marks the operands of a dot that lie in memory, and what its prologues and its epilogue read there.
void Grouper::mark_operands_of(const DotRegion& region) {
  for (const NodeId operand : region.made) mark(operand);
  for (size_t side = 0; side < region.prologue.size(); ++side)
    if (!region.prologue[side]) mark(operand_base(ir_, strides_, base_root_, ir_[region.dot].inputs[side]));
}

/// Marks the operands that a scatter, a call or a gather reads from memory.
void Grouper::mark_operands(NodeId id) {
  const IrNode& node = ir_[id];
  if (writes_operand(node.op))
    mark(memory_of(ir_, strides_, base_root_, node.inputs[0]));  // updated in its own buffer, or copied as a whole
  if (is_attention(node)) {
    for (size_t k = kv_caches_.contains(id) ? 1 : 0; k < node.inputs.size(); ++k)
      mark(operand_base(ir_, strides_, base_root_, node.inputs[k]));
  } else if (is_call(node.op) && call_operands_[static_cast<size_t>(call_of_[id])].empty()) {
    // The operands are chosen once. A root that is marked later may lie between a view and its buffer; the buffer still
    // holds the operand.
    std::vector<NodeId>& operands = call_operands_[static_cast<size_t>(call_of_[id])];
    for (NodeId operand : node.inputs) operands.push_back(memory_of(ir_, strides_, base_root_, operand, true));
    for (NodeId operand : operands) mark(operand);
  }
  if (node.op == Op::gather && !sorted_rows_.contains(id)) mark_gathered(id);
}

/// Counts the elements that gathers take of each value.
void Grouper::count_gathered_points() {
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (ir_[id].op == Op::gather)
      gathered_points_[operand_base(ir_, strides_, base_root_, ir_[id].inputs[0])] += volume(ir_[id].type.shape);
}

/// Returns whether a value is computed wherever a gather takes an element of it: there are fewer of those than it has
/// elements, or the further operations, and reads of further arrays, take less time than to write and read it, by the
/// machine's stated rates.
bool Grouper::computed_where_gathered(NodeId base) const {
  // Operations of an element for its address, and for that of a word of four elements, as whole rows are gathered in.
  constexpr double element_address = 8, word_address = 2;
  constexpr double small = 16;  // an array so much smaller stays in a cache
  const auto elements = static_cast<double>(volume(ir_[base].type.shape)),
             points = static_cast<double>(gathered_points_.at(base));
  if (points < elements) return true;
  if (!target_ || !target_->machine().wants_many_programs()) return false;  // a CPU gathers lane by lane
  double operations = 0, bytes = 0;                                         // of an element
  std::set<NodeId> seen{base};
  std::vector<NodeId> pending{base};
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    const IrNode& n = ir_[node];
    if (node != base && (is_leaf(ir_, node) || base_root_[node])) {
      if (static_cast<double>(volume(n.type.shape)) * small >= elements) bytes += n.type.dtype.size();
      continue;
    }
    if (n.op == Op::gather) {
      const std::vector<int64_t>& axes = n.attrs->axes;
      const bool rows = std::find(axes.begin(), axes.end(), ir_[n.inputs[0]].type.rank() - 1) == axes.end();
      operations += rows ? word_address : element_address;
    } else {
      operations += operations_of(n);
    }
    for (const NodeId input : n.inputs)
      if (seen.insert(input).second) pending.push_back(input);
  }
  const double size = ir_[base].type.dtype.size();
  const target::Rates rates = target::stated_rates(target_->machine());
  const double again =
      operations * (points - elements) / rates.vector + points * std::max(0.0, bytes - size) / rates.memory();
  return again < 2 * elements * size / rates.memory();
}

/// Marks what a gather reads from memory.
void Grouper::mark_gathered(NodeId id) {
  const IrNode& node = ir_[id];
  const NodeId base = operand_base(ir_, strides_, base_root_, node.inputs[0]);
  const int64_t elements = volume(ir_[base].type.shape);
  const bool computes = is_elementwise(ir_[base].op) || ir_[base].op == Op::gather;
  if (computes && computed_where_gathered(base)) return;
  if (computes || ir_[base].op == Op::random_bits) mark(base);
  // A small part of a large array is gathered into its own buffer, so that the large one need not stay alive until
  // the gather's readers run.
  if (!is_leaf(ir_, base) && elements >= std::max<int64_t>(1 << 20, 64 * volume(node.type.shape))) mark(id);
}

/// Marks the vector of a GEMV (rewrite/gemv.h) as a root, in its narrow dtype: every program of the GEMV reads it, so
/// it is computed once, and before any cast that widens it.
void Grouper::mark_gemv_vector(NodeId reduction) {
  const auto widens = [&](NodeId id) {
    return ir_[id].op == Op::cast && is_low_float(ir_[ir_[id].inputs[0]].type.dtype);
  };
  std::vector<NodeId> factors{ir_[ir_[reduction].inputs[0]].inputs[0]};
  while (!factors.empty()) {
    NodeId row = factors.back();
    factors.pop_back();
    while ((is_movement(ir_[row].op) && ir_[row].op != Op::concat && ir_[row].op != Op::depends) || widens(row))
      row = ir_[row].inputs[0];
    const bool repeated =
        is_elementwise(ir_[row].op) && volume(ir_[row].type.shape) == volume(ir_[ir_[reduction].inputs[0]].type.shape);
    if (ir_[row].op == Op::reduce) continue;
    if (repeated && ir_[reduction].scaled)
      factors.insert(factors.end(), ir_[row].inputs.begin(), ir_[row].inputs.end());
    else if (ir_[reduction].scaled && ir_[row].op == Op::mul)
      factors.insert(factors.end(), ir_[row].inputs.begin(), ir_[row].inputs.end());
    else if (!is_leaf(ir_, row) && ir_[row].op != Op::constant) base_root_[row] = true;
  }
}

/// Marks the last value of the elementwise chain that a GEMV's result alone goes through: the vector of the next GEMV.
void Grouper::mark_gemv_result(NodeId reduction, const NodeCounts& outputs) {
  NodeId last = reduction;
  for (NodeId id = reduction;;) {
    const std::span<const NodeId> readers = users_[id];
    if (readers.size() != 1 || outputs[id] > 0 || (id != reduction && base_root_[id])) break;
    id = readers[0];
    if (is_elementwise(ir_[id].op)) last = id;
    else if (ir_[id].op != Op::reshape) break;
  }
  base_root_[last] = true;
  gemv_results_.insert(last);
}

}  // namespace weft::compiler
