// The attention class for one query a head (decode). A block reads many keys at a time in tiles [keys, width], as they
// lie in memory. The running maximum and sum are scalars (online softmax), and each
// row of a tile keeps its own sum of values until the end. The number of keys may be an integer in memory: rows past it
// are not read, so a program of static shapes serves a cache that fills up.
//
// Over many keys several programs share a head, so that few heads keep the device busy. With clusters this is one
// launch: the blocks of a cluster, or their warps if blocks are few, take tiles in turns and combine their results once
// at the end. Otherwise a program computes one split of the keys (schedule/splits.h), and further programs combine the
// splits. Either way the division depends on the bound of the length alone, and so do the bits.
//
// The launch may also append the last key and value to the cache (region/kv_append.h). Every program that needs them,
// and the query, then computes them itself.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "compiler/lower/attention/tiles.h"
#include "compiler/region/kv_append.h"
#include "kernel/states.h"
#include "target/target.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

namespace {

constexpr int64_t tile_elements = 1024;          // 16 registers of each of 64 threads, if programs are many
constexpr int64_t cluster_tile_elements = 2048;  // if the blocks of a cluster share a head
// If the warps of those blocks have their own tiles: with 32 iterations the remainder too is one warp's.
constexpr int64_t tile_elements_of_a_warp = 512;
constexpr int64_t warps_of_block = 4;
// With more blocks than this, some share an SM, and the registers of such warps keep neighbouring kernels from starting
// early.
constexpr int64_t few_blocks = 128;
constexpr int64_t least_keys_of_cluster = 128;  // with fewer keys one block is as fast

class AttentionRow : AttentionTiles {
 public:
  AttentionRow(const LowerContext& cx, Group& group)
      : AttentionTiles(cx, group, "attention_row"), group_(group), node_(cx.ir[group.roots[0].node]),
        cache_(group.attention.cache) {}
  Lowered run();

 private:
  /// The state of Reducer::attention. values: of a tile's rows, or their sum.
  struct State {
    explicit State(std::span<const Value> components) : max(components[0]), sum(components[1]), values(components[2]) {}
    State(Value m, Value s, Value v) : max(m), sum(s), values(v) {}
    kernel::State components() const { return {max, sum, values}; }
    Value max, sum, values;
  };
  struct Tiles {
    Value keys, values;  // in the dtype of memory
  };
  /// What the cache does not hold yet: the query and the newest key and value as rows, whether the position exists, and
  /// where and whether they are appended.
  struct Append {
    Value query = no_value, key = no_value, value = no_value, seen = no_value, position = no_value,
          stores_key = no_value, stores_value = no_value;
  };
  Value tile(const Matrix& from, Value first, Value left, int64_t width, bool one_row);
  Tiles load(Value first);
  State keys(Value first, const Tiles& tiles, Value query, State before);
  State walk(Value first, Value end, int64_t step, const std::function<void()>& meanwhile = {});
  Value weight(Value s, Value max);
  void finish(State state);
  void finish_nothing();
  void join();
  void join_iterations(kernel::Ref largest, kernel::Ref sums, kernel::Ref rows, int64_t iterations);
  bool shared() const { return cx_.target.machine().cluster > 1 && plan_.tk.bound() >= least_keys_of_cluster; }
  int64_t warps_for_block() const {
    return batches() * cx_.target.machine().cluster <= few_blocks ? warps_of_block : 1;
  }
  int64_t iterations_for_head() const;
  void share_head(Value end, int64_t iterations, const std::function<void()>& own);
  void compute_appended(Value batch, Value seen);
  void store_appended();
  State join_appended(State state, Value taken);
  Value whole_row(Value v) { return b_.broadcast(b_.reshape(v, {rows_, 1}), {rows_, value_wide_}); }

  Group& group_;
  const IrNode& node_;
  const int cache_;  // that the appended row is appended to, or -1
  int64_t rows_ = 1, wide_ = 1, value_wide_ = 1;
  Value count_ = no_value;
  Matrix q_, k_, v_, o_, lse_;
  Append append_;
};

/// Loads rows of `from` from `first` on, with zeros past the end; or its only row, repeated.
Value AttentionRow::tile(const Matrix& from, Value first, Value left, int64_t width, bool one_row) {
  const int64_t wide = std::bit_ceil(static_cast<uint64_t>(width));
  const Value at = one_row ? from.base : b_.add(from.base, b_.mul(first, b_.index(from.row)));
  const Value columns = wide == width ? no_value : b_.index(width);
  return b_.load(from.ref, at, {rows_, wide}, {one_row ? 0 : from.row, from.column},
                 {one_row ? no_value : left, columns}, {}, !one_row);
}

AttentionRow::Tiles AttentionRow::load(Value first) {
  const Value left = b_.sub(count_, first), keys = tile(k_, first, left, plan_.width, false);
  return {keys, tile(v_, first, left, plan_.value_width, false)};
}

/// Adds a tile of keys and values to the running softmax.
AttentionRow::State AttentionRow::keys(Value first, const Tiles& tiles, Value query, State before) {
  const Value left = b_.sub(count_, first), k = b_.cast(tiles.keys, float32), v = b_.cast(tiles.values, float32);
  Value s = b_.mul(b_.reduce(Reducer::sum, b_.mul(query, k), 1), b_.real(float32, plan_.region.scale));
  s = b_.select(b_.lt(b_.arange(rows_), b_.broadcast(left, {rows_})), s, b_.real(float32, -INFINITY, {rows_}));
  const Value most = b_.reduce(Reducer::max, s, 0);
  const Value max = b_.select(b_.lt(before.max, most), most, before.max);
  const Value p = weight(s, max), scale = weight(before.max, max);
  const std::vector<int64_t> dims{rows_, value_wide_};
  return {max, b_.scalar(ScalarOp::fma, {before.sum, scale, b_.reduce(Reducer::sum, p, 0)}),
          b_.scalar(ScalarOp::fma, {whole_row(p), v, b_.mul(before.values, b_.broadcast(scale, dims))})};
}

/// Returns exp(s - max), which is 0 where s is -inf, even if every score so far is.
Value AttentionRow::weight(Value s, Value max) {
  const Value shift = b_.select(b_.scalar(ScalarOp::eq, {max, b_.real(float32, -INFINITY)}), b_.real(float32, 0), max);
  return b_.scalar(ScalarOp::exp, {b_.sub(s, b_.broadcast(shift, b_.type(s).dims))});
}

/// Stores the result of a head, or of one split of its keys.
void AttentionRow::finish(State state) {
  const Value nothing = b_.scalar(ScalarOp::eq, {state.sum, b_.real(float32, 0)});
  if (lse_.ref >= 0)
    b_.store(lse_.ref,
             b_.select(nothing, b_.real(float32, INFINITY), b_.add(b_.scalar(ScalarOp::log, {state.sum}), state.max)),
             lse_.base, {}, {});
  if (o_.ref < 0) return;
  const Value share =
      b_.scalar(ScalarOp::div, {b_.real(float32, 1), b_.select(nothing, b_.real(float32, 1), state.sum)});
  const Value values = b_.type(state.values).rank() == 2 ? b_.reduce(Reducer::sum, state.values, 0) : state.values;
  b_.store(o_.ref, b_.cast(b_.mul(values, b_.broadcast(share, {value_wide_})), plan_.o.dtype), o_.base, {o_.column},
           {value_wide_ == plan_.value_width ? no_value : b_.index(plan_.value_width)});
}

/// Stores the result of a split without keys, which has weight zero.
void AttentionRow::finish_nothing() {
  b_.store(lse_.ref, b_.real(float32, -INFINITY), lse_.base, {}, {});
  b_.store(o_.ref, b_.real(float32, 0, {value_wide_}), o_.base, {o_.column},
           {value_wide_ == plan_.value_width ? no_value : b_.index(plan_.value_width)});
}

/// Processes the keys before `end` in tiles from `first` on, `step` apart. The next tile is loaded while one is
/// processed; `meanwhile` runs while the first is loaded.
AttentionRow::State AttentionRow::walk(Value first, Value end, int64_t step, const std::function<void()>& meanwhile) {
  count_ = end;
  const Tiles begin = load(first);
  if (meanwhile) meanwhile();
  const Value query = append_.query == no_value ? b_.cast(tile(q_, no_value, no_value, plan_.width, true), float32)
                                                : b_.broadcast(append_.query, {rows_, wide_});
  const State start{b_.real(float32, -INFINITY), b_.real(float32, 0), b_.real(float32, 0, {rows_, value_wide_})};
  const std::vector<Value> last =
      b_.loop(first, end, b_.index(step), {start.max, start.sum, start.values, begin.keys, begin.values},
              [&](Value at, const std::vector<Value>& carried) {
                const Tiles next = load(b_.add(at, b_.index(step)));
                const State state = keys(at, {carried[3], carried[4]}, query, {carried[0], carried[1], carried[2]});
                return std::vector<Value>{state.max, state.sum, state.values, next.keys, next.values};
              });
  return {last[0], last[1], last[2]};
}

/// Combines the splits, weighted by the softmax of their logsumexps.
void AttentionRow::join() {
  rows_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.tk.bound())));
  const Value count = b_.index(plan_.tk.bound()),
              rows = b_.cast(tile(v_, b_.index(0), count, plan_.value_width, false), float32);
  const Value s = b_.load(k_.ref, k_.base, {rows_}, {k_.row}, {count}, Number::of_real(-INFINITY));
  finish(State(kernel::reduce_state(b_, Reducer::attention, {s, b_.real(float32, 1, {rows_}), rows}, 0)));
}

/// Returns how many blocks, or warps of blocks, share a head, or 1.
int64_t AttentionRow::iterations_for_head() const {
  if (!shared()) return 1;
  const int64_t tiles = (plan_.tk.bound() + rows_ - 1) / rows_;
  return std::min(cx_.target.machine().cluster * warps_for_block(),
                  static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tiles))));
}

/// Divides the tiles of a head among `iterations` blocks or warps, whose partial results are combined at the end. `own`
/// computes the appended row, if there is one.
void AttentionRow::share_head(Value end, int64_t iterations, const std::function<void()>& own) {
  if (iterations == 1) {
    const State state = walk(b_.index(0), end, rows_, own);
    store_appended();
    return finish(join_appended(state, append_.seen));
  }
  const kernel::Ref largest = b_.local(float32, iterations), sums = b_.local(float32, iterations),
                    rows = b_.local(float32, iterations * value_wide_);
  b_.parallel(iterations, [&](Value iteration) {
    emit_.push_scope();
    State state = walk(b_.mul(iteration, b_.index(rows_)), end, iterations * rows_, own);
    if (own) {
      const Value is_first = b_.scalar(ScalarOp::eq, {iteration, b_.index(0)});
      b_.when(is_first, [&] { store_appended(); });
      state = join_appended(state, b_.scalar(ScalarOp::bit_and, {append_.seen, is_first}));
    }
    const Value values = b_.type(state.values).rank() == 2 ? b_.reduce(Reducer::sum, state.values, 0) : state.values;
    b_.store(largest, state.max, iteration, {}, {});
    b_.store(sums, state.sum, iteration, {}, {});
    b_.store(rows, values, b_.mul(iteration, b_.index(value_wide_)), {1}, {});
    emit_.pop_scope();
  });
  join_iterations(largest, sums, rows, iterations);
}

/// Combines the partial results of the iterations that share a head, and stores the result.
void AttentionRow::join_iterations(kernel::Ref largest, kernel::Ref sums, kernel::Ref rows, int64_t iterations) {
  const Value s = b_.load(largest, b_.index(0), {iterations}, {1}), sum = b_.load(sums, b_.index(0), {iterations}, {1});
  const Value values = b_.load(rows, b_.index(0), {iterations, value_wide_}, {value_wide_, 1});
  finish(State(kernel::reduce_state(b_, Reducer::attention, {s, sum, values}, 0)));
}

/// Computes the query, key and value of the newest position, the last of the `seen` ones: as rows, rounded as memory
/// would hold them. Of the programs that share a key or value, one appends it.
void AttentionRow::compute_appended(Value batch, Value seen) {
  ix::Context& icx = *group_.cx;
  const IrNode& cache = cx_.ir[cache_];
  std::vector<Value> digits(plan_.batch.size());
  for (size_t k = digits.size(); k-- > 0;) {
    const Value n = b_.index(plan_.batch[k]);
    digits[k] = k == 0 ? batch : b_.scalar(ScalarOp::mod, {batch, n});
    batch = b_.scalar(ScalarOp::floordiv, {batch, n});
  }
  std::vector<Expr> heads;
  for (size_t k = 0; k < digits.size(); ++k) {
    heads.push_back(plan_.batch[k] == 1 ? icx.constant(0) : icx.variable("h", 0, plan_.batch[k] - 1));
    if (plan_.batch[k] > 1) emit_.bind(heads.back(), digits[k]);
  }
  const Expr lane = icx.variable("x", 0, plan_.width - 1);
  emit_.bind_lanes(lane, b_.index(0), wide_, wide_ == plan_.width ? no_value : b_.index(plan_.width));
  const auto as_row = [&](Value v) { return b_.broadcast(b_.cast(v, float32), {wide_}); };
  std::vector<Expr> at = heads;
  at.insert(at.end(), {icx.constant(0), lane});
  append_.query = as_row(emit_.value(node_.inputs[0], at));

  const int64_t positions = cache.type.shape[static_cast<size_t>(cache.attrs->axes[0])].bound();
  const Value last = b_.sub(seen, b_.index(1));
  append_.seen =
      b_.scalar(ScalarOp::bit_and, {b_.scalar(ScalarOp::le, {b_.index(0), last}), b_.lt(last, b_.index(positions))});
  // As a scatter's index counts from the end.
  append_.position = b_.select(b_.lt(last, b_.index(0)), b_.add(last, b_.index(positions)), last);
  const Value inside = b_.scalar(ScalarOp::bit_and, {b_.scalar(ScalarOp::le, {b_.index(0), append_.position}),
                                                     b_.lt(append_.position, b_.index(positions))});
  for (const size_t operand : {size_t{1}, size_t{2}}) {
    std::vector<Expr> there = heads;
    there.insert(there.end(), {icx.variable("j", 0, positions - 1), lane});
    const Access access = peel(icx, cx_.ir, node_.inputs[operand], there);
    check(access.node == cache_, "attention_row", "keys or values are no view of their cache");
    std::vector<Expr> update(static_cast<size_t>(cx_.ir[cache.inputs.back()].type.rank()) - access.index.size(),
                             icx.constant(0)),
        to = access.index;
    to[static_cast<size_t>(cache.attrs->axes[0])] = icx.constant(0);
    update.insert(update.end(), to.begin(), to.end());
    (operand == 1 ? append_.key : append_.value) = as_row(emit_.value(cache.inputs.back(), update));
    const std::vector<int64_t>& shared = (operand == 1 ? plan_.k : plan_.v).batch;
    Value stores = inside;
    for (size_t k = 0; k < digits.size(); ++k)
      if (plan_.batch[k] > 1 && shared[k] == 0)
        stores = b_.scalar(ScalarOp::bit_and, {stores, b_.scalar(ScalarOp::eq, {digits[k], b_.index(0)})});
    (operand == 1 ? append_.stores_key : append_.stores_value) = stores;
  }
}

void AttentionRow::store_appended() {
  if (append_.query == no_value) return;
  const auto append = [&](Value row, const AttentionOperand& rows, const Matrix& to) {
    b_.store(to.ref, b_.cast(row, rows.dtype), b_.add(to.base, b_.mul(append_.position, b_.index(to.row))), {1},
             {wide_ == plan_.width ? no_value : b_.index(plan_.width)});
  };
  b_.when(append_.stores_key, [&] { append(append_.key, plan_.k, k_); });
  b_.when(append_.stores_value, [&] { append(append_.value, plan_.v, v_); });
}

/// Adds one more key and value to the state, if `taken`.
AttentionRow::State AttentionRow::join_appended(State state, Value taken) {
  if (append_.query == no_value) return state;
  const Value score =
      b_.mul(b_.reduce(Reducer::sum, b_.mul(append_.query, append_.key), 0), b_.real(float32, plan_.region.scale));
  const Value s = b_.select(taken, score, b_.real(float32, -INFINITY));
  state.values = b_.reduce(Reducer::sum, state.values, 0);
  const kernel::State own{s, b_.real(float32, 1), append_.value};
  return State(kernel::combine_states(b_, Reducer::attention, state.components(), own));
}

Lowered AttentionRow::run() {
  declare(plan_.o, true), declare(plan_.lse, true);
  if (cache_ >= 0) emit_.param(cache_, true);
  for (const AttentionOperand* x : {&plan_.q, &plan_.k, &plan_.v, &plan_.mask}) declare(*x, false);
  if (cache_ >= 0)
    for (const NodeId node : group_.reads) emit_.param(node, false);
  const int64_t pieces = std::max<int64_t>(1, plan_.splits);
  Value piece = no_value;
  const Value batch = batch_index(pieces, piece);
  q_ = matrix(plan_.q, batch), k_ = matrix(plan_.k, batch), v_ = matrix(plan_.v, batch);
  o_ = matrix(plan_.o, batch), lse_ = matrix(plan_.lse, batch);
  wide_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.width)));
  value_wide_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.value_width)));
  const int64_t elements = !shared()               ? tile_elements
                           : warps_for_block() > 1 ? tile_elements_of_a_warp
                                                   : cluster_tile_elements;
  rows_ = std::max<int64_t>(1, elements / std::max(wide_, value_wide_));
  rows_ = std::min(rows_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan_.tk.bound()))));
  const double pairs = static_cast<double>(batches()) * static_cast<double>(plan_.tk.bound());
  const double work = 2 * pairs * static_cast<double>(plan_.width + plan_.value_width);
  if (plan_.join) {
    join();
    return emit_.finish(batches(), work);
  }
  Value count = emit_.extent(plan_.tk);
  std::function<void()> own;
  if (plan_.mask.node >= 0) {
    const Matrix visible = matrix(plan_.mask, batch);
    const Value seen = b_.cast(b_.load(visible.ref, visible.base, {}, {}), int64);
    if (cache_ >= 0) own = [this, batch, seen] { compute_appended(batch, seen); };
    count = b_.min(count, cache_ >= 0 ? b_.sub(seen, b_.index(1)) : seen);  // keys that are in memory
  }
  if (plan_.splits == 0) {
    share_head(count, iterations_for_head(), own);
    return emit_.finish(batches(), work);
  }
  o_.base = b_.add(o_.base, b_.mul(piece, b_.index(o_.row)));
  lse_.base = b_.add(lse_.base, b_.mul(piece, b_.index(lse_.row)));
  const Value first = b_.mul(piece, b_.index(plan_.split_keys));
  b_.when(b_.lt(first, count),
          [&] { finish(walk(first, b_.min(count, b_.add(first, b_.index(plan_.split_keys))), rows_)); });
  b_.when(b_.scalar(ScalarOp::le, {count, first}), [&] { finish_nothing(); });
  return emit_.finish(batches() * pieces, work);
}

}  // namespace

Lowered lower_single_query(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return AttentionRow(cx, group).run();
}

}  // namespace weft::compiler
