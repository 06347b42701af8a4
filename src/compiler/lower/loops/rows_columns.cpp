// Rows with sums along them (group_columns.cpp). A program has the rows of one part and goes through them one by one:
// what is computed for a row stays in registers, and so do the sums of the columns, which are stored behind the last
// row. What the next row reads is asked for before this one is computed, and what the row behind that one reads is on
// its way to the cache that all programs share: its loads will not wait for memory, and no registers for it.
#include <algorithm>
#include <set>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t widest_of_a_warp =
    1024;  // a row that one warp has fills its registers: there is no room for more addresses

}  // namespace

/// The number of a column among the columns of the group.
size_t RowLowering::column_of(const Statement& statement) const {
  return static_cast<size_t>(std::count_if(statements_.data(), &statement,
                                           [](const Statement& s) { return s.root.kind == RootKind::column; }));
}

/// What a row reads, as it lies in memory.
std::vector<Value> RowLowering::fetch(const Reads& reads, Value row) {
  kernel::Builder& b = emit_.builder();
  std::vector<Value> values;
  emit_.push_scope();
  emit_.bind(program_, row);
  for (const auto& [node, index] : reads) values.push_back(b.cast(emit_.value(node, index), cx_.ir[node].type.dtype));
  emit_.pop_scope();
  return values;
}

/// The row after `row` will be read soon.
void RowLowering::prefetch_after(const Reads& reads, Value row) {
  emit_.push_scope();
  emit_.bind(program_, row);
  for (const auto& [node, index] : reads) emit_.prefetch(node, index, program_, schedule_.lane_extent);
  emit_.pop_scope();
}

void RowLowering::rows_of_parts() {
  kernel::Builder& b = emit_.builder();
  std::vector<const Statement*> columns;
  Reads reads;
  std::set<std::pair<int, std::vector<const ix::Node*>>> seen;
  for (const Statement& statement : statements_) {
    if (statement.root.kind == RootKind::column) columns.push_back(&statement);
    for (auto& [node, index] : reads_of(statement)) {
      std::vector<const ix::Node*> key;
      for (Expr e : index) key.push_back(e.get());
      const bool moves = std::any_of(index.begin(), index.end(), [&](Expr e) { return ix::depends_on(e, program_); });
      if (moves && seen.insert({node, key}).second) reads.emplace_back(node, std::move(index));
    }
  }
  const int64_t parts = cx_.ir[columns[0]->root.node].type.shape[0].bound(), each = extent_of(outer_) / parts;
  grid_ = parts;
  const Value first = b.mul(b.program_id(), b.index(each)), last = b.add(first, b.index(each - 1));
  first_lane_ = b.index(0);
  emit_.bind_lanes(lane_, first_lane_, schedule_.width,
                   schedule_.lane_extent == schedule_.width ? no_value : lane_count());
  for (int p = 0; p < passes_; ++p) hoist(p, {program_});

  std::vector<Value> carried;
  for (const Statement* statement : columns) {
    const IrNode& node = cx_.ir[statement->root.node];
    const Dtype t = compute_dtype(node.type.dtype);
    carried.push_back(b.constant(t, kernel::identity(node.attrs->reducer, t), {schedule_.width}));
  }
  for (Value v : fetch(reads, first)) carried.push_back(v);
  carried = b.loop(b.index(0), b.index(each), b.index(1), carried, [&](Value at, const std::vector<Value>& values) {
    const Value row = b.add(first, at);
    const std::vector<Value> next = fetch(reads, b.min(b.add(row, b.index(1)), last));
    if (each > 1 && schedule_.width > widest_of_a_warp)
      prefetch_after(reads, b.min(b.add(row, b.index(1)), b.sub(last, b.index(1))));
    emit_.push_scope();
    emit_.bind(program_, row);
    for (size_t k = 0; k < reads.size(); ++k)
      emit_.remember(reads[k].first, reads[k].second,
                     b.cast(values[columns.size() + k], compute_dtype(cx_.ir[reads[k].first].type.dtype)));
    column_sums_.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(columns.size()));
    for (int p = 0; p < passes_; ++p) pass(p);
    row_roots(passes_);
    emit_.pop_scope();
    std::vector<Value> all = column_sums_;
    all.insert(all.end(), next.begin(), next.end());
    return all;
  });
  emit_.bind(program_, first);
  for (size_t k = 0; k < columns.size(); ++k)
    emit_.store(columns[k]->root.node, columns[k]->root.index, emit_.rounded(columns[k]->root.node, carried[k]), false);
}

}  // namespace weft::compiler
