#include "compiler/schedule/access.h"

#include <algorithm>

#include "compiler/schedule/work.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

std::vector<Expr> reduction_operand_index(const Ir& ir, Group& group, const Root& root) {
  const IrNode& node = ir[root.node];
  std::vector<Expr> inner, index;
  for (const DomainVariable& v : group.domain)
    if (v.inner) inner.push_back(v.var);
  const Shape& shape = ir[node.inputs[0]].type.shape;
  if (root.kind == RootKind::column) {  // [parts, rows of a part, columns…]
    std::vector<Expr> rows;
    Shape extents;
    for (const DomainVariable& v : group.domain)
      if (!v.inner) rows.push_back(v.var), extents.push_back(v.extent);
    index = root.index;
    index.insert(index.begin() + 1, ix::linear(*group.cx, rows, row_major_strides(extents)) % shape[1].bound());
    return index;
  }
  size_t next_inner = 0, next_kept = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool reduced = std::count(node.attrs->axes.begin(), node.attrs->axes.end(), static_cast<int64_t>(axis)) > 0;
    if (!reduced) index.push_back(root.index[next_kept++]);
    else index.push_back(shape[axis] == 1 ? group.cx->constant(0) : inner.at(next_inner++));
  }
  return index;
}

AccessAnalysis::AccessAnalysis(const Ir& ir, const Grouping& grouping, Group& group, bool with_rows, int only,
                               bool with_keys)
    : ir_(ir), grouping_(grouping), group_(group), with_keys_(with_keys) {
  for (const Root& root : group.roots) {
    if (only >= 0 && root.node != only) continue;
    const bool reductions = root.kind == RootKind::reduce || root.kind == RootKind::column;
    if (with_rows || root.kind != RootKind::row) {
      Pending pending;
      if (!reductions) pending.emplace_back(root.node, tuples_.of(root.index));
      for (const NodeId input : reductions ? ir[root.node].inputs : std::vector<NodeId>())
        pending.emplace_back(input, tuples_.of(reduction_operand_index(ir, group, root)));
      walk(std::move(pending), !reductions, touches);
    }
    touches.push_back({root.node, address(root.node, root.index), false});
  }
  while (!pending_keys_.empty()) walk(std::exchange(pending_keys_, {}), false, keys);
}

Expr AccessAnalysis::address(NodeId node, const std::vector<Expr>& index) {
  return ix::linear(*group_.cx, index, grouping_.strides[node]);
}

/// Adds what is loaded to `found`. `body`: the first pending node is a root, looked at behind its own memory.
void AccessAnalysis::walk(Pending pending, bool body, std::vector<Touch>& found) {
  while (!pending.empty()) {
    const auto [id, tuple] = pending.back();
    pending.pop_back();
    bool is_body = std::exchange(body, false);
    if (!tuples_.visit(id, tuple, &found == &keys)) continue;
    const IrNode& n = ir_[id];
    const std::vector<Expr>& at = tuples_[tuple];
    if (!is_body && (is_leaf(ir_, id) || grouping_.is_root[id])) {
      Expr offset = address(id, at);
      bool gathered = false;
      ix::variables(offset, [&](Expr v) { gathered = gathered || gathered_.contains(v.get()); });
      found.push_back({id, offset, gathered});
      continue;
    }
    step(id, n, tuple, pending);
  }
}

/// Visits a node that is computed inline: adds its operations and queues its operands at their indices.
void AccessAnalysis::step(NodeId id, const IrNode& n, int tuple, Pending& pending) {
  const std::vector<Expr>& at = tuples_[tuple];
  if (n.op == Op::concat) {
    for (Access& access : push_concat(*group_.cx, ir_, id, at))
      pending.emplace_back(access.node, tuples_.of(std::move(access.index)));
  } else if (is_movement(n.op)) {
    Access access = push(*group_.cx, ir_, id, at);
    pending.emplace_back(access.node, tuples_.of(std::move(access.index)));
  } else if (n.op == Op::gather) {
    auto rank = static_cast<std::ptrdiff_t>(index_rank(ir_, id));
    std::vector<Expr> prefix(at.begin(), at.begin() + rank), inside(at.begin() + rank, at.end());
    for (size_t k = 0; k < n.attrs->axes.size(); ++k) {
      auto axis = static_cast<size_t>(n.attrs->axes[k]);
      Expr variable =
          group_.cx->variable("gathered", 0, std::max<int64_t>(0, ir_[n.inputs[0]].type.shape[axis].bound() - 1));
      // A gathered index differs between lanes only if the position that it is read from does.
      for (Expr e : prefix) ix::variables(e, [&](Expr v) { depends_[variable.get()].insert(v.get()); });
      gathered_.insert(variable.get());
      inside[axis] = inside[axis] + variable;
      pending.emplace_back(n.inputs[k + 1], tuples_.of(prefix));
    }
    pending.emplace_back(n.inputs[0], tuples_.of(std::move(inside)));
  } else {
    flops += operations_of(n);
    if (n.op == Op::random_bits) {
      const auto lead = at.size() - n.attrs->shape.size();
      if (n.attrs->generator == graph::Generator::threefry && lead == 0)
        drawn.push_back({volume(n.attrs->shape), ix::linear(*group_.cx, at, row_major_strides(n.attrs->shape))});
      if (with_keys_) ask_for_key(n, at);
      return;
    }
    for (NodeId input : n.inputs) pending.emplace_back(input, tuple);
  }
}

void AccessAnalysis::ask_for_key(const IrNode& n, const std::vector<Expr>& at) {
  std::vector<Expr> word(at.begin(), at.end() - static_cast<std::ptrdiff_t>(n.attrs->shape.size()));
  word.emplace_back();
  for (const int64_t k : {0, 1}) {
    word.back() = group_.cx->constant(k);
    pending_keys_.emplace_back(n.inputs[0], tuples_.of(word));
  }
}

bool AccessAnalysis::gathered_on(Expr e, std::span<const Expr> lanes) const {
  bool found = false;
  ix::variables(e, [&](Expr v) {
    auto it = depends_.find(v.get());
    if (it == depends_.end()) return;
    for (Expr lane : lanes) found = found || it->second.contains(lane.get());
  });
  return found;
}

}  // namespace weft::compiler
