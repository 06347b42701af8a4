// Attention's derivative by rows: dQ.
#include "kernels/attention/derivative.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

/// Adds up what the keys give to the cotangents of a block of queries.
template <class T>
static void queries(const AttentionFrame& f, const Index& first, const AttentionBlocks& blocks) {
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

AttentionKernel attention_queries(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_queries");
  const AttentionParams params(a, with_operands(a, {{&a.dq, a.queries, a.width, true}}));
  const auto body = [&](std::span<const k::AnyRef> refs) {
    const AttentionFrame f(a, params, refs, batch_ids(a, axis_of_blocks(a, blocks)));
    with_element(a, [&]<class T>() { queries<T>(f, first_query(a, blocks), blocks); });
  };
  const auto grid = [&](std::span<const k::AnyRef>) { return grid_of_queries(a, blocks); };
  return launched(k::trace_with("attention_queries", params.params(), grid, body), params, blocks);
}

}  // namespace weft::kernels
