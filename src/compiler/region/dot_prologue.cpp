#include "compiler/region/dot_prologue.h"

#include <algorithm>

#include "compiler/region/dot_epilogue.h"
#include "compiler/region/dot_plan.h"
#include "graph/table.h"

namespace weft::compiler {

namespace {

/// Basic operations of a prologue for each element that is loaded. In the block form an element is packed once and
/// takes part in 240 multiply-adds, so that 16 operations are 3 % of the work.
constexpr double most_operations = 16;

double bytes(const IrNode& n) {
  return static_cast<double>(volume(n.type.shape)) * static_cast<double>(n.type.dtype.size());
}

/// Returns the operations of an operator that is an instruction or a conversion; too many for one that is expanded.
double operations_of(const IrNode& n) {
  constexpr double conversion = 2;
  if (n.op == graph::Op::cast) return conversion;
  const int scalar = graph::row(n.op).scalar;
  if (scalar < 0) return 0;
  const kernel::ScalarInfo& info = kernel::info(static_cast<kernel::ScalarOp>(scalar));
  return info.basic ? info.flops : most_operations + 1;
}

/// Returns whether the contracted axes lie together in each array, so that one stride says where the next k is.
bool contracts_together(const Shape& shape, const std::vector<int64_t>& axes, const std::vector<Strides>& arrays) {
  for (const Strides& strides : arrays) {
    const Dim* outer = nullptr;
    int64_t stride = 0;
    for (const int64_t axis : axes) {
      const auto at = static_cast<size_t>(axis);
      if (shape[at] == 1) continue;
      if (outer && (!shape[at].is_static() || stride != strides[at] * shape[at].bound())) return false;
      outer = &shape[at], stride = strides[at];
    }
  }
  return true;
}

}  // namespace

std::optional<ComputedOperand> computed_operand(const RegionContext& cx, NodeId dot, size_t side) {
  const Ir& ir = cx.ir;
  const NodeId operand = ir[dot].inputs[side], base = operand_base(ir, cx.strides, cx.roots, operand);
  const IrNode& n = ir[base];
  if (is_leaf(ir, base) || cx.roots[base] || cx.outputs[base] > 0 || !is_elementwise(n.op)) return {};
  ix::Context index;
  const std::vector<ix::Expr> vars = domain(index, ir[operand].type.shape, "i");
  EpilogueReads reads{ir, cx.strides, cx.roots, index, vars, volume(n.type.shape)};
  if (!reads.computable(operand, vars)) return {};
  double operations = 0, read = 0;
  for (const auto& [id, at] : reads.computed) operations += operations_of(ir[id]);
  for (const NodeId id : reads.nodes) read += bytes(ir[id]);
  // One array of the operand's size, in another dtype: what is computed in the operand's own dtype stays in the kernel
  // that makes it.
  const auto is_whole = [&](NodeId id) { return volume(ir[id].type.shape) >= volume(n.type.shape); };
  const auto whole = std::find_if(reads.nodes.begin(), reads.nodes.end(), is_whole);
  const bool converts = whole != reads.nodes.end() && ir[*whole].type.dtype != n.type.dtype &&
                        std::count_if(reads.nodes.begin(), reads.nodes.end(), is_whole) == 1;
  // Each reader of the operand reads what it is made from, or it is made once, stored, and read by each.
  const auto readers = static_cast<double>(cx.users[base].size());
  if (operations > most_operations || !converts || readers * read >= read + (1 + readers) * bytes(n)) return {};
  NodeFlags roots = cx.roots;
  for (const NodeId id : reads.made) roots[id] = true;
  const std::vector<int64_t>& contracted = side == 0 ? ir[dot].attrs->axes : ir[dot].attrs->axes2;
  if (!contracts_together(ir[operand].type.shape, contracted, prologue_of(ir, cx.strides, roots, operand).strides))
    return {};
  return ComputedOperand{std::move(reads.made)};
}

}  // namespace weft::compiler
