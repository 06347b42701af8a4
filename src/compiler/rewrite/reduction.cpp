// Rules for reductions, plain and cumulative: replace reductions over no elements or one.
#include <algorithm>
#include <cmath>

#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Op;

namespace {

RuleResult reduce_nothing(RuleGraph& g, const IrNode& n) {
  const Shape& shape = g[n.inputs[0]].type.shape;
  for (int64_t axis : n.attrs->axes)
    if (shape[static_cast<size_t>(axis)] == 0)
      return g.constant_like(n.type, kernel::identity(n.attrs->reducer, n.type.dtype, static_cast<size_t>(n.output)));
  return {};
}

/// Returns v·exp(x − m) of x alone: m is x, or 0 where x is infinite.
NodeId scaled_one(RuleGraph& g, NodeId x, NodeId v) {
  const graph::Type t = g[x].type;
  const auto number = [&](double n) { return g.constant_like(t, Number::of_real(n)); };
  const NodeId infinite = g.make(Op::eq, {g.make(Op::abs, {x}, t), number(INFINITY)}, {t.shape, bool_}),
               frame = g.make(Op::select, {infinite, number(0), x}, t);
  return g.make(Op::mul, {v, g.make(Op::exp, {g.make(Op::sub, {x, frame}, t)}, t)}, t);
}

RuleResult reduce_one(RuleGraph& g, const IrNode& n) {
  const Shape& shape = g[n.inputs[0]].type.shape;
  for (int64_t axis : n.attrs->axes)
    if (!(shape[static_cast<size_t>(axis)] == 1)) return {};
  const NodeId own = n.inputs[static_cast<size_t>(n.output)];
  const bool scaled = n.output > 0 && kernel::info(n.attrs->reducer).kind == kernel::ReducerKind::scaled;
  const NodeId one = scaled ? scaled_one(g, n.inputs[0], own) : own;
  return g.reshape_to(one, n.type.shape);
}

/// Reduced axes of one element stand between others, or between columns and the end of rows, where what looks for
/// adjacent axes would take a reduction for another kind.
RuleResult reduce_units(RuleGraph& g, const IrNode& n) {
  if (n.inputs.size() != 1 || !n.results.empty()) return {};
  const Shape& shape = g[n.inputs[0]].type.shape;
  Shape longer;
  graph::Attrs attrs = *n.attrs;
  attrs.axes.clear();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool reduced = std::ranges::count(n.attrs->axes, static_cast<int64_t>(axis)) > 0;
    if (reduced && shape[axis] == 1) continue;
    if (reduced) attrs.axes.push_back(static_cast<int64_t>(longer.size()));
    longer.push_back(shape[axis]);
  }
  if (attrs.axes.empty() || attrs.axes.size() == n.attrs->axes.size()) return {};
  return g.make(Op::reduce, {g.reshape_to(n.inputs[0], longer)}, n.type, std::move(attrs));
}

/// Kernels count through reduced axes together, and a symbolic one behind another would leave gaps.
RuleResult reduce_symbolic(RuleGraph& g, const IrNode& n) {
  const graph::Type& operand = g[n.inputs[0]].type;
  if (n.inputs.size() != 1 || !n.results.empty()) return {};
  std::vector<int64_t> axes = n.attrs->axes, last;
  std::sort(axes.begin(), axes.end());
  const auto is_symbolic = [&](int64_t axis) { return !operand.shape[static_cast<size_t>(axis)].is_static(); };
  if (axes.empty()) return {};
  const auto from = std::find_if(axes.begin() + 1, axes.end(), is_symbolic);
  if (from == axes.end()) return {};
  last.assign(from, axes.end());
  axes.erase(from, axes.end());  // those in front keep their numbers
  graph::Type inner{{}, n.type.dtype};
  for (size_t axis = 0; axis < operand.shape.size(); ++axis)
    if (std::find(last.begin(), last.end(), static_cast<int64_t>(axis)) == last.end())
      inner.shape.push_back(operand.shape[axis]);
  graph::Attrs first = *n.attrs, second = *n.attrs;
  first.axes = last, second.axes = axes;
  return g.make(Op::reduce, {g.make(Op::reduce, {n.inputs[0]}, inner, std::move(first))}, n.type, std::move(second));
}

RuleResult accumulate_one(RuleGraph& g, const IrNode& n) {
  if (n.type.shape[static_cast<size_t>(n.attrs->axes[0])].bound() != 1) return {};
  if (n.attrs->integers[1] == 0) return n.inputs[0];
  return g.constant_like(
      n.type, n.attrs->integers[2] ? Number::of_real(-INFINITY) : kernel::identity(n.attrs->reducer, n.type.dtype));
}

constexpr Rule reduction_table[] = {
    {"reduce_nothing", "reduce(x) → identity", "a reduced axis has no elements", one_of<Op::reduce>, reduce_nothing},
    {"reduce_one", "reduce(x) → reshape(x); of scaled terms v: v·exp(x − m)", "each reduced axis has one element",
     one_of<Op::reduce>, reduce_one},
    {"reduce_units", "reduce(x) → reduce(reshape(x))", "some reduced axes have one element; one value is reduced",
     one_of<Op::reduce>, reduce_units},
    {"reduce_symbolic", "Σ_ij x → Σ_i Σ_j x", "j is symbolic, and not the first reduced axis; one value is reduced",
     one_of<Op::reduce>, reduce_symbolic},
    {"accumulate_one", "cumulative(x) → x, exclusive: → identity", "one element along the axis", one_of<Op::cumulative>,
     accumulate_one},
};

}  // namespace

std::span<const Rule> reduction_rules() { return reduction_table; }

}  // namespace weft::compiler
