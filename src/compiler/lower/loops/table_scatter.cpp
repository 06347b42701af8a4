// The class of scatter-adds into few rows whose sums are the same in any order (rewrite/sort_scatter.h): integers, or
// one number that is added again and again, which is counted and multiplied. Each program of the first kernel adds its
// part of the updates to a table in shared memory by atomic additions. The second kernel adds up the tables.
#include <algorithm>
#include <bit>
#include <functional>
#include <span>

#include "compiler/lower/emit.h"
#include "compiler/rewrite/sort_scatter.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

namespace {

// Updates that a program looks at in each turn: four of each of 256 threads are loaded before the first is added.
constexpr int64_t at_once = 1024;
// A table is cleared, stored and read again, so that a program adds several times as many updates as it has cells.
constexpr int64_t updates_of_cell = 4;
// Programs of an SM: two, so that one adds while the other waits for a barrier.
constexpr int64_t programs_of_processor = 2;
// Tables that are added together, a power of two, and the cells of a program that adds them.
constexpr int64_t tables_at_once = 16, widest_part = 128;

class TableScatterLowering {
 public:
  TableScatterLowering(const LowerContext& cx, Group& group, const RowScatter& sizes)
      : cx_(cx), group_(group), node_(group.roots[0].node), n_(cx.ir[node_]), sizes_(sizes),
        counts_(adds_one_number(cx.ir, node_)), sum_(table_dtype(cx.ir, node_)), cells_(sizes.rows * sizes.width),
        updates_(sizes.count * sizes.width),
        tables_(std::clamp<int64_t>(updates_ / std::max(at_once, updates_of_cell * cells_), 1,
                                    programs_of_processor * cx.target.machine().processors)) {}

  LoweredRoutine run() { return routine_of({fill_tables(), add_tables()}, tables_ * cells_ * sum_.size()); }

 private:
  /// Emits body(first cell, cells left) for tiles of a table.
  void each_tile(kernel::Builder& b, const std::function<void(Value, Value)>& body) const {
    b.loop(b.index(0), b.index(cells_), b.index(at_once), {}, [&](Value cell, const std::vector<Value>&) {
      body(cell, b.sub(b.index(cells_), cell));
      return std::vector<Value>{};
    });
  }

  Lowered fill_tables() {
    Emitter emit(cx_, group_, "scatter_tables_" + std::to_string(node_));
    kernel::Builder& b = emit.builder();
    const kernel::Ref tables = emit.scratch_param(sum_, true);
    for (const NodeId node : group_.reads)  // all of them come before the scratch
      if (cx_.buffer_owner[node] != cx_.buffer_owner[node_]) emit.param(node, false);
    const kernel::Ref table = b.local(sum_, cells_);
    each_tile(b, [&](Value cell, Value left) {
      b.store(table, b.constant(sum_, Number::of_int(0), {at_once}), cell, {1}, {left});
    });
    const Expr update = group_.cx->variable("u", 0, std::max<int64_t>(0, updates_ - 1));
    b.loop(b.mul(b.program_id(), b.index(at_once)), b.index(updates_), b.index(tables_ * at_once), {},
           [&](Value first, const std::vector<Value>&) {
             emit.push_scope();
             emit.bind_lanes(update, first, at_once, b.sub(b.index(updates_), first));
             add_updates(emit, table, update);
             emit.pop_scope();
             return std::vector<Value>{};
           });
    const Value mine = b.mul(b.program_id(), b.index(cells_));
    each_tile(b, [&](Value cell, Value left) {
      b.store(tables, b.load(table, cell, {at_once}, {1}, {left}), b.add(mine, cell), {1}, {left});
    });
    return emit.finish(tables_, static_cast<double>(updates_));
  }

  /// Emits the addition of the updates on the lanes. Negative ids count from the end; ids outside add nothing.
  void add_updates(Emitter& emit, kernel::Ref table, Expr update) const {
    kernel::Builder& b = emit.builder();
    const graph::Type& given = cx_.ir[n_.inputs[2]].type;
    const std::vector<int64_t> flat{updates_};
    const std::vector<Expr> at =
        ix::reindex_reshape(*group_.cx, std::span<const Expr>(&update, 1), bounds(given.shape), flat);
    const size_t rank = cx_.ir[n_.inputs[1]].type.shape.size();
    const auto on_lanes = [&](Value v) { return b.broadcast(v, {at_once}); };
    const auto all = [&](Value x, Value y) { return b.scalar(ScalarOp::bit_and, {x, y}); };
    const NodeId ids = n_.inputs[1];
    Value id = b.cast(on_lanes(emit.value(ids, {at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank)})), int64);
    const Value zero = on_lanes(b.index(0)), rows = on_lanes(b.index(sizes_.rows));
    if (!is_unsigned(cx_.ir[ids].type.dtype)) id = b.select(b.lt(id, zero), b.add(id, rows), id);
    const Value inside = all(emit.lane_mask(), all(b.scalar(ScalarOp::le, {zero, id}), b.lt(id, rows)));
    const Value column = on_lanes(emit.index_value(update % sizes_.width));
    const Value cell = b.add(b.mul(id, on_lanes(b.index(sizes_.width))), column);
    const Value value =
        counts_ ? b.constant(sum_, Number::of_int(1), {at_once}) : b.cast(on_lanes(emit.value(n_.inputs[2], at)), sum_);
    b.atomic_add(table, value, cell, inside);
  }

  Lowered add_tables() {
    const int64_t part = std::min(widest_part, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(cells_))));
    Emitter emit(cx_, group_, "scatter_sums_" + std::to_string(node_));
    kernel::Builder& b = emit.builder();
    const kernel::Ref result = emit.param(node_, true), tables = emit.scratch_param(sum_, false);
    const Value cell = b.mul(b.program_id(), b.index(part)), left = b.sub(b.index(cells_), cell);
    const Value zero = b.constant(sum_, Number::of_int(0), {tables_at_once, part});
    const Value sums = b.loop(b.index(0), b.index(tables_), b.index(tables_at_once), {zero},
                              [&](Value first, const std::vector<Value>& carried) {
                                const Value offset = b.add(b.mul(first, b.index(cells_)), cell);
                                const Value more = b.load(tables, offset, {tables_at_once, part}, {cells_, 1},
                                                          {b.sub(b.index(tables_), first), left});
                                return std::vector<Value>{b.add(carried[0], more)};
                              })[0];
    const Dtype computed = compute_dtype(n_.type.dtype);
    const Value total = b.reduce(kernel::Reducer::sum, sums, 0);
    Value sum = b.cast(total, computed);
    if (counts_) {
      std::vector<Expr> first(cx_.ir[n_.inputs[2]].type.shape.size(), group_.cx->constant(0));
      sum = b.mul(sum, b.broadcast(emit.value(n_.inputs[2], first), {part}));
    }
    const Value before = b.cast(b.load(result, cell, {part}, {1}, {left}), computed);
    Value after = b.add(before, sum);
    if (counts_) {  // what nothing is added to keeps its bits: 0 times infinity is no number
      const Value none = b.scalar(ScalarOp::eq, {total, b.constant(sum_, Number::of_int(0), {part})});
      after = b.select(none, before, after);
    }
    b.store(result, b.cast(after, n_.type.dtype), cell, {1}, {left});
    return emit.finish((cells_ + part - 1) / part, static_cast<double>(tables_ * cells_));
  }

  const LowerContext& cx_;
  Group& group_;
  const NodeId node_;
  const IrNode& n_;
  const RowScatter sizes_;
  const bool counts_;
  const Dtype sum_;
  const int64_t cells_, updates_, tables_;
};

}  // namespace

LoweredRoutine lower_table_scatter(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return TableScatterLowering(cx, group, *row_scatter(cx.ir, group.roots[0].node)).run();
}

}  // namespace weft::compiler
