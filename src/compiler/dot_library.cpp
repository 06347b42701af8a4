// What may follow a dot where a library answers it, beyond what generated code does.
#include <algorithm>

#include "compiler/activation.h"
#include "compiler/dot_plan.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

std::optional<DotChain> with_argument(const Ir& ir, const std::vector<std::vector<int>>& users, const std::vector<int>& outputs, const std::vector<Strides>& strides, const DotChain& chain) {
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

std::optional<DotChain> widened_for_scatter(const Ir& ir, const std::vector<std::vector<int>>& users, const std::vector<int>& outputs, const DotChain& chain) {
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

namespace {

/// The last axis of `operand`'s base is its axis `free`, and the others are what is left: the base's row-major columns are the operand's lines.
bool columns_of(const Ir& ir, int operand, int base, size_t free) {
  ix::Context cx;
  const std::vector<Expr> vars = domain(cx, ir[operand].type.shape, "i");
  Access access{operand, vars, {}, {}};
  while (access.node != base) access = push(cx, ir, access.node, access.index);
  if (access.index.empty() || vars[free].is_constant() || !(access.index.back() == vars[free])) return false;
  return std::none_of(access.index.begin(), access.index.end() - 1, [&](Expr e) { return ix::depends_on(e, vars[free]); });
}

/// From a float32 cast of an array through sums of everything but its last axis to the cast of the total to `dtype`, or -1.
int rounded_column_sum(const Ir& ir, const std::vector<std::vector<int>>& users, const std::vector<int>& outputs, int cast, Dtype dtype, std::vector<int>& between) {
  const Dim columns = ir[cast].type.shape.back();
  int id = cast;
  for (int next = only_reader(users, outputs, id); next >= 0; id = next, next = only_reader(users, outputs, id)) {
    const IrNode& n = ir[next];
    if (n.type.shape.empty() || !(n.type.shape.back() == columns)) return -1;
    if (n.op == Op::cast) return n.type.rank() == 1 && n.type.dtype == dtype && !between.empty() ? next : -1;
    const bool sum = n.op == Op::fold && n.attrs.reducer == kernel::Reducer::sum && n.type.dtype == float32 &&
                     std::find(n.attrs.axes.begin(), n.attrs.axes.end(), ir[id].type.rank() - 1) == n.attrs.axes.end();
    if (!sum && n.op != Op::reshape) return -1;
    if (sum) between.push_back(next);
  }
  return -1;
}

}  // namespace

std::optional<DotChain> with_half_sum(const Ir& ir, const std::vector<std::vector<int>>& users, const std::vector<int>& outputs, const std::vector<Strides>& strides,
                                      const std::vector<bool>& roots, const DotChain& chain, std::vector<int>& between) {
  const IrNode& dot = ir[chain.dot];
  if (dot.type.dtype.size != 2 || dot.type.rank() != 2 || !dot.attrs.batch.empty() || chain.result != chain.dot) return {};
  const int last_read = std::max(operand_base(ir, strides, roots, dot.inputs[0]), operand_base(ir, strides, roots, dot.inputs[1]));
  for (size_t side = 0; side < 2; ++side) {
    const int operand = dot.inputs[side];
    const std::vector<int64_t>& contracted = side == 0 ? dot.attrs.axes : dot.attrs.axes2;
    size_t free = 0;
    while (std::find(contracted.begin(), contracted.end(), static_cast<int64_t>(free)) != contracted.end()) ++free;
    int base = operand;
    while (ir[base].op == Op::permute || ir[base].op == Op::reshape) base = ir[base].inputs[0];
    if (ir[operand].type.rank() != 2 || ir[operand].type.dtype != dot.type.dtype || !columns_of(ir, operand, base, free)) continue;
    for (const int id : users[static_cast<size_t>(base)]) {
      if (ir[id].op != Op::cast || ir[id].type.dtype != float32) continue;
      between.clear();
      const int sum = rounded_column_sum(ir, users, outputs, id, dot.type.dtype, between);
      if (sum < last_read) continue;
      DotChain out = chain;
      out.sum = sum;
      out.summed = side == 0 ? kernel::OperandSum::a : kernel::OperandSum::b;
      return out;
    }
  }
  return {};
}

}  // namespace weft::compiler
