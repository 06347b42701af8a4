// Work that libraries add to a matmul or attention: longer epilogues, and results stored as parts of other arrays.
#include "compiler/fusion/grouper.h"

namespace weft::compiler {

/// Returns the epilogue of a dot: a longer one than generated code computes if a library takes it. cuBLASLt's sums of
/// 16-bit operands are not used: on Hopper they make a matmul take a third longer, which is twice the time of a pass
/// over the operand. Sums of the result are computed in the epilogue.
DotChain Grouper::chain_of(NodeId dot, const NodeCounts& outputs) {
  const DotChain chain = dot_chain(ir_, users_, outputs, strides_, base_root_, dot);
  if (!target_ || chain.sum >= 0) return chain;
  for (const bool followed : {true, false})
    if (const auto scaled = scaled_chain(ir_, users_, outputs, strides_, base_root_, dot, followed);
        scaled && library_takes(*scaled))
      return *scaled;
  std::optional<DotChain> longer = with_pre_activation(ir_, users_, outputs, strides_, chain);
  if (!longer) longer = widened_for_scatter(ir_, users_, outputs, chain);
  if (longer && longer->pre_activation >= 0)
    if (const auto summed = with_sums(ir_, users_, *longer); summed && library_takes(*summed)) return *summed;
  return longer && library_takes(*longer) ? *longer : chain;
}

/// Returns whether the target's library takes the matmul with its whole chain, given the layouts that its arrays would
/// have.
bool Grouper::library_takes(const DotChain& chain) {
  std::vector<NodeId>
      tried;  // set for this question alone; copying all strides for each matmul would be quadratic in the layers
  const auto set = [&](NodeId node, Strides s) {
    if (node < 0 || !strides_[node].empty()) return;
    strides_[node] = std::move(s);
    tried.push_back(node);
  };
  if (chain.pre_activation >= 0)
    for (const NodeId node : {chain.pre_activation, chain.result}) set(node, row_major_strides(ir_[node].type.shape));
  set(chain.result, preferred_strides(ir_, users_, chain.result));
  for (const NodeId operand : ir_[chain.dot].inputs) {
    const NodeId base = operand_base(ir_, strides_, base_root_, operand);
    set(base, row_major_strides(ir_[base].type.shape));
  }
  const bool takes =
      library_for(plan_dot(ir_, strides_, base_root_, chain, policy_.numerics), *target_, policy_) != nullptr;
  for (const NodeId node : tried) strides_[node].clear();
  return takes;
}

/// Stores the gradients of queries, keys and values that come from one matmul as parts of the gradient of its result.
void Grouper::pack_results(const std::vector<NodeId>& results) {
  std::map<NodeId, PackedResult> parts;
  for (const NodeId id : results) {
    const auto part = packed_result(ir_, users_, strides_, base_root_, id);
    if (!part || base_root_[part->node] ||
        part->node != packed_result(ir_, users_, strides_, base_root_, results[0])->node)
      return;
    parts[id] = *part;
  }
  const NodeId whole = parts.at(results[0]).node;
  if (ir_[whole].inputs.size() != results.size()) return;
  for (const NodeId id : results) base_root_[id] = false;
  base_root_[whole] = true;
  strides_[whole] = row_major_strides(ir_[whole].type.shape);
  packed_.merge(parts);
  packs_[whole] = results[0];
}

}  // namespace weft::compiler
