// Row kernels that also sum columns (group_columns.cpp). A program walks through the rows of one part. The values of a
// row stay in registers, and so do the columns' sums, which are stored after the last row. The next row is loaded
// before this one is computed, and the row after it is prefetched into the L2, which costs no registers.
#include <algorithm>
#include <set>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::Value;

namespace {

// A wider row has several warps; a row of one warp fills its registers, with no room for more addresses.
constexpr int64_t widest_of_a_warp = 1024;

}  // namespace

/// Returns the index of a column statement among the column statements.
size_t RowLowering::column_of(const Statement& statement) const {
  return static_cast<size_t>(std::count_if(statements_.data(), &statement,
                                           [](const Statement& s) { return s.root.kind == RootKind::column; }));
}

/// Loads what a row reads, in the dtypes of memory.
std::vector<Value> RowLowering::fetch(const Reads& reads, Value row) {
  kernel::Builder& b = emit_.builder();
  std::vector<Value> values;
  emit_.push_scope();
  emit_.bind(program_, row);
  for (const auto& [node, index] : reads) values.push_back(b.cast(emit_.value(node, index), cx_.ir[node].type.dtype));
  emit_.pop_scope();
  return values;
}

/// Prefetches the row after `row`.
void RowLowering::prefetch_after(const Reads& reads, Value row) {
  emit_.push_scope();
  emit_.bind(program_, row);
  for (const auto& [node, index] : reads) emit_.prefetch(node, index, program_, schedule_.lanes.share());
  emit_.pop_scope();
}

/// Emits the kernel: one program for each part of the rows, with the next row's loads and the columns' sums carried by
/// the loop over rows.
void RowLowering::rows_of_parts() {
  kernel::Builder& b = emit_.builder();
  std::vector<const Statement*> columns;
  Reads reads;
  std::set<std::pair<NodeId, std::vector<const ix::Node*>>> seen;
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
  emit_.bind_lanes(lane_, first_lane_, schedule_.tile(),
                   schedule_.lanes.share() == schedule_.tile() ? no_value : lane_count());
  for (int p = 0; p < passes_; ++p) hoist(p, {program_});

  std::vector<Value> carried;
  for (const Statement* statement : columns) {
    const IrNode& node = cx_.ir[statement->root.node];
    const Dtype t = compute_dtype(node.type.dtype);
    carried.push_back(b.constant(t, kernel::identity(node.attrs->reducer, t), {schedule_.tile()}));
  }
  for (Value v : fetch(reads, first)) carried.push_back(v);
  carried = b.loop(b.index(0), b.index(each), b.index(1), carried, [&](Value at, const std::vector<Value>& values) {
    const Value row = b.add(first, at);
    const std::vector<Value> next = fetch(reads, b.min(b.add(row, b.index(1)), last));
    if (each > 1 && schedule_.tile() > widest_of_a_warp)
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
