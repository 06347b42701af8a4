// Attention's derivative by columns: dK and dV; and, where one program has all rows, dQ as well.
#include <functional>
#include <optional>

#include "base/error.h"
#include "kernels/attention/derivative.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

namespace {

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

/// Returns the programs along the batch axes.
k::Grid batches(const Attention& a) {
  k::Grid grid;
  for (size_t axis = 0; axis < a.batch.size(); ++axis) grid.emplace_back(summed(a, axis) ? 1 : a.batch[axis]);
  return grid;
}

}  // namespace

AttentionKernel attention_together(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_together");
  if (!a.dq || !a.dk || !a.dv)
    throw_invalid("attention_together", "it writes dq, dk and dv: use attention_queries and attention_keys");
  const AttentionParams params(a, with_operands(a, {{&a.dq, a.queries, a.width, true},
                                                    {&a.dk, a.keys, a.width, true},
                                                    {&a.dv, a.keys, a.value_width, true}}));
  return {k::trace("attention_together", params.params(), batches(a),
                   [&](std::span<const k::AnyRef> refs) {
                     AttentionFrame f(a, params, refs, batch_ids(a, static_cast<int>(a.batch.size())));
                     with_element(a, [&]<class T>() { together<T>(f, blocks); });
                   }),
          params.buffers()};
}

AttentionKernel attention_keys(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_keys");
  const AttentionParams params(
      a, with_operands(a, {{&a.dk, a.keys, a.width, true}, {&a.dv, a.keys, a.value_width, true}}));
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

}  // namespace weft::kernels
