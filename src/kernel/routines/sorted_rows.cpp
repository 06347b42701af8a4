#include "kernel/routines/sorted_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft::kernel {

namespace {

// Rows of a chunk, and those that are loaded before the first of them is added. The sum waits for each row in turn, so
// that loads of one row alone would leave memory idle.
constexpr int64_t chunk_rows = 32, rows_at_once = 4;
constexpr int64_t widest_panel = 256;

}  // namespace

int64_t SortedRows::panel() const {
  return std::min<int64_t>({static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width))), widest_panel, lanes});
}

int64_t SortedRows::chunks() const { return (count + chunk_rows - 1) / chunk_rows; }

SortedRowsProgram::SortedRowsProgram(Builder& b, const SortedRows& sizes, Key key)
    : b_(b), sizes_(sizes), panel_(sizes.panel()), key_(std::move(key)) {
  const Value program = b_.program_id(), panels = b_.index(sizes_.panels());
  chunk_ = b_.scalar(ScalarOp::floordiv, {program, panels});
  start_ = b_.mul(chunk_, b_.index(chunk_rows));
  end_ = b_.add(start_, b_.index(chunk_rows));
  if (sizes_.count % chunk_rows != 0) end_ = b_.min(end_, b_.index(sizes_.count));
  column_ = b_.mul(b_.scalar(ScalarOp::mod, {program, panels}), b_.index(panel_));
  left_ = sizes_.width % panel_ == 0 ? no_value : b_.sub(b_.index(sizes_.width), column_);
}

/// Returns whether the chunk's first run began in an earlier chunk.
Value SortedRowsProgram::begins_before() {
  return both(b_.lt(b_.index(0), start_), equal(key(b_.sub(start_, b_.index(1))), key(start_)));
}

Value SortedRowsProgram::part_offset(Value chunk, int64_t which) {
  const Value row = b_.add(b_.mul(chunk, b_.index(2)), b_.index(which));
  return b_.add(b_.mul(row, b_.index(sizes_.width)), column_);
}

void SortedRowsProgram::add_to_row(Ref result, Value key, Value sum) {
  b_.when(b_.lt(key, b_.index(sizes_.rows)), [&] {
    const Value offset = b_.add(b_.mul(key, b_.index(sizes_.width)), column_);
    const Value before = b_.cast(load(result, offset), sizes_.sum());
    store(result, b_.cast(b_.add(before, sum), sizes_.dtype), offset);
  });
}

void SortedRowsProgram::add_chunk(Ref result, Ref parts, const Load& load) {
  const Value zero = b_.constant(sizes_.sum(), Number::of_real(0), {panel_}), last = b_.index(sizes_.count - 1),
              continued = begins_before();
  const bool ragged = sizes_.count % rows_at_once != 0;  // the last chunk may end between rows that are loaded together
  b_.loop(start_, end_, b_.index(rows_at_once), {zero, start_}, [&](Value first, const std::vector<Value>& carried) {
    std::vector<Value> at, keys;
    for (int64_t k = 0; k < rows_at_once; ++k) {
      at.push_back(b_.add(first, b_.index(k)));
      keys.push_back(key(at.back()));
    }
    keys.push_back(key(b_.add(first, b_.index(rows_at_once))));
    std::vector<Value> inside = at;
    if (ragged)
      for (Value& v : inside) v = b_.min(v, last);
    const std::vector<Value> rows = load(inside);
    Value sum = carried[0], run_start = carried[1];
    for (size_t k = 0; k < rows.size(); ++k) {
      const Value next = b_.add(at[k], b_.index(1)), total = b_.add(sum, rows[k]);
      Value ends = none(equal(keys[k], keys[k + 1])), done = ends;
      if (ragged || k + 1 == rows.size()) {
        ends = b_.scalar(ScalarOp::bit_or, {ends, b_.scalar(ScalarOp::le, {b_.index(sizes_.count), next})});
        done = b_.scalar(ScalarOp::bit_or, {ends, b_.scalar(ScalarOp::le, {end_, next})});
      }
      if (ragged) done = both(done, b_.lt(at[k], end_));
      b_.when(done, [&] {
        const Value from_before = both(equal(run_start, start_), continued);
        b_.when(from_before, [&] { store(parts, total, part_offset(chunk_, 0)); });
        b_.when(both(none(from_before), none(ends)), [&] { store(parts, total, part_offset(chunk_, 1)); });
        b_.when(both(none(from_before), ends), [&] { add_to_row(result, keys[k], total); });
      });
      sum = b_.select(b_.broadcast(done, {panel_}), zero, total);
      run_start = b_.select(done, next, run_start);
    }
    return std::vector<Value>{sum, run_start};
  });
}

void SortedRowsProgram::add_run(Ref result, Ref parts) {
  const Value own = key(b_.sub(end_, b_.index(1)));
  const Value goes_on = both(b_.lt(end_, b_.index(sizes_.count)), equal(key(end_), own));
  const Value from_before = both(equal(key(start_), own), begins_before());
  b_.when(both(goes_on, none(from_before)), [&] {
    // A binary search for the end of the run.
    const int64_t steps = std::bit_width(static_cast<uint64_t>(sizes_.count));
    const auto found = b_.loop(b_.index(0), b_.index(steps), b_.index(1), {end_, b_.index(sizes_.count)},
                               [&](Value, const std::vector<Value>& range) {
                                 const Value open = b_.lt(range[0], range[1]),
                                             middle =
                                                 b_.scalar(ScalarOp::shr, {b_.add(range[0], range[1]), b_.index(1)});
                                 const Value same = both(open, equal(key(middle), own));
                                 return std::vector<Value>{b_.select(same, b_.add(middle, b_.index(1)), range[0]),
                                                           b_.select(both(open, none(same)), middle, range[1])};
                               });
    const Value last = b_.scalar(ScalarOp::floordiv, {b_.sub(found[0], b_.index(1)), b_.index(chunk_rows)});
    const auto sum = b_.loop(b_.add(chunk_, b_.index(1)), b_.add(last, b_.index(1)), b_.index(1),
                             {load(parts, part_offset(chunk_, 1))}, [&](Value c, const std::vector<Value>& carried) {
                               return std::vector<Value>{b_.add(carried[0], load(parts, part_offset(c, 0)))};
                             });
    add_to_row(result, own, sum[0]);
  });
}

}  // namespace weft::kernel
