#include "compiler/schedule/overwrite.h"

#include <algorithm>

#include "compiler/schedule/rows.h"

namespace weft::compiler {

using ix::Expr;

namespace {

TouchedGroup touched(const Ir& ir, const Grouping& grouping, const Group& fused, bool random) {
  TouchedGroup out{fused.copy(), {}, {}};
  if (fused.has_reduction() && !random) return out;
  AccessAnalysis analysis(ir, grouping, out.group, true, -1, true);
  if (!fused.has_reduction()) out.touches = std::move(analysis.touches);
  out.keys = std::move(analysis.keys);
  return out;
}

/// Is `offset` that of `store`, or of its neighbour in a pair of elements that one tile of a map stores? The last
/// variable tells them apart: tiles run along it and are of even width, and a tile is read before it is stored.
bool is_in_pair(Group& group, Expr store, Expr offset) {
  if (offset == store) return true;
  const bool map = std::none_of(group.domain.begin(), group.domain.end(), [](const auto& v) { return v.inner; });
  if (!map || group.domain.empty() || !(group.domain.back().extent == 2)) return false;
  const int64_t last = group.domain.back().var->value;
  for (const int64_t k : {0, 1}) {
    const Expr word = group.cx->constant(k);
    if (ix::substitute(store, [&](int64_t id) { return id == last ? word : Expr(); }) == offset) return true;
  }
  return false;
}

}  // namespace

TouchedGroups::TouchedGroups(const Ir& ir)
    : random(std::any_of(ir.nodes.begin(), ir.nodes.end(),
                         [](const IrNode& n) { return n.op == graph::Op::random_bits; })) {}

bool may_overwrite(const Ir& ir, const Grouping& grouping, const Group& fused, int input, int output,
                   TouchedGroups& memo) {
  auto it = memo.known.find(&fused);
  if (it == memo.known.end()) it = memo.known.emplace(&fused, touched(ir, grouping, fused, memo.random)).first;
  Group& group = it->second.group;
  Expr store;
  bool row = false;
  for (const Root& root : group.roots)
    if (root.node == output)
      store = ix::linear(*group.cx, root.index, grouping.strides[output]), row = root.kind == RootKind::row;
  const auto among = [&](const std::vector<Touch>& touches, bool elsewhere) {
    return std::any_of(touches.begin(), touches.end(),
                       [&](const Touch& t) { return t.node == input && (!elsewhere || t.offset != store); });
  };
  // An element of random numbers rests on both words of its key, of which a new key overwrites one.
  const bool apart = std::any_of(it->second.keys.begin(), it->second.keys.end(), [&](const Touch& t) {
    return t.node == input && (group.has_reduction() || !is_in_pair(group, store, t.offset));
  });
  if (apart) return false;
  if (!group.has_reduction()) return !among(it->second.touches, true);
  const auto reads = [&](const AccessAnalysis& analysis, bool elsewhere) { return among(analysis.touches, elsewhere); };
  if (!row) {
    // A pass stores a tile after it has read it, so the same positions may be overwritten in the last pass that reads
    // them.
    const std::vector<int> passes = root_passes(ir, grouping, group);
    int written = 0;
    for (size_t k = 0; k < passes.size(); ++k)
      if (group.roots[k].node == output) written = passes[k];
    for (size_t k = 0; k < passes.size(); ++k) {
      const AccessAnalysis analysis(ir, grouping, group, true, group.roots[k].node);
      if (reads(analysis, true) ||
          (reads(analysis, false) && (passes[k] > written || group.roots[k].kind == RootKind::row)))
        return false;
    }
    return true;
  }
  if (reads(AccessAnalysis(ir, grouping, group, true, output), true)) return false;
  return std::none_of(group.roots.begin(), group.roots.end(), [&](const Root& root) {
    return root.node != output && reads(AccessAnalysis(ir, grouping, group, true, root.node), false);
  });
}

}  // namespace weft::compiler
