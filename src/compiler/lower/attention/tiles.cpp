#include "compiler/lower/attention/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::compiler {

using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

namespace {

int64_t power_of_two(int64_t at_least) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(at_least))); }

/// Returns a kernel name: "attention_48x64x64x32" for heads, queries, keys, width.
std::string describe(const char* name, const AttentionPlan& plan) {
  int64_t heads = 1;
  for (int64_t extent : plan.batch) heads *= extent;
  return fmt::format("{}_{}x{}x{}x{}", name, heads, plan.tq.bound(), plan.tk.bound(), plan.width);
}

}  // namespace

/// Chooses the sizes of tiles. With 32 vector registers a tile of 8 × 2 registers leaves room for its operands; with 16
/// registers, one of 4 × 2.
AttentionTiles::AttentionTiles(const LowerContext& cx, Group& group, const char* name)
    : cx_(cx), plan_(group.attention), emit_(cx, group, describe(name, group.attention)), b_(emit_.builder()),
      lanes_(cx.target.machine().lanes(4)) {
  queries_ = std::min(2 * lanes_, power_of_two(plan_.tq.bound()));
  key_rows_ = lanes_ >= 16 ? 8 : 4;
  query_rows_ = std::min(key_rows_, queries_);
  key_block_ = std::min<int64_t>(64, padded(plan_.tk.bound(), key_rows_));
  part_ = std::min(2 * lanes_, power_of_two(plan_.width));
  value_part_ = std::min(2 * lanes_, power_of_two(plan_.value_width));
  width_ = padded(plan_.width, part_);
  value_width_ = padded(plan_.value_width, value_part_);
}

int64_t AttentionTiles::batches() const {
  int64_t n = 1;
  for (int64_t extent : plan_.batch) n *= extent;
  return n;
}

Value AttentionTiles::batch_index(int64_t blocks, Value& block) {
  Value pid = b_.program_id();
  block = b_.scalar(ScalarOp::mod, {pid, b_.index(blocks)});
  return b_.scalar(ScalarOp::floordiv, {pid, b_.index(blocks)});
}

Matrix AttentionTiles::matrix(const AttentionOperand& x, Value batch) {
  if (x.node < 0) return {};
  Value offset = b_.index(x.offset);
  for (size_t k = x.batch.size(); k-- > 0;) {
    Value n = b_.index(plan_.batch[k]);
    Value digit = k == 0 ? batch : b_.scalar(ScalarOp::mod, {batch, n});
    offset = b_.add(offset, b_.mul(digit, b_.index(x.batch[k])));
    batch = b_.scalar(ScalarOp::floordiv, {batch, n});
  }
  return {emit_.param(x.node, false), offset, x.row, x.column};
}

Value AttentionTiles::rows_left(Value count, Value first, int64_t tile) {
  int64_t known = 0;
  if (b_.known(count, known) && known % tile == 0) return no_value;
  return b_.sub(count, first);
}

void AttentionTiles::each(Value count, int64_t step, const std::function<void(Value)>& body) {
  b_.loop(b_.index(0), count, b_.index(step), {}, [&](Value i, const std::vector<Value>&) {
    body(i);
    return std::vector<Value>{};
  });
}

void AttentionTiles::stage(const Scratch& to, Value to_row, const Matrix& from, Value row, Value count,
                           int64_t columns) {
  const int64_t part = std::min(to.width, 2 * lanes_), tall = std::min(to.rows, key_rows_);
  each(count, tall, [&](Value i) {
    Value rows = rows_left(count, i, tall), source = b_.add(from.base, b_.mul(b_.add(row, i), b_.index(from.row)));
    for (int64_t c = 0; c < to.width; c += part) {
      Value limit = columns - c >= part ? no_value : b_.index(std::max<int64_t>(0, columns - c));
      Value tile = b_.load(from.ref, b_.add(source, b_.index(c * from.column)), {tall, part}, {from.row, from.column},
                           {rows, limit});
      store(to, b_.cast(tile, float32), b_.add(to_row, i), c);
    }
  });
}

void AttentionTiles::stage_transposed(const Scratch& to, const Matrix& from, Value row, Value count, int64_t columns,
                                      double scale) {
  const int64_t wide = std::min(lanes_, power_of_two(columns)), tall = std::min(lanes_, queries_);
  Value source = b_.add(from.base, b_.mul(row, b_.index(from.row)));
  for (int64_t i = 0; i < queries_; i += tall) {
    Value rows = rows_left(count, b_.index(i), tall);
    each(b_.index(columns), wide, [&](Value c) {
      Value limit = rows_left(b_.index(columns), c, wide);
      Value offset = b_.add(b_.add(source, b_.index(i * from.row)), b_.mul(c, b_.index(from.column)));
      Value tile = b_.cast(b_.load(from.ref, offset, {wide, tall}, {from.column, from.row}, {limit, rows}), float32);
      if (scale != 1) tile = b_.mul(tile, b_.real(float32, scale));
      store(to, tile, c, i);
    });
  }
}

void AttentionTiles::clear(const Scratch& s, Value rows) {
  const int64_t part = std::min(s.width, 2 * lanes_), tall = std::min(s.rows, key_rows_);
  each(rows, tall, [&](Value i) {
    for (int64_t c = 0; c < s.width; c += part) store(s, b_.real(float32, 0, {tall, part}), i, c);
  });
}

Value AttentionTiles::load(const Scratch& s, Value row, int64_t column, int64_t m, int64_t n) {
  return b_.load(s.ref, at(row, s.width, column), {m, n}, {s.width, 1});
}

void AttentionTiles::store(const Scratch& s, Value v, Value row, int64_t column) {
  b_.store(s.ref, v, at(row, s.width, column), {s.width, 1});
}

Value AttentionTiles::matmul(const Scratch& a, Value a_at, int64_t a_row, int64_t a_depth, const Scratch& b,
                             Value b_row, int64_t b_column, Value depth, Value initial) {
  const std::vector<int64_t> dims = b_.type(initial).dims;
  Value b_at = at(b_row, b.width, b_column);
  return b_.loop(b_.index(0), depth, b_.index(1), {initial}, [&](Value k, const std::vector<Value>& sums) {
    Value left = b_.load(a.ref, b_.add(a_at, b_.mul(k, b_.index(a_depth))), {dims[0], 1}, {a_row, 1});
    Value right = b_.load(b.ref, b_.add(b_at, b_.mul(k, b_.index(b.width))), {1, dims[1]}, {b.width, 1});
    return std::vector<Value>{b_.dot(left, right, sums[0])};
  })[0];
}

void AttentionTiles::store_result(const Matrix& to, Value tile, Value row, Value count, int64_t column,
                                  int64_t columns) {
  const std::vector<int64_t> dims = b_.type(tile).dims;
  Value limit = columns - column >= dims[1] ? no_value : b_.index(columns - column);
  Value offset = b_.add(b_.add(to.base, b_.mul(row, b_.index(to.row))), b_.index(column * to.column));
  b_.store(to.ref, b_.cast(tile, b_.dtype(to.ref)), offset, {to.row, to.column},
           {rows_left(count, row, dims[0]), limit});
}

Value AttentionTiles::scores(const Scratch& keys, Value staged, const Scratch& queries, Value key, Value query,
                             const Matrix& mask) {
  const std::vector<int64_t> dims{key_rows_, queries_};
  Value s = matmul(keys, at(staged, keys.width, 0), keys.width, 1, queries, b_.index(0), 0, b_.index(plan_.width),
                   b_.real(float32, 0, dims));
  const Value hidden = b_.real(float32, -INFINITY, dims);
  if (mask.ref >= 0) {
    Value offset = b_.add(mask.base, b_.add(b_.mul(key, b_.index(mask.column)), b_.mul(query, b_.index(mask.row))));
    Value m = b_.load(mask.ref, offset, dims, {mask.column, mask.row}, {b_.sub(tk_, key), b_.sub(tq_, query)});
    s = b_.type(m).dtype == bool_ ? b_.select(m, s, hidden) : b_.add(s, b_.cast(m, float32));
  }
  auto column = [&](Value v) { return b_.broadcast(b_.reshape(v, {key_rows_, 1}), dims); };
  if (plan_.region.causal) {
    // Query `query` + c sees key `key` + r if key - query - offset <= c - r; the right side is the same in every tile.
    Value first = b_.cast(b_.sub(b_.sub(key, query), b_.index(plan_.region.offset)), int32);
    Value steps = b_.sub(b_.broadcast(b_.arange(queries_, int32), dims), column(b_.arange(key_rows_, int32)));
    s = b_.select(b_.scalar(ScalarOp::le, {first, steps}), s, hidden);
  }
  return s;
}

Value AttentionTiles::part_of(Value count, Value first, int64_t tile) {
  int64_t known = 0;
  if (b_.known(count, known) && known % tile == 0) return b_.index(tile);
  return b_.min(b_.sub(count, first), b_.index(tile));
}

Value AttentionTiles::visible_keys(Value query) {
  if (!plan_.region.causal) return tk_;
  return b_.max(b_.index(0), b_.min(tk_, b_.add(query, b_.index(queries_ + plan_.region.offset))));
}

}  // namespace weft::compiler
