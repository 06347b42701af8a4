// Overlapped rows (CPU): the last pass of a row, which stores results, runs in the same loop as the last but one of the
// next row, which computes. Streaming stores are then in flight during computation; a separate pass would wait for each
// of them.
#include <algorithm>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t most_rows = 16, least_rows = 4, least_programs = 64;

}  // namespace

/// Returns how many rows a program overlaps, or 0 if passes run one after another.
int64_t RowLowering::rows_of_program() const {
  if (cx_.target.machine().simt || schedule_.kind != RowClass::row || one_tile() || passes_ < 2 ||
      !all_static(group_.domain))
    return 0;
  const int last = passes_ - 1;
  if (tiles_of_pass(last - 1) > 1) return 0;  // one tile at a time costs more than it hides
  bool stores = false;
  for (const Statement& statement : statements_) {
    if (statement.pass != last || statement.root.kind == RootKind::row) continue;
    if (statement.root.kind == RootKind::reduce) return 0;
    const auto at = static_cast<size_t>(statement.root.node);
    stores = stores || (cx_.has_buffer[at] && cx_.streamed[at]);
  }
  // The next row's value would overwrite the one that the last pass reads.
  const bool taken = std::any_of(reused_.begin(), reused_.end(), [&](const Reused& reused) {
    return reused.made < last - 1 && reused.wanted.contains(last);
  });
  const int64_t rows = std::min(most_rows, extent_of(outer_) / least_programs);
  return stores && !taken && rows >= least_rows ? rows : 0;
}

/// Emits a program of `rows` rows: the first row without its last pass, the overlapped rows, the last pass of the last
/// row.
void RowLowering::overlapped_passes(int64_t rows) {
  kernel::Builder& b = emit_.builder();
  const int64_t count = extent_of(outer_), last = passes_ - 1;
  overlapped_ = true;
  grid_ = (count + rows - 1) / rows;
  first_lane_ = b.index(0);
  const Value first = b.mul(b.program_id(), b.index(rows)), next = b.add(first, b.index(rows));
  const Value end = count % rows == 0 ? next : b.min(next, b.index(count));

  emit_.push_scope();
  emit_.bind(program_, first);
  for (int p = 0; p < last; ++p) pass(p);
  row_roots(static_cast<int>(last));
  std::vector<Value> values = row_values();
  emit_.pop_scope();

  values = b.loop(b.add(first, b.index(1)), end, b.index(1), values,
                  [&](Value row, const std::vector<Value>& previous) { return overlapped_row(row, previous); });

  emit_.push_scope();
  emit_.bind(program_, b.sub(end, b.index(1)));
  define_row_values(values);
  lane_loop(static_cast<int>(last));
  emit_.pop_scope();
}

/// Emits all passes of a row but its last, and the last pass of the previous row, whose row values are `previous`.
std::vector<Value> RowLowering::overlapped_row(Value row, const std::vector<Value>& previous) {
  kernel::Builder& b = emit_.builder();
  const int last = passes_ - 1;
  const Value before = b.sub(row, b.index(1));
  Emitter::Scope own, earlier;
  auto in = [&](Emitter::Scope& scope, Value at, auto&& body) {
    emit_.enter_scope(std::move(scope));
    emit_.bind(program_, at);
    body();
    scope = emit_.leave_scope();
  };
  in(earlier, before, [&] {
    define_row_values(previous);
    hoist(last, {lane_});
  });
  in(own, row, [&] {
    for (int p = 0; p < last - 1; ++p) pass(p);
    row_roots(last - 1);
    hoist(last - 1, {lane_});
  });
  auto tile = [&](Value at, Value limit, const std::vector<Value>& carried) {
    std::vector<Value> next;
    auto lanes = [&](auto&& body) {
      emit_.push_scope();
      emit_.bind_lanes(lane_, at, schedule_.tile(), limit);
      body();
      emit_.pop_scope();
    };
    in(earlier, before, [&] { lanes([&] { step(last, {}); }); });
    in(own, row, [&] { lanes([&] { next = step(last - 1, carried); }); });
    return next;
  };
  const int64_t width = schedule_.tile(), whole = schedule_.lanes.share() / width * width;
  std::vector<Value> carried =
      b.loop(b.index(0), b.index(whole), b.index(width), identities(last - 1),
             [&](Value at, const std::vector<Value>& values) { return tile(at, no_value, values); });
  if (whole < schedule_.lanes.share())
    carried = tile(b.index(whole), b.index(schedule_.lanes.share() - whole), carried);
  std::vector<Value> values;
  in(own, row, [&] {
    finish_reductions(last - 1, carried);
    row_roots(last);
    values = row_values();
  });
  return values;
}

/// Returns the values of reductions and of roots computed once a row, in the order of the statements.
std::vector<Value> RowLowering::row_values() {
  std::vector<Value> values;
  for (const Statement& statement : statements_)
    if (statement.root.kind != RootKind::full) values.push_back(emit_.value(statement.root.node, statement.root.index));
  return values;
}

void RowLowering::define_row_values(const std::vector<Value>& values) {
  size_t k = 0;
  for (const Statement& statement : statements_)
    if (statement.root.kind != RootKind::full) emit_.define(statement.root.node, values[k++]);
}

}  // namespace weft::compiler
