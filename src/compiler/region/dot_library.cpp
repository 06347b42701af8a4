// Finds epilogues that libraries compute with a dot and generated code does not.
#include "compiler/region/activation.h"
#include "compiler/region/dot_plan.h"

namespace weft::compiler {

using graph::Op;

std::optional<DotChain> with_pre_activation(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const NodeStrides& strides, const DotChain& chain) {
  const IrNode& dot = ir[chain.dot];
  if (chain.residual >= 0 || chain.activation != kernel::Activation::none || chain.sum >= 0 ||
      dot.type.dtype.size() != 2)
    return {};
  const auto plain = [&](NodeId node) {
    const Strides& s = strides[node];
    return s.empty() || s == row_major_strides(ir[node].type.shape);
  };
  DotChain out = chain;
  if (const NodeId result = gelu_of(ir, users, chain.result); result >= 0) {
    out.pre_activation = chain.result, out.result = result, out.pre_activation_is = kernel::PreActivation::stored;
  } else if (const auto found = following_gelu_derivative(ir, users, outputs, chain.result); found && chain.bias < 0) {
    out.pre_activation = found->pre_activation, out.result = found->result,
    out.pre_activation_is = kernel::PreActivation::derivative;
  } else {
    return {};
  }
  out.activation = kernel::Activation::gelu_tanh;
  if (!plain(out.result) || !plain(out.pre_activation)) return {};
  return out;
}

/// Compares the depth of the contraction with the least at which the epilogue's sums are hidden behind the
/// multiplications of the next tile. Measured on an H200, a training step without and with sums: GPT-2 350M (depth
/// 1024) 143.9 and 145.5 ms, 774M (depth 1280) 308.9 and 302.9 ms.
bool hides_sums(const Ir& ir, NodeId dot) {
  constexpr int64_t least_depth = 1280;
  int64_t depth = 1;
  const Shape& from = ir[ir[dot].inputs[0]].type.shape;
  for (const int64_t axis : ir[dot].attrs->axes)
    depth *= from[static_cast<size_t>(axis)].is_static() ? from[static_cast<size_t>(axis)].bound() : 0;
  return depth >= least_depth;
}

std::optional<DotChain> with_sums(const Ir& ir, const Users& users, const DotChain& chain) {
  const Shape& shape = ir[chain.result].type.shape;
  if (!hides_sums(ir, chain.dot) || chain.sum >= 0 || !is_low_float(ir[chain.result].type.dtype) || shape.empty())
    return {};
  // Follow casts to float32 and reshapes to a reduction over one axis of rows_of_a_sum rows, before an axis of whole
  // rows.
  std::vector<NodeId> pending{chain.result};
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (const NodeId id : users[node]) {
      const IrNode& n = ir[id];
      if ((n.op == Op::cast && n.type.dtype == float32) || n.op == Op::reshape) pending.push_back(id);
      if (n.op != Op::reduce || n.attrs->reducer != kernel::Reducer::sum || n.type.dtype != float32 ||
          n.attrs->axes.size() != 1)
        continue;
      const Shape& from = ir[node].type.shape;
      const auto axis = static_cast<size_t>(n.attrs->axes[0]);
      if (axis + 2 != from.size() || !(from[axis] == Dim(kernel::rows_of_a_sum)) || !(from.back() == shape.back()))
        continue;
      DotChain out = chain;
      out.sum = id, out.summed = kernel::OperandSum::c;
      return out;
    }
  }
  return {};
}

std::optional<DotChain> widened_for_scatter(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const DotChain& chain) {
  if (chain.result != chain.dot || ir[chain.dot].type.dtype.size() != 2) return {};
  const int wide = only_reader(users, outputs, chain.dot);
  if (wide < 0 || ir[wide].op != Op::cast || ir[wide].type.dtype != float32) return {};
  int last = wide, reader = only_reader(users, outputs, wide);
  for (; reader >= 0 && (ir[reader].op == Op::permute || ir[reader].op == Op::reshape);
       reader = only_reader(users, outputs, last))
    last = reader;
  if (reader < 0 || !writes_operand(ir[reader].op) || ir[reader].inputs[0] != last) return {};
  DotChain out = chain;
  out.result = wide;
  return out;
}

}  // namespace weft::compiler
