// The derivative of attention. Probabilities are computed again, from the scores and the logarithm of each row's sum,
// once by rows for dQ and once by columns for dK and dV: so every sum is in one program, in one order.
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

namespace {

using Uses = std::vector<AttentionParams::Use>;

/// Returns what both kernels read.
Uses operands(const Attention& a) {
  const bool one = a.mask && is_integer(a.mask.dtype);
  return {{&a.q, a.queries, a.width},       {&a.k, a.keys, a.width},
          {&a.v, a.keys, a.value_width},    {&a.mask, one ? Dim(1) : a.queries, one ? 1 : a.keys.bound()},
          {&a.g, a.queries, a.value_width}, {&a.lse, a.queries, 0},
          {&a.delta, a.queries, 0},         {&a.key, 2, 0}};
}

Scores probabilities(const AttentionFrame& f, const Scores& products, const Scores& lse, const ScoreBlock& block) {
  return k::exp2(k::fma(logits_of(f, products, block), exponent_of(f.a), -lse));
}

/// Returns cotangents of weights from those of weights after dropout.
Scores after_dropout(const AttentionFrame& f, const Scores& cotangents, const ScoreBlock& block) {
  return f.a.dropout == 0 ? cotangents : dropped(f, cotangents, block) * dropout_share(f.a);
}

template <class T>
void queries(const AttentionFrame& f, const Index& first, const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const int64_t n = blocks.queries;
  const bool left = !blocks.keys_first;
  const auto q = kept_operand<T>(f.rows<T>(a.q, first, n, a.queries, a.width), left),
             g = kept_operand<T>(f.rows<T>(a.g, first, n, a.queries, a.value_width), left);
  const auto lse = of_queries(f.entries(a.lse, first, n, a.queries, INFINITY) * log2_e, blocks.keys_first),
             delta = of_queries(f.entries(a.delta, first, n, a.queries, 0), blocks.keys_first);
  k::Mut sum = k::zeros<float>({n, padded_width(a.width)});
  const AttentionBlocks edge = edge_of_keys(a, blocks);
  const auto add = [&](const AttentionBlocks& size, bool bounded) {
    return [&, bounded](Index at) {
      const ScoreBlock block{first, at, size, blocks.keys_first, bounded};
      const auto keys = f.rows<T>(a.k, at, size.keys, a.keys, a.width),
                 values = f.rows<T>(a.v, at, size.keys, a.keys, a.value_width);
      const Scores s = row_products<T>(a, q, keys, left), dp = row_products<T>(a, g, values, left);
      const Scores p = probabilities(f, s, lse, block);  // while tensor cores make dp
      const auto ds = k::cast<T>(cotangent_of(f, s, p * (after_dropout(f, dp, block) - delta), block));
      sum = multiplied<T>(a, left ? ds : k::trans(ds), keys, sum.get());
    };
  };
  const KeyRange range = keys_seen(a, first, blocks);
  if (range.any_whole) k::loop(range.begin, range.whole, blocks.keys, add(blocks, false));
  if (range.any_bounded) k::loop(range.whole, range.end, edge.keys, add(edge, true));
  f.store(a.dq, first, a.queries, a.width, sum * a.scale);
}

/// Whether programs sum over a batch axis: what they write is the same for all of its indices.
bool summed(const Attention& a, size_t axis) {
  const AttentionArray& x = a.dk ? a.dk : a.dv;
  return a.batch[axis] > 1 && x.batch[axis] == 0;
}

/// Rows of queries in scratch: of all queries, and all indices along the axes that a program sums over.
class QueryRows {
 public:
  QueryRows(const AttentionFrame& frame, const AttentionBlocks& blocks, int64_t width, Dtype dtype)
      : f_(frame), width_(padded_width(width)) {
    std::vector<int64_t> dims;
    for (size_t axis = 0; axis < f_.a.batch.size(); ++axis)
      if (summed(f_.a, axis)) dims.push_back(f_.a.batch[axis]);
    dims.push_back(k::cdiv(f_.a.queries.bound(), blocks.queries) * blocks.queries), dims.push_back(width_);
    rows_ = k::scratch(dtype, dims);
  }
  template <class T>
  k::Tile<T, 2> load(const Index& first, int64_t count) const {
    return k::Tile<T, 2>(k::load(rows_, spans(first, count)));
  }
  template <class T>
  void store(const Index& first, const k::Tile<T, 2>& tile) const {
    k::store(rows_, spans(first, tile.dim(0)), tile.any());
  }

 private:
  std::vector<k::Span> spans(const Index& first, int64_t count) const {
    std::vector<k::Span> out;
    for (size_t axis = 0; axis < f_.a.batch.size(); ++axis)
      if (summed(f_.a, axis)) out.push_back({.start = f_.batch[axis].any(), .squeezed = true});
    out.push_back({.start = first.any(), .size = count}), out.push_back({.size = width_});
    return out;
  }

  const AttentionFrame& f_;
  int64_t width_;
  k::AnyRef rows_;
};

/// What a program of all queries keeps of them: the sums of dQ, and copies of q and g where they are converted or lie
/// apart, since all blocks of keys read them.
struct AllQueries {
  QueryRows sums;
  std::optional<QueryRows> q, g;
};

/// The sums of a block of keys. `queries`: dQ is added to there; null: it is not.
struct KeySums {
  k::Mut<float, 2> k, v;
  const AllQueries* queries = nullptr;
};

/// What a program keeps of its keys: rows of keys, and keys and values as products of scores take them.
template <class T>
struct KeptKeys {
  k::Tile<T, 2> rows, keys, values;
};

template <class T>
void add_queries(const AttentionFrame& f, const KeptKeys<T>& own, KeySums& sums, const ScoreBlock& block) {
  const Attention& a = f.a;
  const int64_t n = block.size.queries;
  const bool left = block.keys_first;
  const AllQueries* const all = sums.queries;
  const auto q = all && all->q ? all->q->load<T>(block.query, n) : f.rows<T>(a.q, block.query, n, a.queries, a.width),
             g = all && all->g ? all->g->load<T>(block.query, n)
                               : f.rows<T>(a.g, block.query, n, a.queries, a.value_width);
  // Queries behind the last one see nothing: their sum is infinite.
  const auto lse = of_queries(f.entries(a.lse, block.query, n, a.queries, INFINITY) * log2_e, left);
  const auto keys_first = [&](const k::Tile<T, 2>& tile) { return left ? tile : k::trans(tile); };
  const Scores s = row_products<T>(a, own.keys, q, left);
  // Both products of scores come first: tensor cores have the second one to do while exponentials are computed.
  const Scores dp = a.dk ? row_products<T>(a, own.values, g, left) : Scores();
  const Scores p = probabilities(f, s, lse, block);
  if (a.dv) sums.v = multiplied<T>(a, keys_first(k::cast<T>(dropped(f, p, block))), g, sums.v.get());
  if (!a.dk) return;
  const auto delta = of_queries(f.entries(a.delta, block.query, n, a.queries, 0), left);
  const auto ds = k::cast<T>(cotangent_of(f, s, p * (after_dropout(f, dp, block) - delta), block));
  sums.k = multiplied<T>(a, keys_first(ds), q, sums.k.get());
  if (!all) return;
  const Scores sum = all->sums.load<float>(block.query, n);
  all->sums.store(block.query, multiplied<T>(a, left ? k::trans(ds) : ds, own.rows, sum));
}

/// Calls body for each index along the axes that are summed over.
void each_summed(AttentionFrame& f, size_t axis, const std::function<void()>& body) {
  const Attention& a = f.a;
  if (axis == a.batch.size()) return body();
  if (!summed(a, axis)) return each_summed(f, axis + 1, body);
  const Index before = f.batch[axis];
  k::loop(0, a.batch[axis], 1, [&](Index i) {
    f.batch[axis] = i;
    each_summed(f, axis + 1, body);
  });
  f.batch[axis] = before;
}

template <class T>
void keys(AttentionFrame& f, const Index& first, const AttentionBlocks& blocks,
          const AllQueries* to_queries = nullptr) {
  const Attention& a = f.a;
  // Keys and values are those of index 0 along axes that are summed over, for which queries differ.
  const auto rows = f.rows<T>(a.k, first, blocks.keys, a.keys, a.width),
             values = f.rows<T>(a.v, first, blocks.keys, a.keys, a.value_width);
  const KeptKeys<T> own{rows, kept_operand<T>(rows, blocks.keys_first), kept_operand<T>(values, blocks.keys_first)};
  KeySums sums{k::zeros<float>({blocks.keys, a.dk ? padded_width(a.width) : 1}),
               k::zeros<float>({blocks.keys, a.dv ? padded_width(a.value_width) : 1}), to_queries};
  const QueryRange range = queries_seeing(a, first, blocks);
  const AttentionBlocks edge = edge_of_queries(a, blocks), rest = last_of_queries(a, blocks);
  const auto add = [&](const AttentionBlocks& size, bool bounded) {
    return [&, bounded](Index at) { add_queries<T>(f, own, sums, {at, first, size, blocks.keys_first, bounded}); };
  };
  each_summed(f, 0, [&] {
    if (range.any_bounded) k::loop(range.begin, k::minimum(range.whole, range.end), edge.queries, add(edge, true));
    if (range.any_whole) k::loop(range.whole, range.last, blocks.queries, add(blocks, false));
    if (range.any_last) k::loop(k::maximum(range.whole, range.last), range.end, rest.queries, add(rest, false));
  });
  if (a.dk) f.store(a.dk, first, a.keys, a.width, sums.k * a.scale);
  if (a.dv) f.store(a.dv, first, a.keys, a.value_width, a.dropout > 0 ? sums.v * dropout_share(a) : sums.v.get());
}

/// All cotangents of one batch index.
template <class T>
void together(AttentionFrame& f, const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const int64_t n = blocks.queries;
  const Dtype dtype = k::detail::dtype_of<T>();
  AllQueries all{{f, blocks, a.width, float32}, {}, {}};
  const auto lies_apart = [&](const AttentionArray& x, int64_t width) {
    return x.dtype != dtype || x.row != padded_width(width);
  };
  if (lies_apart(a.q, a.width)) all.q.emplace(f, blocks, a.width, dtype);
  if (lies_apart(a.g, a.value_width)) all.g.emplace(f, blocks, a.value_width, dtype);
  const auto each_query = [&](const std::function<void(const Index&)>& body) {
    each_summed(f, 0, [&] { k::loop(0, k::extent(a.queries), n, [&](Index first) { body(first); }); });
  };
  each_query([&](const Index& first) {
    all.sums.store(first, k::zeros<float>({n, padded_width(a.width)}));
    if (all.q) all.q->store(first, f.rows<T>(a.q, first, n, a.queries, a.width));
    if (all.g) all.g->store(first, f.rows<T>(a.g, first, n, a.queries, a.value_width));
  });
  k::loop(0, k::extent(a.keys), blocks.keys, [&](Index first) { keys<T>(f, first, blocks, &all); });
  each_query(
      [&](const Index& first) { f.store(a.dq, first, a.queries, a.width, all.sums.load<float>(first, n) * a.scale); });
}

template <class T>
void deltas(const AttentionFrame& f, const Index& first, int64_t rows) {
  const Attention& a = f.a;
  const auto o = f.rows<T>(a.o, first, rows, a.queries, a.value_width),
             g = f.rows<T>(a.g, first, rows, a.queries, a.value_width);
  f.store_entries(a.delta, first, a.queries, k::sum(k::cast<float>(o) * k::cast<float>(g), 1));
}

}  // namespace

AttentionKernel attention_delta(const Attention& a) {
  check_attention(a, "attention_delta");
  constexpr AttentionBlocks blocks{.queries = 32};
  const AttentionParams params(
      a, {{&a.delta, a.queries, 0, true}, {&a.o, a.queries, a.value_width}, {&a.g, a.queries, a.value_width}});
  const auto body = [&](std::span<const k::AnyRef> refs) {
    const AttentionFrame f(a, params, refs, batch_ids(a, axis_of_blocks(a, blocks)));
    with_element(a, [&]<class T>() { deltas<T>(f, first_query(a, blocks), blocks.queries); });
  };
  const auto grid = [&](std::span<const k::AnyRef>) { return grid_of_queries(a, blocks); };
  return launched(k::trace_with("attention_delta", params.params(), grid, body), params, blocks);
}

AttentionKernel attention_queries(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_queries");
  Uses uses{{&a.dq, a.queries, a.width, true}};
  for (const AttentionParams::Use& use : operands(a)) uses.push_back(use);
  const AttentionParams params(a, uses);
  const auto body = [&](std::span<const k::AnyRef> refs) {
    const AttentionFrame f(a, params, refs, batch_ids(a, axis_of_blocks(a, blocks)));
    with_element(a, [&]<class T>() { queries<T>(f, first_query(a, blocks), blocks); });
  };
  const auto grid = [&](std::span<const k::AnyRef>) { return grid_of_queries(a, blocks); };
  return launched(k::trace_with("attention_queries", params.params(), grid, body), params, blocks);
}

namespace {

/// Returns the programs along the batch axes.
k::Grid batches(const Attention& a) {
  k::Grid grid;
  for (size_t axis = 0; axis < a.batch.size(); ++axis) grid.emplace_back(summed(a, axis) ? 1 : a.batch[axis]);
  return grid;
}

/// Returns whether a CPU computes all cotangents in one kernel: there is a batch index for each of its cores.
bool is_together(const Attention& a, const AttentionLimits& limits) {
  if (limits.cores == 0 || !a.dq || !a.dk || !a.dv) return false;
  int64_t programs = 1;
  for (size_t axis = 0; axis < a.batch.size(); ++axis) programs *= summed(a, axis) ? 1 : a.batch[axis];
  return programs >= limits.cores;
}

}  // namespace

AttentionKernel attention_together(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_together");
  if (!a.dq || !a.dk || !a.dv)
    throw_invalid("attention_together", "it writes dq, dk and dv: use attention_queries and attention_keys");
  Uses uses{{&a.dq, a.queries, a.width, true}, {&a.dk, a.keys, a.width, true}, {&a.dv, a.keys, a.value_width, true}};
  for (const AttentionParams::Use& use : operands(a)) uses.push_back(use);
  const AttentionParams params(a, uses);
  return {k::trace("attention_together", params.params(), batches(a),
                   [&](std::span<const k::AnyRef> refs) {
                     AttentionFrame f(a, params, refs, batch_ids(a, static_cast<int>(a.batch.size())));
                     with_element(a, [&]<class T>() { together<T>(f, blocks); });
                   }),
          params.buffers()};
}

AttentionKernel attention_keys(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_keys");
  Uses uses{{&a.dk, a.keys, a.width, true}, {&a.dv, a.keys, a.value_width, true}};
  for (const AttentionParams::Use& use : operands(a)) uses.push_back(use);
  const AttentionParams params(a, uses);
  const int axis = axis_of_blocks(a, blocks);
  const auto grid = [&](std::span<const k::AnyRef>) {
    k::Grid out = batches(a);
    out.insert(out.begin() + axis, k::cdiv(k::extent(a.keys), blocks.keys));
    return out;
  };
  const auto body = [&](std::span<const k::AnyRef> refs) {
    AttentionFrame f(a, params, refs, batch_ids(a, axis));
    const Index first = number_of_block(axis, false, blocks.persistent) * blocks.keys;
    with_element(a, [&]<class T>() { keys<T>(f, first, blocks); });
  };
  return launched(k::trace_with("attention_keys", params.params(), grid, body), params, blocks);
}

std::vector<AttentionKernel> attention_backward(const Attention& a, const AttentionLimits& limits) {
  std::vector<AttentionKernel> out;
  if (a.dq || a.dk) out.push_back(attention_delta(a));
  if (is_together(a, limits)) {
    out.push_back(attention_together(a, keys_blocks(a, limits, true, true)));
    return out;
  }
  if (a.dq) out.push_back(attention_queries(a, queries_blocks(a, limits)));
  if (!a.dk && !a.dv) return out;
  const AttentionBlocks both = keys_blocks(a, limits, static_cast<bool>(a.dk), static_cast<bool>(a.dv));
  if (both.queries > 0) {
    out.push_back(attention_keys(a, both));
    return out;
  }
  Attention of_keys = a, of_values = a;
  of_keys.dv = {}, of_values.dk = {};
  out.push_back(attention_keys(of_keys, keys_blocks(a, limits, true, false)));
  out.push_back(attention_keys(of_values, keys_blocks(a, limits, false, true)));
  return out;
}

}  // namespace weft::kernels
