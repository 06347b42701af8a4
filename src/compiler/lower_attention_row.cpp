// The attention class for one query, as decoding asks it: a program for each head and, by a block of threads, many keys at a time. Keys come in tiles [keys, width],
// read as they lie in memory; the running maximum and sum are single numbers (online softmax, see lower_attention.cpp), and each place of a tile keeps a sum of
// values of its own until the end. How many keys there are may be a number in memory: rows past it are not read, so that a program of fixed shapes serves a cache that
// fills up. Over many keys a program has a piece of them (split_attention.h), and further programs join the pieces.
#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/attention_tiles.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

namespace {

constexpr int64_t tile_elements = 1024;  // 16 registers of each of 64 threads: of many programs

class AttentionRow : AttentionTiles {
 public:
  AttentionRow(const LowerContext& cx, Group& group) : AttentionTiles(cx, group, "attention_row") {}
  Lowered run();

 private:
  struct State {
    Value max, sum, values;
  };
  Value tile(const Matrix& from, Value first, Value left, int64_t width, bool one_row);
  State keys(Value first, Value query, State before);
  void walk(Value first, Value end);
  void finish(const State& state);
  void finish_nothing();
  void join();
  Value whole_row(Value v) { return b_.broadcast(b_.reshape(v, {rows_, 1}), {rows_, value_wide_}); }

  int64_t rows_ = 1, wide_ = 1, value_wide_ = 1;
  Value count_ = no_value;
  Matrix q_, k_, v_, o_, lse_;
};

/// Rows of `from` as float32, zeros past the end; or its only row again and again.
Value AttentionRow::tile(const Matrix& from, Value first, Value left, int64_t width, bool one_row) {
  const int64_t wide = std::bit_ceil(static_cast<uint64_t>(width));
  const Value at = one_row ? from.base : b_.add(from.base, b_.mul(first, b_.index(from.row)));
  const Value columns = wide == width ? no_value : b_.index(width);
  return b_.cast(b_.load(from.ref, at, {rows_, wide}, {one_row ? 0 : from.row, from.column}, {one_row ? no_value : left, columns}, {}, !one_row), float32);
}

AttentionRow::State AttentionRow::keys(Value first, Value query, State before) {
  const Value left = b_.sub(count_, first);
  const Value k = tile(k_, first, left, plan_.width, false), v = tile(v_, first, left, plan_.value_width, false);
  Value s = b_.mul(b_.reduce(Reducer::sum, b_.mul(query, k), 1), b_.real(float32, plan_.region.scale));
  s = b_.select(b_.lt(b_.arange(rows_), b_.broadcast(left, {rows_})), s, b_.real(float32, -INFINITY, {rows_}));
  const Value most = b_.reduce(Reducer::max, s, 0);
  const Value max = b_.select(b_.lt(before.max, most), most, before.max);
  // Where every score is -inf so far: exp(-inf - 0) is 0.
  const Value shift = b_.select(b_.scalar(ScalarOp::eq, {max, b_.real(float32, -INFINITY)}), b_.real(float32, 0), max);
  const Value p = b_.scalar(ScalarOp::exp, {b_.sub(s, b_.broadcast(shift, {rows_}))});
  const Value scale = b_.scalar(ScalarOp::exp, {b_.sub(before.max, shift)});
  const std::vector<int64_t> dims{rows_, value_wide_};
  return {max, b_.scalar(ScalarOp::fma, {before.sum, scale, b_.reduce(Reducer::sum, p, 0)}),
          b_.scalar(ScalarOp::fma, {whole_row(p), v, b_.mul(before.values, b_.broadcast(scale, dims))})};
}

void AttentionRow::finish(const State& state) {
  const Value nothing = b_.scalar(ScalarOp::eq, {state.sum, b_.real(float32, 0)});
  if (lse_.ref >= 0)
    b_.store(lse_.ref, b_.select(nothing, b_.real(float32, INFINITY), b_.add(b_.scalar(ScalarOp::log, {state.sum}), state.max)), lse_.base, {}, {});
  if (o_.ref < 0) return;
  const Value share = b_.scalar(ScalarOp::div, {b_.real(float32, 1), b_.select(nothing, b_.real(float32, 1), state.sum)});
  const Value row = b_.mul(b_.reduce(Reducer::sum, state.values, 0), b_.broadcast(share, {value_wide_}));
  b_.store(o_.ref, b_.cast(row, plan_.o.dtype), o_.base, {o_.column}, {value_wide_ == plan_.value_width ? no_value : b_.index(plan_.value_width)});
}

/// A piece without keys has no weight.
void AttentionRow::finish_nothing() {
  b_.store(lse_.ref, b_.real(float32, -INFINITY), lse_.base, {}, {});
  b_.store(o_.ref, b_.real(float32, 0, {value_wide_}), o_.base, {o_.column}, {value_wide_ == plan_.value_width ? no_value : b_.index(plan_.value_width)});
}

/// The keys from `first` to `end`.
void AttentionRow::walk(Value first, Value end) {
  const Value query = tile(q_, no_value, no_value, plan_.width, true);
  const State start{b_.real(float32, -INFINITY), b_.real(float32, 0), b_.real(float32, 0, {rows_, value_wide_})};
  count_ = end;
  const std::vector<Value> last = b_.loop(first, end, b_.index(rows_), {start.max, start.sum, start.values}, [&](Value at, const std::vector<Value>& carried) {
    const State next = keys(at, query, {carried[0], carried[1], carried[2]});
    return std::vector<Value>{next.max, next.sum, next.values};
  });
  finish({last[0], last[1], last[2]});
}

/// The softmax of the pieces' logsumexps weighs their results.
void AttentionRow::join() {
  rows_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.tk.bound())));
  const Value count = b_.index(plan_.tk.bound()), rows = tile(v_, b_.index(0), count, plan_.value_width, false);
  const Value s = b_.load(k_.ref, k_.base, {rows_}, {k_.row}, {count}, Number::of_real(-INFINITY));
  const Value most = b_.reduce(Reducer::max, s, 0);
  const Value shift = b_.select(b_.scalar(ScalarOp::eq, {most, b_.real(float32, -INFINITY)}), b_.real(float32, 0), most);
  const Value p = b_.scalar(ScalarOp::exp, {b_.sub(s, b_.broadcast(shift, {rows_}))});
  finish({most, b_.reduce(Reducer::sum, p, 0), b_.mul(whole_row(p), rows)});
}

Lowered AttentionRow::run() {
  declare(plan_.o, true), declare(plan_.lse, true);
  for (const AttentionOperand* x : {&plan_.q, &plan_.k, &plan_.v, &plan_.mask}) declare(*x, false);
  const int64_t pieces = std::max<int64_t>(1, plan_.pieces);
  Value piece = no_value;
  const Value batch = batch_index(pieces, piece);
  q_ = matrix(plan_.q, batch), k_ = matrix(plan_.k, batch), v_ = matrix(plan_.v, batch);
  o_ = matrix(plan_.o, batch), lse_ = matrix(plan_.lse, batch);
  wide_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.width)));
  value_wide_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.value_width)));
  rows_ = std::max<int64_t>(1, tile_elements / std::max(wide_, value_wide_));
  rows_ = std::min(rows_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.tk.bound()))));
  const double pairs = static_cast<double>(batches()) * static_cast<double>(plan_.tk.bound());
  const double work = 2 * pairs * static_cast<double>(plan_.width + plan_.value_width);
  if (plan_.join) {
    join();
    return emit_.finish(batches(), work);
  }
  Value count = emit_.extent(plan_.tk);
  if (plan_.mask.node >= 0) {
    const Matrix visible = matrix(plan_.mask, batch);
    count = b_.min(count, b_.cast(b_.load(visible.ref, visible.base, {}, {}), int64));
  }
  if (plan_.pieces == 0) {
    walk(b_.index(0), count);
    return emit_.finish(batches(), work);
  }
  o_.base = b_.add(o_.base, b_.mul(piece, b_.index(o_.row)));
  lse_.base = b_.add(lse_.base, b_.mul(piece, b_.index(lse_.row)));
  const Value first = b_.mul(piece, b_.index(plan_.piece_keys));
  b_.when(b_.lt(first, count), [&] { walk(first, b_.min(count, b_.add(first, b_.index(plan_.piece_keys)))); });
  b_.when(b_.scalar(ScalarOp::le, {count, first}), [&] { finish_nothing(); });
  return emit_.finish(batches() * pieces, work);
}

}  // namespace

Lowered lower_attention_row(const LowerContext& cx, Group& group) { return AttentionRow(cx, group).run(); }

}  // namespace weft::compiler
