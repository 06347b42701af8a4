// Rules for dots: merge several contracted axes into one, and replace empty contractions by zeros.
#include <algorithm>
#include <numeric>

#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

/// Returns the axis of a node along which what it permutes runs last.
int64_t innermost_axis(const RuleGraph& g, NodeId id) {
  if (g[id].op != Op::permute) return g[id].type.rank() - 1;
  const std::vector<int64_t>& order = g[id].attrs->axes;
  return std::find(order.begin(), order.end(), innermost_axis(g, g[id].inputs[0])) - order.begin();
}

/// An operand of a dot with its contracted axes made one, and where the batch axes and that one are.
struct Flattened {
  NodeId node;
  std::vector<int64_t> batch;
  int64_t contracted;
};

/// Permutes the contracted axes together and makes them one. They come last, but for a permuted operand whose only
/// other axis runs last in memory: there they come first, so that the result, which may be no view, is copied row by
/// row and not transposed.
Flattened flatten(RuleGraph& g, NodeId id, const std::vector<int64_t>& batch, const std::vector<int64_t>& contracted) {
  const graph::Type type = g[id].type;
  std::vector<int64_t> kept;
  for (int64_t axis = 0; axis < type.rank(); ++axis)
    if (!has_axis(batch, axis) && !has_axis(contracted, axis)) kept.push_back(axis);
  const bool first = g[id].op == Op::permute && kept.size() == 1 && kept[0] == innermost_axis(g, id);
  Attrs order, flat;
  order.axes = batch;
  const auto append = [&](const std::vector<int64_t>& axes) {
    order.axes.insert(order.axes.end(), axes.begin(), axes.end());
  };
  if (first) append(contracted), append(kept);
  else append(kept), append(contracted);
  const size_t at = batch.size() + (first ? 0 : kept.size());
  graph::Type moved{{}, type.dtype}, merged{{}, type.dtype};
  for (int64_t axis : order.axes) moved.shape.push_back(type.shape[static_cast<size_t>(axis)]);
  int64_t product = 1;
  for (size_t k = at; k < at + contracted.size(); ++k) product *= int64_t{moved.shape[k]};
  merged.shape = moved.shape;
  const auto begin = merged.shape.begin() + static_cast<std::ptrdiff_t>(at);
  merged.shape.insert(merged.shape.erase(begin, begin + static_cast<std::ptrdiff_t>(contracted.size())), product);
  flat.shape = merged.shape;
  Flattened out{g.make(Op::reshape, {g.make(Op::permute, {id}, moved, order)}, merged, flat),
                std::vector<int64_t>(batch.size()), static_cast<int64_t>(at)};
  std::iota(out.batch.begin(), out.batch.end(), 0);
  return out;
}

/// dot over several axes → dot over one. Where the operands are views, the movement costs nothing.
RuleResult merge_contraction(RuleGraph& g, const IrNode& n) {
  if (n.attrs->axes.size() < 2) return {};
  for (int64_t axis : n.attrs->axes)
    if (!g[n.inputs[0]].type.shape[static_cast<size_t>(axis)].is_static()) return {};
  const Flattened a = flatten(g, n.inputs[0], n.attrs->batch, n.attrs->axes),
                  b = flatten(g, n.inputs[1], n.attrs->batch2, n.attrs->axes2);
  Attrs attrs = n.attrs;
  attrs.batch = a.batch, attrs.batch2 = b.batch;
  attrs.axes = {a.contracted}, attrs.axes2 = {b.contracted};
  return g.make(Op::dot, {a.node, b.node}, n.type, attrs);
}

/// dot that contracts an axis of extent 0 → zeros.
RuleResult contract_nothing(RuleGraph& g, const IrNode& n) {
  for (int64_t axis : n.attrs->axes)
    if (g[n.inputs[0]].type.shape[static_cast<size_t>(axis)] == 0) return g.constant_like(n.type, Number::of_real(0));
  return {};
}

constexpr Rule dot_table[] = {
    {"merge_contraction", "dot(x, y over a, b, …) → dot(x', y' over a·b·…)", "known extents", one_of<Op::dot>,
     merge_contraction},
    {"contract_nothing", "dot(x, y) → 0", "a contracted axis has no elements", one_of<Op::dot>, contract_nothing},
};

}  // namespace

std::span<const Rule> dot_rules() { return dot_table; }

}  // namespace weft::compiler
