// Lowers maps whose domain is cut at the borders between the operands of concats (schedule/concat_parts.h), or in
// halves. A program computes the elements of all parts at its lanes, unrolled. The number of a part is a constant, so
// that each concat reads one operand; parts share what they read at equal indices.
#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::Value;

/// Makes the statements of each part, or of both halves of the lanes.
void RowLowering::make_parts(bool halves) {
  const Expr half = group_.cx->constant(extent_of(lanes_) / 2);
  if (halves) parts_ = {substituted(program_, lane_, loop_), substituted(program_, lane_ + half, loop_)};
  if (schedule_.cut.axes.empty()) return;
  for (int64_t part = 0; part < schedule_.cut.extent; ++part)
    parts_.push_back(substituted(program_, lane_, loop_, part));
}

/// Emits, before the loop over tiles, what the parts compute at indices that do not vary along it.
void RowLowering::hoist_parts(const std::vector<Expr>& varying) {
  for (const std::vector<Statement>& part : parts_)
    for (const Statement& statement : part) {
      const NodeId root = statement.root.node;
      if (is_elementwise(node_of(statement).op))
        for (const NodeId input : node_of(statement).inputs) emit_.hoist(input, statement.root.index, varying);
      else if (node_of(statement).op == graph::Op::concat)
        for (const Access& access : push_concat(*group_.cx, cx_.ir, root, statement.root.index))
          if (access.valid.is_constant(1)) emit_.hoist(access.node, access.index, varying);
    }
}

/// Emits one tile of every part. Where loads in flight hide the latency of memory, all values come before all stores,
/// which the loads could not pass; elsewhere each part is stored as soon as it is computed.
void RowLowering::step_parts() {
  std::vector<std::pair<const Statement*, Value>> stores;
  const auto store = [&] {
    for (const auto& [statement, v] : stores)
      emit_.store(statement->root.node, statement->root.index, v, cx_.streamed[statement->root.node]);
    stores.clear();
  };
  for (const std::vector<Statement>& part : parts_) {
    for (const Statement& statement : part) emit_.forget(statement.root.node);
    for (const Statement& statement : part) {
      const NodeId root = statement.root.node;
      if (!cx_.has_buffer[root]) continue;
      stores.emplace_back(&statement, emit_.rounded(root, emit_.make(root, statement.root.index)));
      emit_.define(root, stores.back().second);
    }
    if (!cx_.target.machine().wants_loads_in_flight()) store();
  }
  store();
}

}  // namespace weft::compiler
