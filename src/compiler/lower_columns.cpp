// Column folds over much data. A program has a strip of columns, as many as make a run of memory that is read at full speed, and goes through the rows a few at
// a time; the sums of its columns wait in scratch. The sum of a column has the same order in a strip of any width.
#include <algorithm>
#include <functional>

#include "compiler/lower_rows.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t rows_at_once = 8;

}  // namespace

/// Columns of a strip, or 0 where one tile of columns at a time does as well: the data fits into a cache, or the group does more than fold.
int64_t RowLowering::strip() const {
  if (cx_.target.many_threads() || schedule_.kind != RowClass::column || passes_ != 1 || !is_static(group_.domain)) return 0;
  if (schedule_.lane_extent * extent_of(serial_) < int64_t{1} << 19 || extent_of(serial_) < 4 * rows_at_once) return 0;
  if (std::any_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.root.kind == RootKind::full; })) return 0;
  int64_t width = 512;
  while (width > schedule_.width && schedule_.lane_extent * extent_of(outer_) < 8 * width) width /= 2;
  return width > schedule_.width ? width : 0;
}

void RowLowering::strip_passes(int64_t width) {
  kernel::Builder& b = emit_.builder();
  const int64_t tile = schedule_.width, count = extent_of(serial_), whole_rows = count / rows_at_once * rows_at_once;
  for (int node : group_.reads) emit_.param(node, false);  // all of them come before the scratch
  std::vector<kernel::Ref> sums;
  const std::vector<Value> start = identities(0);
  for (Value v : start) sums.push_back(b.local(b.type(v).dtype, width));
  const bool even = schedule_.lane_extent % tile == 0;
  Value left = b.sub(b.index(schedule_.lane_extent), first_lane_);
  Value end = schedule_.lane_extent % width == 0 ? b.index(width) : b.min(left, b.index(width));

  auto tiles = [&](const std::function<void(Value, std::vector<Value>)>& body) {  // body(place in the strip, sums)
    b.loop(b.index(0), end, b.index(tile), {}, [&](Value at, const std::vector<Value>&) {
      emit_.push_scope();
      emit_.bind_lanes(lane_, b.add(first_lane_, at), tile, even ? no_value : b.sub(left, at));
      std::vector<Value> carried;
      for (kernel::Ref ref : sums) carried.push_back(b.load(ref, at, {tile}, {1}));
      body(at, std::move(carried));
      emit_.pop_scope();
      return std::vector<Value>{};
    });
  };
  auto put = [&](Value at, const std::vector<Value>& values) {
    for (size_t k = 0; k < sums.size(); ++k) b.store(sums[k], values[k], at, {1});
  };
  auto row = [&](Value j, const std::vector<Value>& values) {
    emit_.push_scope();
    emit_.bind(loop_, j);
    std::vector<Value> next = step(0, values);
    emit_.pop_scope();
    return next;
  };

  b.loop(b.index(0), end, b.index(tile), {}, [&](Value at, const std::vector<Value>&) {
    put(at, start);
    return std::vector<Value>{};
  });
  b.loop(b.index(0), b.index(whole_rows), b.index(rows_at_once), {}, [&](Value first, const std::vector<Value>&) {
    tiles([&](Value at, std::vector<Value> carried) {
      hoist(0, {loop_});
      const size_t folds = carried.size(), parts = 4;
      std::vector<Value> partial;
      for (size_t part = 0; part < parts; ++part) partial.insert(partial.end(), start.begin(), start.end());
      for (int64_t r = 0; r < rows_at_once; ++r) {
        auto part = partial.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(r) % parts * folds);
        std::vector<Value> next = row(b.add(first, b.index(r)), {part, part + static_cast<std::ptrdiff_t>(folds)});
        std::copy(next.begin(), next.end(), part);
      }
      partial = combine_parts(0, std::move(partial), parts);
      partial.insert(partial.begin(), carried.begin(), carried.end());
      put(at, combine_parts(0, std::move(partial), 2));
    });
    return std::vector<Value>{};
  });
  b.loop(b.index(whole_rows), b.index(count), b.index(1), {}, [&](Value j, const std::vector<Value>&) {
    tiles([&](Value at, std::vector<Value> carried) { put(at, row(j, carried)); });
    return std::vector<Value>{};
  });
  tiles([&](Value, std::vector<Value> carried) {
    finish_folds(0, carried);
    row_roots(1);
  });
}

}  // namespace weft::compiler
