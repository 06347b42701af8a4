#include "compiler/region/dot_plan.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/layout/view.h"
#include "compiler/region/activation.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

Strides preferred_strides(const Ir& ir, const Users& users, NodeId node) {
  const Shape& shape = ir[node].type.shape;
  for (NodeId user : users[node]) {
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

/// One axis of the contraction: its extent and its stride in A, B and C (0 where it does not occur).
struct Axis {
  Dim extent;
  int64_t a, b, c;
};

bool mergeable(const Axis& outer, const Axis& inner) {
  if (!outer.extent.is_static() || !inner.extent.is_static()) return false;
  int64_t n = inner.extent.bound();
  return outer.a == inner.a * n && outer.b == inner.b * n && outer.c == inner.c * n;
}

std::vector<Axis> merged(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty() && mergeable(result.back(), axis)) {
      Dim extent = result.back().extent.bound() * axis.extent.bound();
      result.back() = {extent, axis.a, axis.b, axis.c};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

/// Returns the innermost of the merged axes, and appends the others to `batch`.
Axis split_last(std::vector<Axis> axes, std::vector<Axis>& batch) {
  if (axes.empty()) return {1, 0, 0, 0};
  Axis last = axes.back();
  axes.pop_back();
  batch.insert(batch.end(), axes.begin(), axes.end());
  return last;
}

bool contains(const std::vector<int64_t>& list, int64_t axis) { return std::count(list.begin(), list.end(), axis) > 0; }

}  // namespace

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

NodeId only_reader(const Users& users, const NodeCounts& outputs, NodeId node) {
  const std::span<const NodeId> readers = users[node];
  return readers.size() == 1 && outputs[node] == 0 ? readers[0] : NodeId{};
}

namespace {

/// Adds a bias to a chain: result = result so far + broadcast(vector along n).
void add_bias(const Ir& ir, const Users& users, const NodeCounts& outputs, DotChain& chain) {
  const NodeId dot = chain.dot, before = chain.result, reader = only_reader(users, outputs, before);
  if (reader < 0 || ir[reader].op != Op::add) return;
  const IrNode& add = ir[reader];
  int other = add.inputs[0] == before ? add.inputs[1] : add.inputs[0];
  if (other == before || ir[dot].type.shape.empty()) return;
  // The other operand must be a vector along the last axis, which must be a free axis of the dot's right operand.
  const IrNode& node = ir[dot];
  if (node.inputs.size() != 2 ||
      static_cast<int>(node.attrs->axes2.size() + node.attrs->batch2.size()) == ir[node.inputs[1]].type.rank())
    return;
  ix::Context cx;
  std::vector<Expr> vars = domain(cx, node.type.shape, "i");
  Access access = peel(cx, ir, other, vars);
  const IrNode& bias = ir[access.node];
  if (bias.op != Op::parameter && !is_elementwise(bias.op)) return;
  if (access.index.size() != 1 || !(access.index[0] == vars.back()) || !(bias.type.shape[0] == node.type.shape.back()))
    return;
  if (vars.back().is_constant()) return;
  chain.bias = access.node;
  chain.result = reader;
}

/// Returns whether a reduction reads the node, directly or through casts.
bool is_reduced(const Ir& ir, const Users& users, NodeId node) {
  const std::span<const NodeId> readers = users[node];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId id) {
    return ir[id].op == Op::reduce || (ir[id].op == Op::cast && is_reduced(ir, users, id));
  });
}

/// Adds a residual to a chain: result = result so far + a node stored with the same layout. An elementwise value counts
/// as stored if a reduction reads it as well.
void add_residual(const Ir& ir, const Users& users, const NodeCounts& outputs, const NodeStrides& strides,
                  const NodeFlags& roots, DotChain& chain) {
  const int reader = only_reader(users, outputs, chain.result);
  if (reader < 0 || ir[reader].op != Op::add) return;
  const IrNode& add = ir[reader];
  const int other = add.inputs[0] == chain.result ? add.inputs[1] : add.inputs[0];
  if (other == chain.result || volume(add.type.shape) <= 1) return;
  const bool kept = is_elementwise(ir[other].op) && is_reduced(ir, users, other);
  if (!is_leaf(ir, other) && !roots[static_cast<size_t>(other)] && !kept) return;
  auto order = [&](NodeId node, const Strides& otherwise) { return strides[node].empty() ? otherwise : strides[node]; };
  const Strides plain = row_major_strides(add.type.shape);
  if (order(other, plain) != plain || order(reader, preferred_strides(ir, users, reader)) != plain) return;
  chain.residual = other;
  chain.result = reader;
}

/// Returns whether `reduction` sums a matrix in float32 over all axes but `free_axis` of `operand`, which is the
/// matrix, permuted or reshaped.
bool sums_rows(const Ir& ir, NodeId reduction, NodeId operand, int64_t free_axis) {
  const IrNode& f = ir[reduction];
  if (f.op != Op::reduce || f.attrs->reducer != kernel::Reducer::sum || f.type.dtype != float32 || f.type.rank() != 1)
    return false;
  ix::Context cx;
  const std::vector<Expr> vars = domain(cx, ir[operand].type.shape, "i");
  const Expr free = vars[static_cast<size_t>(free_axis)];
  Access access{operand, vars, {}, {}};
  while (access.node != f.inputs[0] && (ir[access.node].op == Op::permute || ir[access.node].op == Op::reshape))
    access = push(cx, ir, access.node, access.index);
  if (access.node != f.inputs[0] || free.is_constant()) return false;
  for (size_t axis = 0; axis < access.index.size(); ++axis)
    if (contains(f.attrs->axes, static_cast<int64_t>(axis)) ? ix::depends_on(access.index[axis], free)
                                                            : !(access.index[axis] == free))
      return false;
  return true;
}

/// Adds the sum of an operand over the contracted axes to a float32 dot without epilogue. The sum must come after what
/// the dot reads, so that one kernel can compute both where the first of them is.
void add_sum(const Ir& ir, const Users& users, const NodeStrides& strides, const NodeFlags& roots, DotChain& chain) {
  const IrNode& dot = ir[chain.dot];
  if (dot.type.dtype != float32 || dot.type.rank() != 2 || !dot.attrs->batch.empty() || chain.result != chain.dot)
    return;
  const int last_read =
      std::max(operand_base(ir, strides, roots, dot.inputs[0]), operand_base(ir, strides, roots, dot.inputs[1]));
  for (size_t side = 0; side < 2; ++side) {
    const NodeId operand = dot.inputs[side];
    int64_t free_axis = 0;
    while (contains(side == 0 ? dot.attrs->axes : dot.attrs->axes2, free_axis)) ++free_axis;
    NodeId base = operand;
    if (free_axis >= ir[operand].type.rank() || ir[operand].type.dtype != float32) continue;
    while (ir[base].op == Op::permute || ir[base].op == Op::reshape) base = ir[base].inputs[0];
    for (NodeId id : users[base]) {
      if (id < last_read || !sums_rows(ir, id, operand, free_axis)) continue;
      chain.sum = id;
      chain.summed = side == 0 ? kernel::OperandSum::a : kernel::OperandSum::b;
      return;
    }
  }
}

}  // namespace

DotChain dot_chain(const Ir& ir, const Users& users, const NodeCounts& outputs, const NodeStrides& strides,
                   const NodeFlags& roots, NodeId dot) {
  DotChain chain;
  chain.dot = chain.result = dot;
  add_bias(ir, users, outputs, chain);
  if (auto found = activation_of(ir, users, outputs, chain.result)) {
    chain.activation = found->activation;
    chain.result = found->result;
  }
  add_residual(ir, users, outputs, strides, roots, chain);
  add_sum(ir, users, strides, roots, chain);
  return chain;
}

std::optional<DotChain> scaled_chain(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                     const NodeStrides& strides, const NodeFlags& roots, NodeId dot, bool followed) {
  if (ir[dot].type.dtype != float32 || !is_float8(ir[ir[dot].inputs[0]].type.dtype) || volume(ir[dot].type.shape) <= 1)
    return {};
  DotChain chain;
  chain.dot = chain.result = dot;
  int reader = only_reader(users, outputs, dot);
  for (; reader >= 0 && ir[reader].op == Op::mul && chain.scales.size() < 2;
       reader = only_reader(users, outputs, reader)) {
    const int other = ir[reader].inputs[ir[reader].inputs[0] == chain.result ? 1 : 0];
    ix::Context cx;
    const int number = peel(cx, ir, other, domain(cx, ir[dot].type.shape, "i")).node;
    if (volume(ir[number].type.shape) != 1 || ir[number].op == Op::constant || ir[number].op == Op::iota) break;
    chain.scales.push_back(number);
    chain.result = reader;
  }
  if (chain.scales.empty()) return {};
  if (reader >= 0 && ir[reader].op == Op::cast &&
      (ir[reader].type.dtype == bfloat16 || ir[reader].type.dtype == float16))
    chain.result = reader;
  if (followed) {
    add_bias(ir, users, outputs, chain);
    add_residual(ir, users, outputs, strides, roots, chain);
  }
  return chain;
}

DotPlan plan_dot(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotChain& chain,
                 const Numerics& numerics) {
  const NodeId dot = chain.dot, result = chain.result;
  const IrNode& node = ir[dot];
  auto a = strided_view(ir, strides, roots, node.inputs[0]), b = strided_view(ir, strides, roots, node.inputs[1]);
  if (!a || !b) throw_internal("plan_dot", "an operand is not a strided view: " + print(ir, dot));
  const Strides& c = strides[result];
  const Shape &sa = ir[node.inputs[0]].type.shape, &sb = ir[node.inputs[1]].type.shape;
  const graph::Attrs& at = node.attrs;

  std::vector<Axis> batch, m, n, k;
  size_t out = 0;
  for (size_t i = 0; i < at.batch.size(); ++i, ++out)
    batch.push_back({sa[static_cast<size_t>(at.batch[i])], a->strides[static_cast<size_t>(at.batch[i])],
                     b->strides[static_cast<size_t>(at.batch2[i])], c[out]});
  for (size_t i = 0; i < sa.size(); ++i)
    if (!contains(at.batch, static_cast<int64_t>(i)) && !contains(at.axes, static_cast<int64_t>(i)))
      m.push_back({sa[i], a->strides[i], 0, c[out++]});
  for (size_t i = 0; i < sb.size(); ++i)
    if (!contains(at.batch2, static_cast<int64_t>(i)) && !contains(at.axes2, static_cast<int64_t>(i)))
      n.push_back({sb[i], 0, b->strides[i], c[out++]});
  for (size_t i = 0; i < at.axes.size(); ++i)
    k.push_back({sa[static_cast<size_t>(at.axes[i])], a->strides[static_cast<size_t>(at.axes[i])],
                 b->strides[static_cast<size_t>(at.axes2[i])], 0});

  batch = merged(batch);
  std::vector<Axis> contracted = merged(k);
  if (contracted.size() > 1) throw_internal("plan_dot", "contracted axes do not lie together: " + print(ir, dot));
  Axis km = contracted.empty() ? Axis{1, 0, 0, 0} : contracted[0];
  Axis mm = split_last(merged(m), batch), nm = split_last(merged(n), batch);
  batch = merged(batch);

  DotPlan plan;
  plan.a = a->node;
  plan.b = b->node;
  plan.a_offset = a->offset;
  plan.b_offset = b->offset;
  kernel::DotDesc& d = plan.desc;
  d.a = ir[node.inputs[0]].type.dtype;
  d.b = ir[node.inputs[1]].type.dtype;
  d.c = ir[result].type.dtype;
  for (const Axis& axis : batch) {
    d.batch.push_back(axis.extent.bound());
    d.a_batch.push_back(axis.a);
    d.b_batch.push_back(axis.b);
    d.c_batch.push_back(axis.c);
    plan.extents.push_back(axis.extent);
  }
  d.m = mm.extent.bound(), d.n = nm.extent.bound(), d.k = km.extent.bound();
  d.a_m = mm.a, d.a_k = km.a, d.b_k = km.b, d.b_n = nm.b, d.c_m = mm.c, d.c_n = nm.c;
  // An axis of extent 1 has no stride of its own: give it the dense one, so that libraries see plain matrices.
  if (d.m == 1) d.a_m = std::max<int64_t>(1, d.a_k * d.k), d.c_m = std::max<int64_t>(1, d.c_n * d.n);
  if (d.n == 1) d.b_n = d.b_k == 1 ? d.k : 1, d.c_n = 1;
  if (d.k == 1) d.a_k = d.a_m == 1 ? std::max<int64_t>(2, d.m) : 1, d.b_k = d.b_n == 1 ? d.n : 1;
  plan.extents.insert(plan.extents.end(), {mm.extent, nm.extent, km.extent});
  plan.bias = chain.bias;
  plan.residual = chain.residual;
  d.bias = chain.bias >= 0;
  d.activation = chain.activation;
  d.residual = chain.residual >= 0;
  plan.pre_activation = chain.pre_activation;
  d.pre_activation = chain.pre_activation_is;
  plan.sum = chain.sum;
  d.sum = chain.summed;
  plan.scales = chain.scales;
  d.scales = static_cast<int64_t>(chain.scales.size());
  d.numerics = numerics;
  return plan;
}

std::shared_ptr<const target::LibraryCall> library_for(const DotPlan& plan, const target::Target& target,
                                                       const Policy& policy) {
  const bool is_static =
      std::all_of(plan.extents.begin(), plan.extents.end(), [](const Dim& d) { return d.is_static(); });
  if (!policy.libraries || !target::libraries_enabled() || !is_static) return nullptr;
  return target.library(plan.desc);
}

std::vector<std::pair<NodeId, int64_t>> library_operands(const DotPlan& plan, NodeId result) {
  std::vector<std::pair<NodeId, int64_t>> operands{{plan.a, plan.a_offset * plan.desc.a.size()},
                                                   {plan.b, plan.b_offset * plan.desc.b.size()}};
  for (const NodeId node : {plan.bias, plan.residual, plan.sum, plan.pre_activation})
    if (node >= 0) operands.emplace_back(node, 0);
  for (const NodeId node : plan.scales) operands.emplace_back(node, 0);
  operands.emplace_back(result, 0);
  return operands;
}

}  // namespace weft::compiler
