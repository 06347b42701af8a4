// What may follow a dot where a library answers it, beyond what generated code does.
#include "compiler/activation.h"
#include "compiler/dot_plan.h"

namespace weft::compiler {

using graph::Op;

std::optional<DotChain> with_argument(const Ir& ir, const Users& users, const std::vector<int>& outputs, const std::vector<Strides>& strides, const DotChain& chain) {
  const IrNode& dot = ir[chain.dot];
  if (chain.residual >= 0 || chain.activation != kernel::Activation::none || chain.sum >= 0 || dot.type.dtype.size != 2) return {};
  const auto plain = [&](int node) {
    const Strides& s = strides[static_cast<size_t>(node)];
    return s.empty() || s == row_major_strides(ir[node].type.shape);
  };
  DotChain out = chain;
  if (const int result = gelu_of(ir, users, chain.result); result >= 0) {
    out.argument = chain.result, out.result = result, out.argument_is = kernel::ActivationArgument::written;
  } else if (const auto found = gelu_slope_behind(ir, users, outputs, chain.result); found && chain.bias < 0) {
    out.argument = found->argument, out.result = found->result, out.argument_is = kernel::ActivationArgument::slope;
  } else {
    return {};
  }
  out.activation = kernel::Activation::gelu_tanh;
  if (!plain(out.result) || !plain(out.argument)) return {};
  return out;
}

std::optional<DotChain> widened_for_scatter(const Ir& ir, const Users& users, const std::vector<int>& outputs, const DotChain& chain) {
  if (chain.result != chain.dot || ir[chain.dot].type.dtype.size != 2) return {};
  const int wide = only_reader(users, outputs, chain.dot);
  if (wide < 0 || ir[wide].op != Op::cast || ir[wide].type.dtype != float32) return {};
  int last = wide, reader = only_reader(users, outputs, wide);
  for (; reader >= 0 && (ir[reader].op == Op::permute || ir[reader].op == Op::reshape); reader = only_reader(users, outputs, last)) last = reader;
  if (reader < 0 || !writes_operand(ir[reader].op) || ir[reader].inputs[0] != last) return {};
  DotChain out = chain;
  out.result = wide;
  return out;
}

}  // namespace weft::compiler
