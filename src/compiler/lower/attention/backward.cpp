// The attention class, backward: one program a head. Queries come in blocks. For each, the probabilities are computed
// again from the scores and the rows' logsumexp, one block of keys after another, and all matmuls with them run while
// they are in local scratch. The gradients of keys and values are summed over the blocks of queries in scratch too, in
// one order for any number of threads.
#include <algorithm>
#include <cmath>

#include "compiler/lower/attention/tiles.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

namespace {

class AttentionBackward : AttentionTiles {
 public:
  AttentionBackward(const LowerContext& cx, Group& group) : AttentionTiles(cx, group, "attention_vjp") {}
  Lowered run();

 private:
  void queries(Value first);
  void row_sums(Value first, Value count);
  void probabilities(Value query, Value key, Value visible, Value lse, Value delta);
  void add_to_keys(Value key, Value visible, Value count);
  void add_to_queries(Value key, Value visible);
  void results(const Matrix& to, const Scratch& from, Value first, Value count, int64_t part, int64_t columns);
  bool wants_queries() const { return plan_.dq.node >= 0; }
  bool wants_keys() const { return plan_.dk.node >= 0; }
  bool wants_values() const { return plan_.dv.node >= 0; }

  Matrix q_, k_, v_, mask_, o_, lse_, g_, dq_, dk_, dv_;
  Scratch key_, value_, query_, g_rows_, query_columns_, g_columns_, p_, ds_, delta_, dq_sum_, dk_sum_, dv_sum_;
};

/// Computes delta = Σ g · o along each row.
void AttentionBackward::row_sums(Value first, Value count) {
  each(count, query_rows_, [&](Value i) {
    const std::vector<int64_t> dims{query_rows_, value_part_};
    Value total = b_.real(float32, 0, dims), rows = rows_left(count, i, query_rows_);
    for (int64_t c = 0; c < value_width_; c += value_part_) {
      Value limit = plan_.value_width - c >= value_part_ ? no_value : b_.index(plan_.value_width - c);
      Value offset = b_.add(b_.add(o_.base, b_.mul(b_.add(first, i), b_.index(o_.row))), b_.index(c * o_.column));
      Value o = b_.cast(b_.load(o_.ref, offset, dims, {o_.row, o_.column}, {rows, limit}), float32);
      total = b_.scalar(ScalarOp::fma, {load(g_rows_, i, c, dims[0], dims[1]), o, total});
    }
    b_.store(delta_.ref, b_.reduce(Reducer::sum, total, 1), i, {1});
  });
}

/// Computes the probabilities and the gradients of the scores times `scale`, [keys, queries] in scratch.
void AttentionBackward::probabilities(Value query, Value key, Value visible, Value lse, Value delta) {
  each(visible, key_rows_, [&](Value j) {
    Value at_key = b_.add(key, j);
    store(p_, scores(key_, at_key, query_columns_, at_key, query, mask_), j, 0);
    store(ds_,
          matmul(value_, at(at_key, value_.width, 0), value_.width, 1, g_columns_, b_.index(0), 0,
                 b_.index(plan_.value_width), b_.real(float32, 0, {key_rows_, queries_})),
          j, 0);
  });
  const std::vector<int64_t> two{2, queries_};
  each(visible, key_rows_,
       [&](Value tile) {  // whole tiles: the gradients of hidden keys are added to as well
         for (int64_t r = 0; r < key_rows_; r += 2) {
           Value j = b_.add(tile, b_.index(r));
           Value p = b_.scalar(ScalarOp::exp, {b_.sub(load(p_, j, 0, 2, queries_), b_.broadcast(lse, two))});
           Value ds = b_.mul(p, b_.sub(load(ds_, j, 0, 2, queries_), b_.broadcast(delta, two)));
           store(p_, p, j, 0);
           store(ds_, b_.mul(ds, b_.real(float32, plan_.region.scale)), j, 0);
         }
       });
}

/// Adds p · g to dv and ds · q to dk for a block of keys.
void AttentionBackward::add_to_keys(Value key, Value visible, Value count) {
  auto add = [&](const Scratch& sum, const Scratch& weights, const Scratch& rows, int64_t part, Value j) {
    for (int64_t c = 0; c < sum.width; c += part) {
      Value before = load(sum, b_.add(key, j), c, key_rows_, part);
      store(sum, matmul(weights, at(j, queries_, 0), queries_, 1, rows, b_.index(0), c, count, before), b_.add(key, j),
            c);
    }
  };
  each(visible, key_rows_, [&](Value j) {
    if (wants_values()) add(dv_sum_, p_, g_rows_, value_part_, j);
    if (wants_keys()) add(dk_sum_, ds_, query_, part_, j);
  });
}

/// Adds dsᵀ · k to dq.
void AttentionBackward::add_to_queries(Value key, Value visible) {
  each(b_.index(queries_), query_rows_, [&](Value i) {
    for (int64_t c = 0; c < width_; c += part_) {
      Value before = load(dq_sum_, i, c, query_rows_, part_);
      store(dq_sum_, matmul(ds_, i, 1, queries_, key_, key, c, visible, before), i, c);
    }
  });
}

void AttentionBackward::results(const Matrix& to, const Scratch& from, Value first, Value count, int64_t part,
                                int64_t columns) {
  const Matrix rows{to.ref, b_.add(to.base, b_.mul(first, b_.index(to.row))), to.row, to.column};
  const int64_t tall = std::min(from.rows, key_rows_);
  each(count, tall, [&](Value i) {
    for (int64_t c = 0; c < from.width; c += part)
      store_result(rows, load(from, i, c, tall, part), i, count, c, columns);
  });
}

/// Processes a block of queries, from `first` on.
void AttentionBackward::queries(Value first) {
  Value count = part_of(tq_, first, queries_);
  stage_transposed(query_columns_, q_, first, count, plan_.width, plan_.region.scale);
  stage_transposed(g_columns_, g_, first, count, plan_.value_width, 1);
  if (wants_keys()) stage(query_, b_.index(0), q_, first, count, plan_.width);
  stage(g_rows_, b_.index(0), g_, first, count, plan_.value_width);
  clear(delta_, b_.index(1));
  row_sums(first, count);
  if (wants_queries()) clear(dq_sum_, b_.index(queries_));
  // Queries past the last see nothing: their logsumexp is +inf.
  Value lse = b_.load(lse_.ref, b_.add(lse_.base, b_.mul(first, b_.index(lse_.row))), {queries_}, {lse_.row},
                      {rows_left(count, b_.index(0), queries_)}, Number::of_real(INFINITY));
  Value delta = b_.load(delta_.ref, b_.index(0), {queries_}, {1});
  Value visible = visible_keys(first);
  each(visible, key_block_, [&](Value key) {
    Value here = part_of(visible, key, key_block_);
    probabilities(first, key, here, lse, delta);
    if (wants_keys() || wants_values()) add_to_keys(key, here, count);
    if (wants_queries()) add_to_queries(key, here);
  });
  if (wants_queries()) results(dq_, dq_sum_, first, count, part_, plan_.width);
}

Lowered AttentionBackward::run() {
  for (const AttentionOperand* x : {&plan_.dq, &plan_.dk, &plan_.dv}) declare(*x, true);
  for (const AttentionOperand* x : {&plan_.q, &plan_.k, &plan_.v, &plan_.mask, &plan_.o, &plan_.lse, &plan_.g})
    declare(*x, false);
  tq_ = emit_.extent(plan_.tq), tk_ = emit_.extent(plan_.tk);
  const int64_t keys = padded(plan_.tk.bound(), key_rows_);
  key_ = scratch(keys, width_), value_ = scratch(keys, value_width_);
  query_ = scratch(queries_, width_), g_rows_ = scratch(queries_, value_width_);
  query_columns_ = scratch(width_, queries_), g_columns_ = scratch(value_width_, queries_);
  p_ = scratch(key_block_, queries_), ds_ = scratch(key_block_, queries_), delta_ = scratch(1, queries_);
  dq_sum_ = scratch(queries_, width_), dk_sum_ = scratch(keys, width_), dv_sum_ = scratch(keys, value_width_);
  Value block = no_value, batch = batch_index(1, block);
  q_ = matrix(plan_.q, batch), k_ = matrix(plan_.k, batch), v_ = matrix(plan_.v, batch),
  mask_ = matrix(plan_.mask, batch);
  o_ = matrix(plan_.o, batch), lse_ = matrix(plan_.lse, batch), g_ = matrix(plan_.g, batch);
  dq_ = matrix(plan_.dq, batch), dk_ = matrix(plan_.dk, batch), dv_ = matrix(plan_.dv, batch);
  stage(key_, b_.index(0), k_, b_.index(0), tk_, plan_.width);
  stage(value_, b_.index(0), v_, b_.index(0), tk_, plan_.value_width);
  clear(dk_sum_, tk_), clear(dv_sum_, tk_);
  each(tq_, queries_, [&](Value first) { queries(first); });
  if (wants_keys()) results(dk_, dk_sum_, b_.index(0), tk_, part_, plan_.width);
  if (wants_values()) results(dv_, dv_sum_, b_.index(0), tk_, value_part_, plan_.value_width);
  const double pairs = static_cast<double>(batches() * plan_.tq.bound()) * static_cast<double>(plan_.tk.bound());
  return emit_.finish(batches(), 5 * pairs * static_cast<double>(plan_.width + plan_.value_width));
}

}  // namespace

Lowered lower_attention_vjp(const LowerContext& cx, Group& group) { return AttentionBackward(cx, group).run(); }

}  // namespace weft::compiler
