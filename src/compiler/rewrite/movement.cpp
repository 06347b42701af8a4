// Rules for movement: drop movement that changes nothing, merge movement of movement, and join slices of one array
// again.
#include <algorithm>

#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

bool is_scalar(const RuleGraph& g, NodeId id) { return g[id].type.shape.empty(); }

RuleResult stop_gradient(RuleGraph&, const IrNode& n) { return n.inputs[0]; }

RuleResult to_same_shape(RuleGraph& g, const IrNode& n) {
  const bool may =
      n.op != Op::slice || std::all_of(n.attrs->step.begin(), n.attrs->step.end(), [](int64_t s) { return s == 1; });
  return may && g[n.inputs[0]].type.shape == n.type.shape ? RuleResult(n.inputs[0]) : RuleResult{};
}

RuleResult same_order(RuleGraph&, const IrNode& n) {
  const bool same = std::is_sorted(n.attrs->axes.begin(), n.attrs->axes.end());
  return same ? RuleResult(n.inputs[0]) : RuleResult{};
}

RuleResult reshape_twice(RuleGraph& g, const IrNode& n) {
  const IrNode& in = g[n.inputs[0]];
  return in.op == n.op ? RuleResult(g.make(n.op, {in.inputs[0]}, n.type, n.attrs)) : RuleResult{};
}

RuleResult permute_twice(RuleGraph& g, const IrNode& n) {
  if (g[n.inputs[0]].op != Op::permute) return {};
  const IrNode& in = g[n.inputs[0]];
  Attrs attrs;
  for (int64_t axis : n.attrs->axes) attrs.axes.push_back(in.attrs->axes[static_cast<size_t>(axis)]);
  return g.make(Op::permute, {in.inputs[0]}, n.type, attrs);
}

RuleResult move_scalar(RuleGraph& g, const IrNode& n) {
  const IrNode& in = g[n.inputs[0]];
  if (in.op != Op::broadcast || !is_scalar(g, in.inputs[0])) return {};
  return g.broadcast_to(in.inputs[0], n.type.shape);
}

RuleResult concat_one(RuleGraph&, const IrNode& n) {
  return n.inputs.size() == 1 ? RuleResult(n.inputs[0]) : RuleResult{};
}

/// concat(x[…, :a], x[…, a:b], x[…, b:]) → x. Splitting a complex number and joining it again gives this form.
RuleResult concat_slices(RuleGraph& g, const IrNode& n) {
  const auto axis = static_cast<size_t>(n.attrs->axes[0]);
  int64_t next = 0;
  NodeId whole = -1;
  for (NodeId input : n.inputs) {
    const IrNode& part = g[input];
    if (part.op != Op::slice || (whole >= 0 && part.inputs[0] != whole)) return {};
    whole = part.inputs[0];
    const Shape& shape = g[whole].type.shape;
    for (size_t k = 0; k < shape.size(); ++k)
      if (part.attrs->step[k] != 1 || part.attrs->start[k] != (k == axis ? next : 0) ||
          (k != axis && !(part.type.shape[k] == shape[k])))
        return {};
    if (!part.type.shape[axis].is_static()) return {};
    next += part.type.shape[axis].bound();
  }
  return whole >= 0 && g[whole].type.shape[axis] == Dim(next) ? RuleResult(whole) : RuleResult{};
}

/// pad(x) + pad(y), where the two are adjacent along one axis → pad(concat(x, y)). The gradient of a split array needs
/// no addition.
RuleResult add_pads(RuleGraph& g, const IrNode& n) {
  if (g[n.inputs[0]].op != Op::pad || g[n.inputs[1]].op != Op::pad) return {};
  for (const bool swapped : {false, true}) {
    const IrNode first = g[n.inputs[swapped]], second = g[n.inputs[!swapped]];
    const Shape& shape = n.type.shape;
    int64_t along = -1;
    bool fits = is_static(shape);
    for (size_t axis = 0; axis < shape.size() && fits; ++axis) {
      const Attrs &a = first.attrs, &b = second.attrs;
      if (a.low[axis] == b.low[axis] && a.high[axis] == b.high[axis]) continue;
      const int64_t end = shape[axis].bound() - a.high[axis];  // of the first one
      fits = along < 0 && end == b.low[axis];
      along = static_cast<int64_t>(axis);
    }
    if (!fits || along < 0) continue;
    Attrs joined, rest = first.attrs;
    joined.axes = {along};
    rest.high[static_cast<size_t>(along)] = second.attrs->high[static_cast<size_t>(along)];
    std::vector<NodeId> parts;
    graph::Type type = g[first.inputs[0]].type;
    type.shape[static_cast<size_t>(along)] = shape[static_cast<size_t>(along)].bound() -
                                             rest.low[static_cast<size_t>(along)] -
                                             rest.high[static_cast<size_t>(along)];
    for (const NodeId id : {first.inputs[0], second.inputs[0]}) {
      const IrNode& part = g[id];
      const bool flat = part.op == Op::concat && part.attrs->axes == joined.axes;
      if (flat) parts.insert(parts.end(), part.inputs.begin(), part.inputs.end());
      else parts.push_back(id);
    }
    return g.make(Op::pad, {g.make(Op::concat, parts, type, joined)}, n.type, rest);
  }
  return {};
}

constexpr Rule movement_table[] = {
    {"stop_gradient", "stop_gradient(x) → x", "always", one_of<Op::stop_gradient>, stop_gradient},
    {"to_same_shape", "reshape, broadcast, pad, x[…] to the shape of x → x", "slices: in steps of 1",
     one_of<Op::reshape, Op::broadcast, Op::pad, Op::slice>, to_same_shape},
    {"same_order", "permute(x, 0 1 2 …) → x", "always", one_of<Op::permute>, same_order},
    {"reshape_twice", "reshape(reshape(x)) → reshape(x), broadcast likewise", "always",
     one_of<Op::reshape, Op::broadcast>, reshape_twice},
    {"move_scalar", "reshape, permute, slice, window of broadcast(c) → broadcast(c)", "c without axes",
     one_of<Op::reshape, Op::permute, Op::slice, Op::window>, move_scalar},
    {"permute_twice", "permute(permute(x)) → permute(x)", "always", one_of<Op::permute>, permute_twice},
    {"concat_one", "concat(x) → x", "always", one_of<Op::concat>, concat_one},
    {"concat_slices", "concat(x[:a], x[a:b], x[b:]) → x", "known extents, in steps of 1", one_of<Op::concat>,
     concat_slices},
    {"add_pads", "pad(x) + pad(y) → pad(concat(x, y))", "y begins where x ends, along one axis; known extents",
     one_of<Op::add>, add_pads},
};

}  // namespace

std::span<const Rule> movement_rules() { return movement_table; }

}  // namespace weft::compiler
