// The tiles of a pass: what each adds to the reductions, and what it stores. Where a reduction's state has a frame,
// which costs much to change, a step takes several tiles of a row, or elements of a column: the state is brought to the
// frame of all of them once.
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
    carried = b.loop(lo, some, wide, carried, [&](Value at, const std::vector<Value>& values) {
      return step_of_several(p, static_cast<size_t>(tiles), values, [&](size_t k, const std::function<void()>& body) {
        emit_.push_scope();
        emit_.bind_lanes(lane_, b.add(lane(at), b.index(static_cast<int64_t>(k) * width)), width, no_value);
        body();
        emit_.pop_scope();
      });
    });
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

/// Returns whether a step of pass p should take several elements.
bool RowLowering::has_frames(int p) const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& s) {
    return s.pass == p && s.carries() && compiler::tiles_of_step(node_of(s).attrs->reducer) > 1;
  });
}

/// Emits several elements of pass p: first what they compute and store, then one combination for each state that has a
/// frame. `at` calls the function that it is given where element k is the current one.
std::vector<Value> RowLowering::step_of_several(int p, size_t count, const std::vector<Value>& carried,
                                                const std::function<void(size_t, const std::function<void()>&)>& at) {
  std::vector<size_t> reductions;                 // positions of statements
  std::vector<std::vector<kernel::State>> sides;  // by reduction: its state, then the elements
  size_t next = 0;
  for (size_t k = 0; k < statements_.size(); ++k)
    if (statements_[k].pass == p && statements_[k].carries())
      reductions.push_back(k), sides.push_back({state_of(statements_[k], carried, next)});
  const auto element = [&] {
    recall(p);
    Stores stores;
    for (const Statement& statement : statements_)
      if (statement.pass == p && statement.root.kind == RootKind::full) full_root(statement, stores);
    for (size_t k = 0; k < reductions.size(); ++k) {
      const Statement& statement = statements_[reductions[k]];
      if (sides[k][0].size() > 1) sides[k].push_back(element_of(statement));
      else sides[k][0] = combined(statement, sides[k][0]);
    }
    keep(p);
    store(stores);
  };
  for (size_t k = 0; k < count; ++k) at(k, element);
  std::vector<Value> all;
  for (size_t k = 0; k < reductions.size(); ++k) {
    const kernel::Reducer reducer = node_of(statements_[reductions[k]]).attrs->reducer;
    const bool several = sides[k].size() > 1;
    for (Value v : several ? kernel::combine_states(emit_.builder(), reducer, sides[k]) : sides[k][0]) all.push_back(v);
  }
  return all;
}

/// Returns the state of a reduction with the current element.
kernel::State RowLowering::combined(const Statement& statement, const kernel::State& state) {
  const IrNode& node = node_of(statement);
  if (sums_products(statement)) return {emit_.fused_multiply_add(node.inputs[0], statement.operand, {}, state[0])};
  return kernel::combine_states(emit_.builder(), node.attrs->reducer, state, element_of(statement));
}

/// Emits one tile of pass p: adds it to every reduction and stores every full root. Stores come last, since
/// they may overwrite operands in place.
std::vector<Value> RowLowering::step(int p, const std::vector<Value>& carried) {
  if (!parts_.empty()) {
    step_parts();
    return {};
  }
  std::vector<Value> next;
  Stores stores;
  recall(p);
  for (const Statement& statement : statements_) {
    if (statement.pass != p || statement.root.kind == RootKind::row) continue;
    if (statement.root.kind == RootKind::full) {
      full_root(statement, stores);
      continue;
    }
    if (statement.first_result >= 0) continue;
    if (statement.root.kind == RootKind::column) {
      Value& sum = column_sums_[column_of(statement)];
      sum = combined(statement, {sum})[0];
      continue;
    }
    size_t at = next.size();
    for (Value v : combined(statement, state_of(statement, carried, at))) next.push_back(v);
  }
  keep(p);
  prefetch_next(p);
  store(stores);
  return next;
}

}  // namespace weft::compiler
