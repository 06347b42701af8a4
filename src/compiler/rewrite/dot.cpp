// Rules for dots: merge several contracted axes into one, and replace empty contractions by zeros.
#include <algorithm>
#include <numeric>

#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

/// dot over several axes → dot over one: permutes the contracted axes of both operands to the end and flattens them.
/// Where the result is a view, the movement costs nothing.
RuleResult merge_contraction(RuleGraph& g, const IrNode& n) {
  if (n.attrs->axes.size() < 2) return {};
  auto flatten = [&](NodeId id, const std::vector<int64_t>& batch, const std::vector<int64_t>& contracted,
                     std::vector<int64_t>& new_batch) {
    graph::Type type = g[id].type;
    Attrs order, flat;
    order.axes = batch;
    for (int64_t axis = 0; axis < type.rank(); ++axis)
      if (!std::count(batch.begin(), batch.end(), axis) && !std::count(contracted.begin(), contracted.end(), axis))
        order.axes.push_back(axis);
    size_t kept = order.axes.size();
    order.axes.insert(order.axes.end(), contracted.begin(), contracted.end());
    graph::Type moved{{}, type.dtype}, merged{{}, type.dtype};
    for (int64_t axis : order.axes) moved.shape.push_back(type.shape[static_cast<size_t>(axis)]);
    merged.shape.assign(moved.shape.begin(), moved.shape.begin() + static_cast<std::ptrdiff_t>(kept));
    int64_t product = 1;
    for (size_t k = kept; k < moved.shape.size(); ++k) product *= int64_t{moved.shape[k]};
    merged.shape.push_back(product);
    flat.shape = merged.shape;
    new_batch.resize(batch.size());
    std::iota(new_batch.begin(), new_batch.end(), 0);
    return g.make(Op::reshape, {g.make(Op::permute, {id}, moved, order)}, merged, flat);
  };
  for (int64_t axis : n.attrs->axes)
    if (!g[n.inputs[0]].type.shape[static_cast<size_t>(axis)].is_static()) return {};
  Attrs attrs = n.attrs;
  int a = flatten(n.inputs[0], n.attrs->batch, n.attrs->axes, attrs.batch);
  int b = flatten(n.inputs[1], n.attrs->batch2, n.attrs->axes2, attrs.batch2);
  attrs.axes = {g[a].type.rank() - 1};
  attrs.axes2 = {g[b].type.rank() - 1};
  return g.make(Op::dot, {a, b}, n.type, attrs);
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
