// Rules for scatter and assignment: drop those that write nothing, replace those that write everything, and start a
// scatter-add from the array that its result is added to.
#include <algorithm>

#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

/// cast(permute(x)) → permute(cast(x)): a dot that computes x can then store it in the wider dtype itself.
NodeId cast_below_permute(RuleGraph& g, NodeId id) {
  const IrNode wide = g[id];
  if (wide.op != Op::cast || g[wide.inputs[0]].op != Op::permute) return id;
  const IrNode permuted = g[wide.inputs[0]];
  const graph::Type type{g[permuted.inputs[0]].type.shape, wide.type.dtype};
  return g.make(Op::permute, {g.make(Op::cast, {permuted.inputs[0]}, type, wide.attrs)}, wide.type, permuted.attrs);
}

/// x + scatter_add(0, i, u) → scatter_add(x, i, u): the zeros are neither stored nor read.
RuleResult add_scatter(RuleGraph& g, const IrNode& n) {
  for (int k : {0, 1}) {
    const IrNode& in = g[n.inputs[static_cast<size_t>(k)]];
    if (in.op != Op::scatter || in.attrs->mode != graph::ScatterMode::add || !g.is_splat(in.inputs[0], 0)) continue;
    std::vector<NodeId> inputs = in.inputs;
    inputs[0] = cast_below_permute(g, n.inputs[static_cast<size_t>(1 - k)]);
    return g.make(Op::scatter, inputs, n.type, in.attrs);
  }
  return {};
}

/// y + cast(scatter_add(0, i, u)) → cast(scatter_add(cast(y), i, u)), with the sum in the wider dtype of the scatter.
/// The gradient of an embedding whose weight is used twice has this form.
RuleResult add_cast_scatter(RuleGraph& g, const IrNode& n) {
  if (!is_float(n.type.dtype) || n.type.dtype.size() != 2) return {};
  for (int k : {0, 1}) {
    const IrNode& narrowed = g[n.inputs[static_cast<size_t>(k)]];
    if (narrowed.op != Op::cast) continue;
    const IrNode in = g[narrowed.inputs[0]];
    if (in.op != Op::scatter || in.attrs->mode != graph::ScatterMode::add || in.type.dtype != float32 ||
        !g.is_splat(in.inputs[0], 0))
      continue;
    const Attrs narrow = narrowed.attrs;
    Attrs wide;
    wide.dtype = float32;
    std::vector<NodeId> inputs = in.inputs;
    inputs[0] = cast_below_permute(g, g.make(Op::cast, {n.inputs[static_cast<size_t>(1 - k)]}, in.type, wide));
    return g.make(Op::cast, {g.make(Op::scatter, inputs, in.type, in.attrs)}, n.type, narrow);
  }
  return {};
}

RuleResult write_all(RuleGraph& g, const IrNode& n) {
  const bool whole = g[n.inputs[1]].type.shape == n.type.shape;
  return whole && std::all_of(n.attrs->step.begin(), n.attrs->step.end(), [](int64_t s) { return s == 1; })
             ? RuleResult(n.inputs[1])
             : RuleResult{};
}

RuleResult write_nothing(RuleGraph& g, const IrNode& n) {
  const Shape& written = g[n.inputs.back()].type.shape;
  return std::any_of(written.begin(), written.end(), [](const Dim& d) { return d == 0; }) ? RuleResult(n.inputs[0])
                                                                                          : RuleResult{};
}

constexpr Rule scatter_table[] = {
    {"add_scatter", "x + scatter_add(0, i, u) → scatter_add(x, i, u)", "always: the zeros are never made",
     one_of<Op::add>, add_scatter},
    {"add_cast_scatter", "x + cast(scatter_add(0, i, u)) → cast(scatter_add(cast(x), i, u))",
     "x 16-bit floats, u float32: the sum stays in float32", one_of<Op::add>, add_cast_scatter},
    {"write_all", "assign(x, all of it, u) → u", "in order", one_of<Op::assign>, write_all},
    {"write_nothing", "scatter, assign(x, …, u) → x", "u has no elements", writes_operand, write_nothing},
};

}  // namespace

std::span<const Rule> scatter_rules() { return scatter_table; }

}  // namespace weft::compiler
