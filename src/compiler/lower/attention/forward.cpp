// The attention class, forward. One program computes a block of queries of one head, or the whole head if its keys fit
// into one block. Keys come in blocks. The running maximum and sum of each query are carried from one block to the
// next, and earlier sums are scaled by exp(old maximum - new maximum) (online softmax; Milakov and Gimelshein,
// arXiv:1805.02867; Dao et al., arXiv:2205.14135). Blocks that the causal mask hides from all queries of a program are
// skipped.
#include <algorithm>
#include <cmath>

#include "compiler/lower/attention/tiles.h"
#include "compiler/region/attention_plan.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

namespace {

// Keys and values are staged once a head if at least this many heads are there to occupy the threads.
constexpr int64_t enough_heads = 8;

class AttentionForward : AttentionTiles {
 public:
  AttentionForward(const LowerContext& cx, Group& group) : AttentionTiles(cx, group, "attention") {}
  Lowered run();

 private:
  struct Row {  // of each query
    Value max, sum;
  };
  void stage_keys(Value first);
  void queries(Value first);
  Row keys(Value query, Value first, Value visible, Row before);
  void weigh(Value visible);
  void finish(Value query, Row row);
  bool one_block() const { return plan_.tk.bound() <= key_block_; }

  Matrix q_, k_, v_, mask_, o_, lse_;
  Scratch query_, key_, value_, score_, sum_, factor_;
};

void AttentionForward::stage_keys(Value first) {
  Value count = part_of(tk_, first, key_block_);
  stage(key_, b_.index(0), k_, first, count, plan_.width);
  stage(value_, b_.index(0), v_, first, count, plan_.value_width);
}

/// Computes the scores of a block of keys, turns them into probabilities with the running maximum, and adds them to the
/// sums.
AttentionForward::Row AttentionForward::keys(Value query, Value first, Value visible, Row before) {
  const std::vector<int64_t> four{4, queries_}, two{2, queries_};
  int64_t known = 0;
  // Rows of the last tile past the last key must not count. With a causal mask they are hidden already.
  const bool ragged = !plan_.region.causal && !(b_.known(tk_, known) && known % key_rows_ == 0);
  each(visible, key_rows_, [&](Value j) {
    Value key = b_.add(first, j), s = scores(key_, j, query_, key, query, mask_);
    if (ragged) {
      Value exists = b_.lt(b_.arange(key_rows_), b_.broadcast(b_.sub(visible, j), {key_rows_}));
      exists = b_.broadcast(b_.reshape(exists, {key_rows_, 1}), {key_rows_, queries_});
      s = b_.select(exists, s, b_.real(float32, -INFINITY, {key_rows_, queries_}));
    }
    store(score_, s, j, 0);
  });
  // A NaN is skipped here; it reaches the result through the exponential.
  auto larger = [&](Value a, Value b) { return b_.select(b_.lt(a, b), b, a); };
  Value m = b_.loop(b_.index(0), visible, b_.index(4), {b_.real(float32, -INFINITY, four)},
                    [&](Value j, const std::vector<Value>& most) {
                      return std::vector<Value>{larger(most[0], load(score_, j, 0, 4, queries_))};
                    })[0];
  m = larger(before.max, b_.reduce(Reducer::max, m, 0));
  // Before any key is seen the maximum is -inf: the shift is then 0, since exp(-inf - 0) is 0.
  Value shift = b_.select(b_.scalar(ScalarOp::eq, {m, b_.real(float32, -INFINITY)}), b_.real(float32, 0), m);
  Value sums = b_.loop(
      b_.index(0), visible, b_.index(2), {b_.real(float32, 0, two)}, [&](Value j, const std::vector<Value>& total) {
        Value p = b_.scalar(ScalarOp::exp, {b_.sub(load(score_, j, 0, 2, queries_), b_.broadcast(shift, two))});
        store(score_, p, j, 0);
        return std::vector<Value>{b_.add(total[0], p)};
      })[0];
  Value sum = b_.reduce(Reducer::sum, sums, 0);
  if (!one_block()) {
    Value scale = b_.scalar(ScalarOp::exp, {b_.sub(before.max, shift)});
    sum = b_.scalar(ScalarOp::fma, {before.sum, scale, sum});
    b_.store(factor_.ref, scale, b_.index(0), {1});
  }
  return {m, sum};
}

/// Computes sum = factor · sum + probabilitiesᵀ · values.
void AttentionForward::weigh(Value visible) {
  each(b_.index(queries_), query_rows_, [&](Value i) {
    for (int64_t c = 0; c < value_width_; c += value_part_) {
      const std::vector<int64_t> dims{query_rows_, value_part_};
      Value before = b_.real(float32, 0, dims);
      if (!one_block())
        before = b_.mul(load(sum_, i, c, dims[0], dims[1]),
                        b_.broadcast(b_.load(factor_.ref, i, {dims[0], 1}, {1, 1}), dims));
      store(sum_, matmul(score_, i, 1, queries_, value_, b_.index(0), c, visible, before), i, c);
    }
  });
}

/// Divides the sums by the softmax denominators and stores the block's results and logsumexps.
void AttentionForward::finish(Value query, Row row) {
  Value count = part_of(tq_, query, queries_);
  Value nothing = b_.scalar(ScalarOp::eq, {row.sum, b_.real(float32, 0)});
  if (lse_.ref >= 0) {
    Value lse = b_.select(nothing, b_.real(float32, INFINITY), b_.add(b_.scalar(ScalarOp::log, {row.sum}), row.max));
    b_.store(lse_.ref, lse, b_.add(lse_.base, b_.mul(query, b_.index(lse_.row))), {lse_.row},
             {rows_left(count, b_.index(0), queries_)});
  }
  if (o_.ref < 0) return;
  Value share = b_.scalar(ScalarOp::div, {b_.real(float32, 1), b_.select(nothing, b_.real(float32, 1), row.sum)});
  b_.store(factor_.ref, share, b_.index(0), {1});
  const Matrix to{o_.ref, b_.add(o_.base, b_.mul(query, b_.index(o_.row))), o_.row, o_.column};
  each(count, query_rows_, [&](Value i) {
    for (int64_t c = 0; c < value_width_; c += value_part_) {
      const std::vector<int64_t> dims{query_rows_, value_part_};
      Value tile =
          b_.mul(load(sum_, i, c, dims[0], dims[1]), b_.broadcast(b_.load(factor_.ref, i, {dims[0], 1}, {1, 1}), dims));
      store_result(to, tile, i, count, c, plan_.value_width);
    }
  });
}

/// Computes a block of queries, from `first` on.
void AttentionForward::queries(Value first) {
  stage_transposed(query_, q_, first, part_of(tq_, first, queries_), plan_.width, plan_.region.scale);
  clear(sum_, b_.index(queries_));
  Row row{b_.real(float32, -INFINITY, {queries_}), b_.real(float32, 0, {queries_})};
  Value visible = visible_keys(first);
  std::vector<Value> last = b_.loop(b_.index(0), visible, b_.index(key_block_), {row.max, row.sum},
                                    [&](Value key, const std::vector<Value>& carried) {
                                      if (!one_block()) stage_keys(key);
                                      Value here = part_of(visible, key, key_block_);
                                      Row next = keys(first, key, here, {carried[0], carried[1]});
                                      weigh(here);
                                      return std::vector<Value>{next.max, next.sum};
                                    });
  finish(first, {last[0], last[1]});
}

Lowered AttentionForward::run() {
  declare(plan_.o, true), declare(plan_.lse, true);
  for (const AttentionOperand* x : {&plan_.q, &plan_.k, &plan_.v, &plan_.mask}) declare(*x, false);
  tq_ = emit_.extent(plan_.tq), tk_ = emit_.extent(plan_.tk);
  query_ = scratch(width_, queries_);
  key_ = scratch(key_block_, width_), value_ = scratch(key_block_, value_width_);
  score_ = scratch(key_block_, queries_), sum_ = scratch(queries_, value_width_), factor_ = scratch(1, queries_);
  const bool whole_head = one_block() && batches() >= enough_heads;
  const int64_t blocks = whole_head ? 1 : (plan_.tq.bound() + queries_ - 1) / queries_;
  Value block = no_value, batch = batch_index(blocks, block);
  q_ = matrix(plan_.q, batch), k_ = matrix(plan_.k, batch), v_ = matrix(plan_.v, batch),
  mask_ = matrix(plan_.mask, batch);
  o_ = matrix(plan_.o, batch), lse_ = matrix(plan_.lse, batch);
  if (whole_head) {
    stage_keys(b_.index(0));
    each(tq_, queries_, [&](Value first) { queries(first); });
  } else {
    Value first = b_.mul(block, b_.index(queries_));
    b_.when(b_.lt(first, tq_), [&] {
      if (one_block()) stage_keys(b_.index(0));
      queries(first);
    });
  }
  const double pairs = static_cast<double>(batches() * plan_.tq.bound()) * static_cast<double>(plan_.tk.bound());
  return emit_.finish(batches() * blocks, 2 * pairs * static_cast<double>(plan_.width + plan_.value_width));
}

}  // namespace

Lowered lower_attention(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  if (is_single_query(group.attention.region, group.attention.tq) && cx.target.machine().simt)
    return lower_attention_row(cx, group);
  return group.attention.region.derivative ? lower_attention_vjp(cx, group) : AttentionForward(cx, group).run();
}

}  // namespace weft::compiler
