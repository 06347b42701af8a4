// Long rows shared by the blocks of a cluster (Machine::max_cluster): every pass is a parallel loop (kernel/tile.h)
// over parts of the row. An iteration leaves one partial result for each reduction. After the loop every block combines
// the partial results of all parts itself, in order, so that the next pass can begin. Values of a part that several
// passes need are kept in scratch.
#include <algorithm>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t whole_words = 8;  // elements that a thread may load at once

}  // namespace

/// Returns the elements of a part, in whole words; the last part may have fewer.
int64_t RowLowering::part() const {
  const int64_t all = schedule_.sharers() * whole_words;
  return (schedule_.lanes.share() + all - 1) / all * whole_words;
}

/// Runs pass p over the lanes of one part in tiles, the remainder under a limit. Returns the partial results.
std::vector<Value> RowLowering::part_loop(int p, Value first, Value count) {
  kernel::Builder& b = emit_.builder();
  const int64_t width = schedule_.tile();
  hoist(p, {lane_});
  const Value step_width = b.index(width),
              full = b.mul(b.scalar(kernel::ScalarOp::floordiv, {count, step_width}), step_width);
  const std::vector<Value> carried = whole_tiles(p, b.index(0), full, first);
  int64_t end = 0, begin = 0;
  if (b.known(count, end) && b.known(full, begin) && begin == end) return carried;
  emit_.push_scope();
  emit_.bind_lanes(lane_, b.add(first, full), width, b.sub(count, full));
  std::vector<Value> last = step(p, carried);
  emit_.pop_scope();
  return last;
}

/// Runs pass p as one parallel loop, then combines the parts' results of each reduction.
void RowLowering::pass_by_cluster(int p, bool first) {
  kernel::Builder& b = emit_.builder();
  const int64_t each = part(), iterations = schedule_.sharers(),
                last = schedule_.lanes.share() - each * (iterations - 1);
  b.parallel(iterations, [&](Value iteration) {
    emit_.push_scope();
    first_lane_ = b.mul(iteration, b.index(each));
    scratch_shift_ = b.mul(iteration, b.index(scratch_share() - each));
    part_count_ = last == each
                      ? b.index(each)
                      : b.max(b.index(0), b.min(b.index(each), b.sub(b.index(schedule_.lanes.share()), first_lane_)));
    if (first) ask_for_row();
    const std::vector<Value> carried = part_loop(p, first_lane_, part_count_);
    size_t next = 0;
    for (const Statement& statement : statements_)
      if (statement.pass == p && statement.carries())
        store_part(statement,
                   kernel::reduce_state(b, node_of(statement).attrs->reducer, state_of(statement, carried, next), 0),
                   iteration, {});
    emit_.pop_scope();
  });
  for (const Statement& statement : statements_)
    if (statement.pass == p && statement.carries()) finish_parts(statement, {iterations}, {1});
}

/// Allocates scratch for the parts' states of every reduction, each component of `elements`.
void RowLowering::allocate_parts(int64_t elements) {
  for (const Statement& statement : statements_) {
    std::vector<kernel::Ref>& components = sums_.emplace_back();
    if (!statement.carries()) continue;
    for (const Dtype t : state_dtypes(statement)) components.push_back(emit_.builder().local(t, elements));
  }
}

/// Stores the state of one part from element `at` on.
void RowLowering::store_part(const Statement& statement, const kernel::State& state, Value at,
                             const std::vector<int64_t>& strides) {
  const std::vector<kernel::Ref>& components = sums_[static_cast<size_t>(&statement - statements_.data())];
  for (size_t k = 0; k < components.size(); ++k) emit_.builder().store(components[k], state[k], at, strides);
}

/// Combines the states of all parts, tiles whose first axis counts the parts.
void RowLowering::finish_parts(const Statement& statement, const std::vector<int64_t>& dims,
                               const std::vector<int64_t>& strides) {
  kernel::Builder& b = emit_.builder();
  kernel::State parts;
  for (const kernel::Ref component : sums_[static_cast<size_t>(&statement - statements_.data())])
    parts.push_back(b.load(component, b.index(0), dims, strides));
  finish_reduction(statement, kernel::reduce_state(b, node_of(statement).attrs->reducer, parts, 0));
}

/// Emits the kernel for rows shared by a cluster: the passes, then the stores of results.
void RowLowering::rows_by_cluster() {
  kernel::Builder& b = emit_.builder();
  find_reused();
  allocate_parts(schedule_.sharers());
  emit_.bind(program_, outer_.empty() ? b.index(0) : b.program_id());
  bool first = true;
  for (int p = 0; p < passes_; ++p) {
    row_roots(p);
    if (std::none_of(statements_.begin(), statements_.end(),
                     [&](const Statement& s) { return s.pass == p && s.root.kind != RootKind::row; }))
      continue;
    pass_by_cluster(p, std::exchange(first, false));
  }
  row_roots(passes_);
  for (const auto& [statement, v] : late_stores_) emit_.store(statement->root.node, statement->root.index, v, false);
}

}  // namespace weft::compiler
