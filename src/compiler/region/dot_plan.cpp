#include "compiler/region/dot_plan.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/layout/view.h"
#include "compiler/region/dot_epilogue.h"
#include "compiler/region/library_epilogue.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

Strides preferred_strides(const Ir& ir, const Users& users, NodeId node) {
  const Shape& shape = ir[node].type.shape;
  for (NodeId user : users[node]) {
    const Shape& read = ir[user].type.shape;
    if (ir[user].op == Op::reshape && is_static(shape) && is_static(read) && volume(shape) > 0) {
      const Strides after = preferred_strides(ir, users, user);
      if (is_row_major(read, after)) continue;
      if (const auto strides = reshaped_strides(read, after, shape)) return *strides;
    }
    if (ir[user].op != Op::permute) continue;
    const std::vector<int64_t>& order = ir[user].attrs->axes;
    Strides strides(shape.size());
    int64_t stride = 1;
    for (size_t k = order.size(); k-- > 0;) {
      strides[static_cast<size_t>(order[k])] = stride;
      stride *= shape[static_cast<size_t>(order[k])].bound();
    }
    return strides;
  }
  return row_major_strides(shape);
}

namespace {

/// Returns the view of a movement node, given that of its input; nothing if that needs index expressions.
std::optional<StridedView> moved(const Ir& ir, NodeId node, StridedView view) {
  const IrNode& n = ir[node];
  const Shape &from = ir[n.inputs[0]].type.shape, &to = n.type.shape;
  Strides strides;
  switch (n.op) {
    case Op::stop_gradient:
    case Op::depends: return view;
    case Op::permute:
      for (const int64_t axis : n.attrs->axes) strides.push_back(view.strides[static_cast<size_t>(axis)]);
      break;
    case Op::broadcast:
      strides.assign(to.size() - from.size(), 0);
      for (size_t k = 0; k < from.size(); ++k) strides.push_back(from[k].bound() == 1 ? 0 : view.strides[k]);
      break;
    case Op::slice:
      for (size_t k = 0; k < from.size(); ++k) {
        view.offset += n.attrs->start[k] * view.strides[k];
        strides.push_back(n.attrs->step.empty() ? view.strides[k] : n.attrs->step[k] * view.strides[k]);
      }
      break;
    case Op::reshape: {
      if (!is_static(from) || !is_static(to) || volume(from) == 0) return {};
      std::optional<Strides> found = reshaped_strides(from, view.strides, to);
      if (!found) return {};
      strides = std::move(*found);
      break;
    }
    default: return {};
  }
  view.strides = std::move(strides);
  return view;
}

/// Returns the view of an operand by strides alone, without index expressions; nothing if that is not possible.
std::optional<StridedView> constant_view(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                                         NodeId operand) {
  std::vector<NodeId> chain;
  NodeId node = operand;
  for (; is_movement(ir[node].op) && !roots[static_cast<size_t>(node)]; node = ir[node].inputs[0])
    chain.push_back(node);
  const Strides& memory = strides[node];
  std::optional<StridedView> view =
      StridedView{node, 0, memory.empty() ? row_major_strides(ir[node].type.shape) : memory};
  for (size_t k = chain.size(); view && k-- > 0;) view = moved(ir, chain[k], std::move(*view));
  const Shape& shape = ir[operand].type.shape;
  for (size_t k = 0; view && k < shape.size(); ++k)
    if (shape[k].bound() <= 1) view->strides[k] = 0;
  return view;
}

}  // namespace

/// The view ends at a movement node that is a root: it has a buffer of its own.
std::optional<StridedView> strided_view(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                                        NodeId operand) {
  if (std::optional<StridedView> view = constant_view(ir, strides, roots, operand)) return view;
  ix::Context cx;
  std::vector<Expr> vars = domain(cx, ir[operand].type.shape, "i");
  Access access{operand, vars, {}, {}};
  while (is_movement(ir[access.node].op) && !roots[static_cast<size_t>(access.node)]) {
    if (ir[access.node].op == Op::concat) return {};
    access = push(cx, ir, access.node, access.index);
    if (access.valid) return {};
  }
  const Strides& memory = strides[access.node];
  Strides layout = memory.empty() ? row_major_strides(ir[access.node].type.shape) : memory;
  auto form = ix::affine(ix::linear(cx, access.index, layout), vars);
  if (!form || !form->base.is_constant()) return {};
  for (size_t k = 0; k < vars.size(); ++k)
    if (vars[k].is_constant()) form->coefficients[k] = 0;
  return StridedView{access.node, form->base->value, form->coefficients};
}

namespace {

/// One axis of the contraction: its extent and how each array lies along it (not at all where it does not occur): A, B,
/// C, then the operands of the epilogue, of A's prologue and of B's.
struct Axis {
  Dim extent;
  std::vector<AxisLayout> arrays;
  int64_t a() const { return stride(0); }
  int64_t b() const { return stride(1); }
  int64_t c() const { return stride(2); }

 private:
  /// Of a side that is made from bits that share a word, from word to word.
  int64_t stride(size_t k) const { return arrays[k].stride != 0 ? arrays[k].stride : arrays[k].jump.by; }
};

/// Returns which arrays may jump along the contracted axis: those of prologues.
std::vector<bool> may_jump(const EpilogueParts& epilogue, const EpilogueParts& a, const EpilogueParts& b) {
  std::vector<bool> out{!a.axes.empty(), !b.axes.empty(), false};
  out.insert(out.end(), epilogue.axes.size(), false);
  out.insert(out.end(), a.axes.size() + b.axes.size(), true);
  return out;
}

/// Returns two adjacent axes as one; nothing if an array does not lie along them as along one.
std::optional<Axis> joined_axes(const Axis& outer, const Axis& inner, const std::vector<bool>& may_jump) {
  if (!outer.extent.is_static() || !inner.extent.is_static()) return {};
  Axis out{outer.extent.bound() * inner.extent.bound(), {}};
  for (size_t k = 0; k < outer.arrays.size(); ++k) {
    const auto both = joined(outer.arrays[k], inner.arrays[k], inner.extent.bound(), !may_jump.empty() && may_jump[k]);
    if (!both) return {};
    out.arrays.push_back(*both);
  }
  return out;
}

/// `may_jump`: of each array; empty if none may.
std::vector<Axis> merged(const std::vector<Axis>& axes, const std::vector<bool>& may_jump = {}) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (std::optional<Axis> both = result.empty() ? std::nullopt : joined_axes(result.back(), axis, may_jump))
      result.back() = std::move(*both);
    else result.push_back(axis);
  }
  return result;
}

/// Returns the innermost of the merged axes, and appends the others to `batch`. `arrays`: how many an axis has.
Axis split_last(std::vector<Axis> axes, std::vector<Axis>& batch, size_t arrays) {
  if (axes.empty()) return {1, std::vector<AxisLayout>(arrays)};
  Axis last = axes.back();
  axes.pop_back();
  batch.insert(batch.end(), axes.begin(), axes.end());
  return last;
}

bool contains(const std::vector<int64_t>& list, int64_t axis) { return std::count(list.begin(), list.end(), axis) > 0; }

}  // namespace

bool b_lies_across(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId dot) {
  const std::vector<int64_t>& contracted = ir[dot].attrs->axes2;
  if (contracted.empty()) return true;
  const NodeId b = ir[dot].inputs[1];
  const auto view = strided_view(ir, strides, roots, b);
  const auto along = view ? view->strides : row_major_strides(ir[b].type.shape);
  return along[static_cast<size_t>(contracted.back())] != 1;
}

NodeId operand_base(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand) {
  auto view = strided_view(ir, strides, roots, operand);
  return view ? view->node : operand;
}

NodeId memory_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId node, bool leaves) {
  auto view = strided_view(ir, strides, roots, node);
  if (!view || view->offset != 0 || view->node == node) return node;
  const IrNode& base = ir[view->node];
  bool computed = (leaves || base.op != Op::parameter) && base.op != Op::constant && base.op != Op::iota;
  bool same =
      volume(base.type.shape) == volume(ir[node].type.shape) && is_row_major(ir[node].type.shape, view->strides);
  return computed && same ? view->node : node;
}

namespace {

/// An operand of a dot: the array that a kernel walks along, how it lies along the operand's axes, and its prologue, if
/// it has one.
struct Operand {
  OperandView view;
  std::vector<AxisLayout> axes;
  EpilogueParts prologue;
};

Operand operand_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotRegion& region,
                   size_t side) {
  const NodeId id = ir[region.dot].inputs[side], base = operand_base(ir, strides, roots, id);
  if (!region.prologue[side] || is_leaf(ir, base) || roots[base]) {
    auto view = strided_view(ir, strides, roots, id);
    if (!view) throw_internal("plan_dot", "an operand is not a strided view: " + print(ir, region.dot));
    std::vector<AxisLayout> axes;
    for (const int64_t stride : view->strides) axes.push_back({stride, {}});
    return {{view->node, view->offset}, std::move(axes), {}};
  }
  EpilogueParts parts = prologue_of(ir, strides, roots, id);
  const auto size = [&](const OperandView& x) { return volume(ir[x.node].type.shape); };
  const auto largest = std::max_element(parts.operands.begin(), parts.operands.end(),
                                        [&](const OperandView& x, const OperandView& y) { return size(x) < size(y); });
  const OperandView view = *largest;
  std::vector<AxisLayout> axes = parts.axes[static_cast<size_t>(largest - parts.operands.begin())];
  return {view, std::move(axes), std::move(parts)};
}

/// The axes of a dot, with the strides of all its arrays.
class DotAxes {
 public:
  DotAxes(const Ir& ir, NodeId dot, const Operand& a, const Operand& b, const Strides& c, const EpilogueParts& epilogue)
      : a_(a), b_(b), c_(c), epilogue_(epilogue), at_(*ir[dot].attrs), sa_(ir[ir[dot].inputs[0]].type.shape),
        sb_(ir[ir[dot].inputs[1]].type.shape) {
    for (; out_ < at_.batch.size(); ++out_) batch.push_back(axis(at_.batch[out_], at_.batch2[out_], true));
    for (int64_t i = 0; i < static_cast<int64_t>(sa_.size()); ++i)
      if (!contains(at_.batch, i) && !contains(at_.axes, i)) m.push_back(axis(i, -1, true)), ++out_;
    for (int64_t i = 0; i < static_cast<int64_t>(sb_.size()); ++i)
      if (!contains(at_.batch2, i) && !contains(at_.axes2, i)) n.push_back(axis(-1, i, true)), ++out_;
    for (size_t i = 0; i < at_.axes.size(); ++i) k.push_back(axis(at_.axes[i], at_.axes2[i], false));
  }

  std::vector<Axis> batch, m, n, k;

 private:
  /// Returns the axis that is number `in_a` of A and `in_b` of B (-1: it has none). `in_c`: it is the next one of C.
  Axis axis(int64_t in_a, int64_t in_b, bool in_c) const {
    const auto of = [](const std::vector<AxisLayout>& axes, int64_t axis) {
      return axis < 0 ? AxisLayout{} : axes[static_cast<size_t>(axis)];
    };
    const int64_t c = in_c ? static_cast<int64_t>(out_) : -1;
    Axis out{in_a >= 0 ? sa_[static_cast<size_t>(in_a)] : sb_[static_cast<size_t>(in_b)],
             {of(a_.axes, in_a), of(b_.axes, in_b), {c < 0 ? 0 : c_[static_cast<size_t>(c)], {}}}};
    for (const std::vector<AxisLayout>& x : epilogue_.axes) out.arrays.push_back(of(x, c));
    for (const std::vector<AxisLayout>& x : a_.prologue.axes) out.arrays.push_back(of(x, in_a));
    for (const std::vector<AxisLayout>& x : b_.prologue.axes) out.arrays.push_back(of(x, in_b));
    return out;
  }

  const Operand &a_, &b_;
  const Strides& c_;
  const EpilogueParts& epilogue_;
  const graph::Attrs& at_;
  const Shape &sa_, &sb_;
  size_t out_ = 0;
};

/// Fills in where the operands of an epilogue or prologue lie. `first`: the first one's position among the strides.
void set_strides(std::vector<kernel::EpilogueOperand>& operands, size_t first, const std::vector<Axis>& batch,
                 const Axis& m, const Axis& n) {
  for (size_t x = 0; x < operands.size(); ++x) {
    kernel::EpilogueOperand& to = operands[x];
    for (const Axis& axis : batch) to.batch.push_back(axis.arrays[first + x].stride);
    to.m = m.arrays[first + x].stride, to.m_jump = m.arrays[first + x].jump;
    to.n = n.arrays[first + x].stride, to.n_jump = n.arrays[first + x].jump;
  }
}

/// Fills in the extents and strides of A, B and C.
void set_matrices(kernel::DotDesc& d, const std::vector<Axis>& batch, const Axis& m, const Axis& n, const Axis& k) {
  for (const Axis& axis : batch) {
    d.batch.push_back(axis.extent.bound());
    d.a_batch.push_back(axis.a());
    d.b_batch.push_back(axis.b());
    d.c_batch.push_back(axis.c());
  }
  d.m = m.extent.bound(), d.n = n.extent.bound(), d.k = k.extent.bound();
  d.a_m = m.a(), d.a_k = k.a(), d.b_k = k.b(), d.b_n = n.b(), d.c_m = m.c(), d.c_n = n.c();
  // An axis of extent 1 has no stride of its own: give it the dense one, so that libraries see plain matrices.
  if (d.m == 1) d.a_m = std::max<int64_t>(1, d.a_k * d.k), d.c_m = std::max<int64_t>(1, d.c_n * d.n);
  if (d.n == 1) d.b_n = d.b_k == 1 ? d.k : 1, d.c_n = 1;
  if (d.k == 1) d.a_k = d.a_m == 1 ? std::max<int64_t>(2, d.m) : 1, d.b_k = d.b_n == 1 ? d.n : 1;
}

}  // namespace

DotPlan plan_dot(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotRegion& region,
                 const Numerics& numerics) {
  const NodeId dot = region.dot;
  Operand a = operand_of(ir, strides, roots, region, 0), b = operand_of(ir, strides, roots, region, 1);
  EpilogueParts parts = epilogue_of(ir, strides, roots, region);
  const DotAxes axes(ir, dot, a, b, strides[region.result], parts);
  const std::vector<bool> jumps = may_jump(parts, a.prologue, b.prologue);
  const size_t arrays = jumps.size();
  std::vector<Axis> batch = merged(axes.batch), contracted = merged(axes.k, jumps);
  if (contracted.size() > 1) throw_internal("plan_dot", "contracted axes do not lie together: " + print(ir, dot));
  const Axis k = contracted.empty() ? Axis{1, std::vector<AxisLayout>(arrays)} : contracted[0];
  const Axis m = split_last(merged(axes.m), batch, arrays), n = split_last(merged(axes.n), batch, arrays);
  batch = merged(batch);

  DotPlan plan;
  plan.a = a.view;
  plan.b = b.view;
  plan.desc.a = ir[ir[dot].inputs[0]].type.dtype;
  plan.desc.b = ir[ir[dot].inputs[1]].type.dtype;
  plan.desc.c = ir[region.result].type.dtype;
  set_matrices(plan.desc, batch, m, n, k);
  for (const Axis& axis : batch) plan.extents.push_back(axis.extent);
  plan.extents.insert(plan.extents.end(), {m.extent, n.extent, k.extent});
  size_t first = 3;
  set_strides(parts.epilogue.operands, first, batch, m, n);
  set_strides(a.prologue.epilogue.operands, first += parts.axes.size(), batch, m, k);
  set_strides(b.prologue.epilogue.operands, first += a.prologue.axes.size(), batch, n, k);
  plan.epilogue = std::move(parts.epilogue), plan.operands = std::move(parts.operands);
  plan.a_prologue = {std::move(a.prologue.epilogue), std::move(a.prologue.operands)};
  plan.b_prologue = {std::move(b.prologue.epilogue), std::move(b.prologue.operands)};
  plan.stored = region.stored;
  plan.sum = region.sum;
  plan.desc.sum = region.summed;
  plan.desc.numerics = numerics;
  if (plan.a_prologue.empty() && plan.b_prologue.empty()) ask_library(plan);
  return plan;
}

std::shared_ptr<const target::LibraryCall> library_for(const DotPlan& plan, const target::Target& target,
                                                       const Policy& policy) {
  const bool is_static =
      std::all_of(plan.extents.begin(), plan.extents.end(), [](const Dim& d) { return d.is_static(); });
  if (!plan.asked || !policy.libraries || !target::libraries_enabled() || !is_static) return nullptr;
  return target.library(*plan.asked);
}

std::vector<std::pair<NodeId, int64_t>> library_operands(const Ir& ir, const DotPlan& plan, NodeId result) {
  std::vector<std::pair<NodeId, int64_t>> operands;
  for (const OperandView& x : plan.asked_operands)
    operands.emplace_back(x.node, x.offset * ir[x.node].type.dtype.size());
  operands.emplace_back(result, 0);
  return operands;
}

}  // namespace weft::compiler
