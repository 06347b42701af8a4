#include "compiler/schedule/splits.h"

#include <algorithm>

#include "compiler/ir/rewriter.h"
#include "compiler/region/attention_plan.h"

namespace weft::compiler {

namespace {

constexpr int64_t least_split_keys = 32, most_splits = 64;

/// Returns which nodes are attention regions of one query over enough keys, with no result used but the first.
NodeFlags candidates(const Ir& ir) {
  NodeFlags fits(ir.nodes.size(), false), other(ir.nodes.size(), false);
  for (NodeId id = 0; id < ir.size(); ++id) {
    const IrNode& n = ir[id];
    if (!is_attention(n) || !is_single_query(*n.attrs->composite->attention, *(ir[n.inputs[0]].type.shape.end() - 2)))
      continue;
    const Shape& keys = ir[n.inputs[1]].type.shape;
    const bool only = std::none_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& m) {
      return m.output != 0 && is_attention(m) && call_key(m) == call_key(n);
    });
    fits[id] = n.output == 0 && only && (keys.end() - 2)->bound() >= 4 * least_split_keys;
  }
  return fits;
}

class AttentionSplitter : Rewriter {
 public:
  explicit AttentionSplitter(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run(const NodeFlags& fits) {
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      return fits[id] ? split_over_keys(std::move(node)) : add(std::move(node));
    });
  }

 private:
  /// Adds the splits, [..., splits, width] with their logsumexps, and the node that combines them; returns the latter.
  NodeId split_over_keys(IrNode node) {
    const int64_t keys = (to_[node.inputs[1]].type.shape.end() - 2)->bound();
    const int64_t length = std::max(least_split_keys, (keys + most_splits * 16 - 1) / (most_splits * 16) * 16),
                  pieces = (keys + length - 1) / length;
    Shape o = node.type.shape, lse(o.begin(), o.end() - 1);
    o[o.size() - 2] = lse.back() = pieces;
    IrNode part = node;
    part.attrs.edit().integers = {static_cast<int64_t>(AttentionPart::pieces), pieces, length};
    part.results = {{o, float32}, {lse, float32}};
    part.type = part.results[0];
    const int first = add(part);
    part.output = 1;
    part.type = part.results[1];
    const int second = add(part);
    node.attrs.edit().integers = {static_cast<int64_t>(AttentionPart::join)};
    node.inputs = {first, second};
    return add(std::move(node));
  }
};

}  // namespace

Ir split_attention(Ir ir) {
  const NodeFlags fits = candidates(ir);
  if (std::any_of(fits.begin(), fits.end(), [](bool b) { return b; })) ir = AttentionSplitter(std::move(ir)).run(fits);
  return ir;
}

}  // namespace weft::compiler
