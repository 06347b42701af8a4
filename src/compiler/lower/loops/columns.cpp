// Column reductions over large data. A program has a panel of columns, wide enough for full memory bandwidth, and walks
// through the rows a few at a time; the columns' sums are in scratch. The order of a column's sum does not depend on
// the panel's width. With clusters, many warps share a panel.
#include <algorithm>
#include <bit>
#include <functional>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr size_t most_partial_sums = 4;       // partial sums of each column in a part
constexpr int64_t bytes_in_flight = 4 << 10;  // in flight for a warp: 32 registers a thread

}  // namespace

/// Adds row `j` of the columns to their sums.
std::vector<Value> RowLowering::step_of_row(Value j, const std::vector<Value>& sums) {
  emit_.push_scope();
  emit_.bind(loop_, j);
  std::vector<Value> next = step(0, sums);
  emit_.pop_scope();
  return next;
}

/// Adds the `count` rows from `first` on to their sums: at once where a state has a frame, else by four interleaved
/// partial sums.
std::vector<Value> RowLowering::block_of_rows(Value first, int64_t count, std::vector<Value> sums) {
  kernel::Builder& b = emit_.builder();
  if (has_frames(0))
    return step_of_several(0, static_cast<size_t>(count), sums, [&](size_t r, const std::function<void()>& body) {
      emit_.push_scope();
      emit_.bind(loop_, b.add(first, b.index(static_cast<int64_t>(r))));
      body();
      emit_.pop_scope();
    });
  const std::vector<Value> start = identities(0);
  const size_t reductions = sums.size(), parts = 4;
  std::vector<Value> partial;
  for (size_t part = 0; part < parts; ++part) partial.insert(partial.end(), start.begin(), start.end());
  for (int64_t r = 0; r < count; ++r) {
    auto part = partial.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(r) % parts * reductions);
    std::vector<Value> next =
        step_of_row(b.add(first, b.index(r)), {part, part + static_cast<std::ptrdiff_t>(reductions)});
    std::copy(next.begin(), next.end(), part);
  }
  partial = combine_parts(0, std::move(partial), parts);
  partial.insert(partial.begin(), sums.begin(), sums.end());
  return combine_parts(0, std::move(partial), 2);
}

/// Emits the kernel for panels. In a block of some rows each tile of columns loads its sums once.
void RowLowering::panel_passes() {
  kernel::Builder& b = emit_.builder();
  const int64_t width = schedule_.block(), tile = schedule_.tile(), count = extent_of(serial_),
                rows_at_once = schedule_.loop.count(Level::unroll), whole_rows = count / rows_at_once * rows_at_once;
  for (NodeId node : group_.reads) emit_.param(node, false);  // all of them come before the scratch
  std::vector<kernel::Ref> sums;
  const std::vector<Value> start = identities(0);
  for (Value v : start) sums.push_back(b.local(b.type(v).dtype, width));
  const bool even = schedule_.lanes.share() % tile == 0;
  Value left = b.sub(b.index(schedule_.lanes.share()), first_lane_);
  Value end = schedule_.lanes.share() % width == 0 ? b.index(width) : b.min(left, b.index(width));

  // Calls body(position in the panel) for each tile, or body(position, sums).
  auto positions = [&](const std::function<void(Value)>& body) {
    b.loop(b.index(0), end, b.index(tile), {}, [&](Value at, const std::vector<Value>&) {
      emit_.push_scope();
      emit_.bind_lanes(lane_, b.add(first_lane_, at), tile, even ? no_value : b.sub(left, at));
      body(at);
      emit_.pop_scope();
      return std::vector<Value>{};
    });
  };
  auto tiles = [&](const std::function<void(Value, std::vector<Value>)>& body) {
    positions([&](Value at) {
      std::vector<Value> carried;
      for (kernel::Ref ref : sums) carried.push_back(b.load(ref, at, {tile}, {1}));
      body(at, std::move(carried));
    });
  };
  auto put = [&](Value at, const std::vector<Value>& values) {
    for (size_t k = 0; k < sums.size(); ++k) b.store(sums[k], values[k], at, {1});
  };
  positions([&](Value at) {
    put(at, start);
    row_roots(0);  // stored first, since the rows may read them
  });
  b.loop(b.index(0), b.index(whole_rows), b.index(rows_at_once), {}, [&](Value first, const std::vector<Value>&) {
    tiles([&](Value at, std::vector<Value> carried) {
      hoist(0, {loop_});
      put(at, block_of_rows(first, rows_at_once, std::move(carried)));
    });
    return std::vector<Value>{};
  });
  b.loop(b.index(whole_rows), b.index(count), b.index(1), {}, [&](Value j, const std::vector<Value>&) {
    tiles([&](Value at, std::vector<Value> carried) { put(at, step_of_row(j, carried)); });
    return std::vector<Value>{};
  });
  tiles([&](Value, std::vector<Value> carried) {
    finish_reductions(0, carried);
    row_roots(1);
  });
}

/// Returns how many elements of a column a warp loads before it adds the first of them: no more than a part of a column
/// has. A CPU takes a few at once, where a state has a frame.
size_t RowLowering::unroll_of_columns(int p, int64_t parts) {
  Reads all;
  for (const Statement& statement : statements_)
    if (statement.root.kind != RootKind::row)
      for (auto& read : reads_of(statement))
        if (std::find(all.begin(), all.end(), read) == all.end()) all.push_back(std::move(read));
  int64_t bytes = 0;
  for (const auto& [node, index] : all) {
    const Dtype t = cx_.ir[node].type.dtype;
    bytes += (has_frames(p) ? compute_dtype(t) : t).size();  // all elements are widened before a frame is known
  }
  constexpr int64_t least = 4, most = 32;
  const bool in_flight = cx_.target.machine().wants_loads_in_flight();
  const int64_t each = schedule_.tile() * std::max<int64_t>(1, bytes),
                unroll = in_flight ? std::clamp(bytes_in_flight / each, least, most) : least;
  return static_cast<size_t>(std::min(unroll, std::max<int64_t>(1, extent_of(serial_) / parts)));
}

/// Reduces one part of the columns, of `count`: several elements at a time, with all their loads in flight together.
/// The remainder of that unrolling belongs to the last part.
std::vector<Value> RowLowering::part_of_columns(int p, Value part, int64_t count) {
  kernel::Builder& b = emit_.builder();
  const std::vector<Value> start = identities(p);
  const size_t elements = unroll_of_parts_ = unroll_of_columns(p, count);
  const auto unroll = static_cast<int64_t>(elements), extent = extent_of(serial_);
  const int64_t whole = extent / unroll, each = (whole + count - 1) / count;
  const size_t sums = std::bit_floor(std::max<size_t>(1, most_partial_sums / start.size()));
  std::vector<Value> carried;
  for (size_t k = 0; k < sums; ++k) carried.insert(carried.end(), start.begin(), start.end());
  const Value first = b.mul(part, b.index(each)), next = b.add(first, b.index(each));
  carried = combine_parts(
      p, unrolled_loop(p, carried, elements, sums, first, whole % count == 0 ? next : b.min(next, b.index(whole))),
      sums);
  if (whole * unroll == extent) return carried;
  const Value end =
      b.select(b.scalar(kernel::ScalarOp::eq, {part, b.index(count - 1)}), b.index(extent), b.index(whole * unroll));
  return b.loop(b.index(whole * unroll), end, b.index(1), carried, [&](Value at, const std::vector<Value>& values) {
    emit_.push_scope();
    emit_.bind(loop_, at);
    std::vector<Value> sum = step(p, values);
    emit_.pop_scope();
    return sum;
  });
}

/// Divides what is reduced among warps (a parallel loop, kernel/tile.h) and combines their results in the order of the
/// parts.
void RowLowering::columns_by_warps() {
  kernel::Builder& b = emit_.builder();
  const int64_t iterations = schedule_.sharers(), width = schedule_.tile();
  for (NodeId node : group_.reads) emit_.param(node, false);  // all of them come before the scratch
  allocate_parts(iterations * width);
  bind_programs();
  emit_.bind_lanes(lane_, first_lane_, width,
                   schedule_.lanes.share() % width == 0 ? no_value : b.sub(lane_count(), first_lane_));
  b.parallel(iterations, [&](Value iteration) {
    emit_.push_scope();
    hoist(0, {loop_});
    const std::vector<Value> carried = part_of_columns(0, iteration, iterations);
    size_t next = 0;
    for (const Statement& statement : statements_)
      if (statement.carries())
        store_part(statement, state_of(statement, carried, next), b.mul(iteration, b.index(width)), {1});
    emit_.pop_scope();
  });
  for (const Statement& statement : statements_)
    if (statement.carries()) finish_parts(statement, {iterations, width}, {width, 1});
  row_roots(0);
  row_roots(1);
  for (const auto& [statement, v] : late_stores_) emit_.store(statement->root.node, statement->root.index, v, false);
}

}  // namespace weft::compiler
