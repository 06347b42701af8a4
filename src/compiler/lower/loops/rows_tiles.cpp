// The tiles of a pass: what each adds to the reductions, and what it stores. Where a reduction's state has a frame,
// which costs much to change, a step takes several tiles: the state is brought to the frame of all of them once.
#include <algorithm>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

/// Returns whether the statement sums products down columns, which is one fused multiply-add an element.
bool RowLowering::sums_products(const Statement& statement) const {
  const IrNode& node = cx_.ir[statement.root.node];
  return cx_.target.machine().fuses_multiply_add() && schedule_.kind == RowClass::column &&
         statement.root.kind == RootKind::reduce && node.attrs->reducer == kernel::Reducer::sum &&
         node.type.dtype == float32;
}

/// Returns how many tiles a step of pass p takes at once, where as many are left.
int64_t RowLowering::tiles_of_pass(int p) const {
  const bool reduces = std::any_of(statements_.begin(), statements_.end(),
                                   [&](const Statement& s) { return s.pass == p && s.carries(); });
  return reduces ? schedule_.tiles_of_step() : 1;
}

/// Runs pass p over the lanes from `lo` to `hi`, counted from `base`, in whole tiles: several at once as long as there
/// are as many.
std::vector<Value> RowLowering::whole_tiles(int p, Value lo, Value hi, Value base) {
  kernel::Builder& b = emit_.builder();
  const int64_t width = schedule_.tile(), tiles = tiles_of_pass(p);
  const auto lane = [&](Value at) { return base == no_value ? at : b.add(base, at); };
  std::vector<Value> carried = identities(p);
  if (tiles > 1) {
    const Value wide = b.index(tiles * width);
    const Value some = b.add(lo, b.mul(b.scalar(ScalarOp::floordiv, {b.sub(hi, lo), wide}), wide));
    carried = b.loop(lo, some, wide, carried,
                     [&](Value at, const std::vector<Value>& values) { return step_of_tiles(p, lane(at), values); });
    lo = some;
  }
  return b.loop(lo, hi, b.index(width), carried, [&](Value at, const std::vector<Value>& values) {
    emit_.push_scope();
    emit_.bind_lanes(lane_, lane(at), width, no_value);
    std::vector<Value> next = step(p, values);
    emit_.pop_scope();
    return next;
  });
}

/// Returns the state that the current tile is to a reduction.
kernel::State RowLowering::element_of(const Statement& statement) {
  kernel::Builder& b = emit_.builder();
  const kernel::Reducer reducer = node_of(statement).attrs->reducer;
  kernel::State element;
  for (const NodeId input : node_of(statement).inputs)
    element.push_back(b.broadcast(emit_.value(input, statement.operand), {schedule_.tile()}));
  if (schedule_.kind != RowClass::row || emit_.limit() == no_value || statement.root.kind == RootKind::column)
    return element;
  for (size_t k = 0; k < element.size(); ++k) {
    const Dtype t = b.type(element[k]).dtype;
    element[k] =
        b.select(emit_.lane_mask(), element[k], b.constant(t, kernel::identity(reducer, t, k), {schedule_.tile()}));
  }
  return element;
}

/// Computes a full root that has a buffer, and adds it to what is to be stored.
void RowLowering::full_root(const Statement& statement, Stores& stores) {
  const NodeId node = statement.root.node;
  if (!cx_.has_buffer[node]) return;
  stores.emplace_back(&statement, emit_.rounded(node, emit_.make(node, statement.root.index)));
  emit_.define(node, stores.back().second);
}

void RowLowering::store(const Stores& stores) {
  for (const auto& [statement, v] : stores)
    emit_.store(statement->root.node, statement->root.index, v, cx_.streamed[statement->root.node]);
}

/// Emits several adjacent tiles of pass p from lane `first` on: first what they compute and store, then one combination
/// for each reduction.
std::vector<Value> RowLowering::step_of_tiles(int p, Value first, const std::vector<Value>& carried) {
  kernel::Builder& b = emit_.builder();
  std::vector<std::vector<kernel::State>> sides;  // by reduction: its state, then the tiles
  std::vector<const Statement*> reductions;
  size_t next = 0;
  for (const Statement& statement : statements_)
    if (statement.pass == p && statement.carries())
      reductions.push_back(&statement), sides.push_back({state_of(statement, carried, next)});
  for (int64_t tile = 0; tile < tiles_of_pass(p); ++tile) {
    emit_.push_scope();
    emit_.bind_lanes(lane_, b.add(first, b.index(tile * schedule_.tile())), schedule_.tile(), no_value);
    recall(p);
    Stores stores;
    for (const Statement& statement : statements_)
      if (statement.pass == p && statement.root.kind == RootKind::full) full_root(statement, stores);
    for (size_t k = 0; k < reductions.size(); ++k) sides[k].push_back(element_of(*reductions[k]));
    keep(p);
    store(stores);
    emit_.pop_scope();
  }
  std::vector<Value> all;
  for (size_t k = 0; k < reductions.size(); ++k)
    for (Value v : kernel::combine_states(b, node_of(*reductions[k]).attrs->reducer, sides[k])) all.push_back(v);
  return all;
}

/// Emits one tile of pass p: adds it to every reduction and stores every full root. Stores come last, since
/// they may overwrite operands in place.
std::vector<Value> RowLowering::step(int p, const std::vector<Value>& carried) {
  if (!parts_.empty()) {
    step_parts();
    return {};
  }
  kernel::Builder& b = emit_.builder();
  std::vector<Value> next;
  Stores stores;
  recall(p);
  for (const Statement& statement : statements_) {
    if (statement.pass != p || statement.root.kind == RootKind::row) continue;
    const IrNode& node = cx_.ir[statement.root.node];
    if (statement.root.kind == RootKind::full) {
      full_root(statement, stores);
      continue;
    }
    if (sums_products(statement)) {
      next.push_back(emit_.fused_multiply_add(node.inputs[0], statement.operand, {}, carried[next.size()]));
      continue;
    }
    if (statement.first_result >= 0) continue;
    const kernel::State element = element_of(statement);
    const kernel::Reducer reducer = node.attrs->reducer;
    if (statement.root.kind == RootKind::column) {
      Value& sum = column_sums_[column_of(statement)];
      sum = kernel::combine_states(b, reducer, {sum}, element)[0];
      continue;
    }
    size_t at = next.size();
    for (Value v : kernel::combine_states(b, reducer, state_of(statement, carried, at), element)) next.push_back(v);
  }
  keep(p);
  prefetch_next(p);
  store(stores);
  return next;
}

}  // namespace weft::compiler
