#include "compiler/region/matmul_operands.h"

#include <algorithm>
#include <map>

#include "compiler/ir/rewriter.h"
#include "compiler/region/dot_plan.h"
#include "kernels/gemm/tiles.h"

namespace weft::compiler {

using graph::Op;

namespace {

using Axes = std::vector<int64_t>;

class OperandPreparer : Rewriter {
 public:
  /// `libraries`: the target's are asked. `tf32`: float32 is rounded to TF32.
  OperandPreparer(Ir ir, const target::Target& target, bool libraries, bool tf32)
      : Rewriter(std::move(ir)), target_(target), libraries_(libraries), tf32_(tf32) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      return node.op == Op::dot ? dot(std::move(node)) : add(std::move(node));
    });
  }

 private:
  static Axes free_first(const Shape& shape, const Axes& contracted) {
    Axes order;
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      if (std::count(contracted.begin(), contracted.end(), axis) == 0) order.push_back(axis);
    order.insert(order.end(), contracted.begin(), contracted.end());
    return order;
  }

  /// Returns whether the operand lies in memory with its axes in this order, from outermost to innermost. A value that
  /// is no view of another array is stored row-major.
  bool lies(NodeId v, const Axes& order) const {
    const auto view = strided_view(to_, NodeStrides(to_.nodes.size()), NodeFlags(to_.nodes.size()), v);
    int64_t before = INT64_MAX;
    for (int64_t axis : order) {
      const auto k = static_cast<size_t>(axis);
      if (to_[v].type.shape[k] == 1) continue;
      const int64_t stride = view ? view->strides[k] : -axis;
      if (stride >= before) return false;
      before = stride;
    }
    return true;
  }

  NodeId transposed(NodeId v, const Axes& order) {
    if (lies(v, order)) return v;
    NodeId& copy = transposed_.try_emplace({v, order}, -1).first->second;
    if (copy >= 0) return copy;
    const Dtype dtype = to_[v].type.dtype;
    Shape shape;
    for (int64_t axis : order) shape.push_back(to_[v].type.shape[static_cast<size_t>(axis)]);
    IrNode permuted = made(Op::permute, {v}, shape, dtype);
    permuted.attrs.edit().axes = order;
    const int moved = add(std::move(permuted));
    IrNode kept =
        made(Op::bitcast, {moved}, shape, dtype);  // to its own dtype: a copy that is stored as an elementwise value
    kept.attrs.edit().dtype = dtype;
    return copy = add(std::move(kept));
  }

  /// Returns the matmul with its operands' contracted axes innermost, or outermost.
  kernel::DotDesc desc_of(const IrNode& node, const Axes& a_order, const Axes& b_order, bool a_innermost,
                          bool b_innermost) const {
    const graph::Type &a = to_[node.inputs[0]].type, &b = to_[node.inputs[1]].type;
    kernel::DotDesc d;
    d.a = a.dtype, d.b = b.dtype, d.c = node.type.dtype;
    d.m = d.n = d.k = 1;
    const size_t depth = node.attrs->axes.size();
    for (size_t k = 0; k < a_order.size(); ++k)
      (k + depth < a_order.size() ? d.m : d.k) *= a.shape[static_cast<size_t>(a_order[k])].bound();
    for (size_t k = 0; k + depth < b_order.size(); ++k) d.n *= b.shape[static_cast<size_t>(b_order[k])].bound();
    d.a_m = a_innermost ? d.k : 1, d.a_k = a_innermost ? 1 : d.m;
    d.b_n = b_innermost ? d.k : 1, d.b_k = b_innermost ? 1 : d.n;
    d.c_m = d.n, d.c_n = 1;
    return d;
  }

  /// Returns whether a library takes the matmul, of operands as they lie or transposed.
  bool library_takes(const IrNode& node, const Axes& a_order, const Axes& b_order) const {
    return libraries_ && (target_.library(desc_of(node, a_order, b_order, lies(node.inputs[0], a_order),
                                                  lies(node.inputs[1], b_order))) ||
                          target_.library(desc_of(node, a_order, b_order, true, true)));
  }

  /// Returns whether transposed copies of operands are worth it: a library takes the matmul then and not before, or
  /// tensor cores multiply it, by a kernel for operands of one dtype.
  bool helps(const IrNode& node, const Axes& a_order, const Axes& b_order) const {
    const kernel::DotDesc now = desc_of(node, a_order, b_order, lies(node.inputs[0], a_order),
                                        lies(node.inputs[1], b_order)),
                          then = desc_of(node, a_order, b_order, true, true);
    if (libraries_ && target_.library(now)) return false;
    if (libraries_ && target_.library(then)) return true;
    if (now.a == float32) return is_faster(now);
    return now.a == now.b && now.m > 1 && now.n > 1 && target_.machine().tensor_core_bytes(now.a) > 0;
  }

  /// Returns whether a matmul in TF32 and the copies of its operands are predicted to take less time than the matmul
  /// of the operands as they lie.
  bool is_faster(const kernel::DotDesc& now) const {
    const target::Machine& machine = target_.machine();
    if (now.b != float32 || now.m == 1 || now.n == 1 || machine.tensor_core_bytes(float32) == 0 ||
        machine.bandwidth <= 0)
      return false;
    kernels::GemmWork work{float32, 1, now.m, now.n, now.k};
    work.bytes = now.c.size();
    const double as_it_is = kernels::gemm_tiling(machine, work).seconds;
    work.along_depth = true;
    double then = kernels::gemm_tiling(machine, work).seconds;
    for (const auto& [copied, rows] : {std::pair{now.a_k != 1, now.m}, std::pair{now.b_k != 1, now.n}})
      if (copied) then += machine.launch_seconds + 8.0 * static_cast<double>(rows * now.k) / machine.bandwidth;
    return then < as_it_is;
  }

  /// Adds a matmul of 8-bit floats of two kinds as one of float16, which holds the numbers of both: no kernel on tensor
  /// cores takes two kinds.
  NodeId of_halves(IrNode node) {
    for (NodeId& operand : node.inputs) {
      IrNode wide = made(Op::cast, {operand}, to_[operand].type.shape, float16);
      wide.attrs.edit().dtype = float16;
      operand = add(std::move(wide));
    }
    const Dtype dtype = node.type.dtype;
    if (dtype == float16 || dtype == float32) return add(std::move(node));
    const Shape shape = node.type.shape;
    node.type.dtype = float32;
    IrNode rounded = made(Op::cast, {add(std::move(node))}, shape, dtype);
    rounded.attrs.edit().dtype = dtype;
    return add(std::move(rounded));
  }

  /// Adds a matmul, with transposed copies of its operands if these help.
  NodeId dot(IrNode node) {
    const graph::Type &a = to_[node.inputs[0]].type, &b = to_[node.inputs[1]].type;
    const auto is_static = [](const Shape& shape) {
      return std::all_of(shape.begin(), shape.end(), [](const Dim& n) { return n.is_static(); });
    };
    const bool narrow = a.dtype.size() == 1 && b.dtype.size() == 1, tf32 = tf32_ && a.dtype == float32;
    if ((!narrow && !tf32) || !node.attrs->batch.empty() || !is_static(a.shape) || !is_static(b.shape))
      return add(std::move(node));
    const Axes a_order = free_first(a.shape, node.attrs->axes), b_order = free_first(b.shape, node.attrs->axes2);
    if (is_float8(a.dtype) && is_float8(b.dtype) && a.dtype != b.dtype && !library_takes(node, a_order, b_order) &&
        target_.machine().tensor_core_bytes(float16) > 0)
      return of_halves(std::move(node));
    if ((lies(node.inputs[0], a_order) && lies(node.inputs[1], b_order)) || !helps(node, a_order, b_order))
      return add(std::move(node));
    graph::Attrs& attrs = node.attrs.edit();
    side(node.inputs[0], a_order, attrs.axes);
    side(node.inputs[1], b_order, attrs.axes2);
    return add(std::move(node));
  }

  /// Replaces the operand by its transposed copy with the contracted axes last, unless it lies in that order.
  void side(NodeId& operand, const Axes& order, Axes& contracted) {
    if (lies(operand, order)) return;
    operand = transposed(operand, order);
    for (size_t k = 0; k < contracted.size(); ++k)
      contracted[k] = static_cast<int64_t>(order.size() - contracted.size() + k);
  }

  const target::Target& target_;
  const bool libraries_, tf32_;
  std::map<std::pair<NodeId, Axes>, NodeId> transposed_;
};

}  // namespace

Ir prepare_matmul_operands(Ir ir, const target::Target& target, const Policy& policy) {
  const bool tf32 = policy.numerics.tf32 && target.machine().whole_rows_of_products();
  const bool any = std::any_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& n) {
    if (n.op != Op::dot) return false;
    const Dtype operands = ir[n.inputs[0]].type.dtype;
    return operands.size() == 1 || (tf32 && operands == float32);
  });
  if (!any) return ir;
  return OperandPreparer(std::move(ir), target, policy.libraries && target::libraries_enabled(), tf32).run();
}

}  // namespace weft::compiler
