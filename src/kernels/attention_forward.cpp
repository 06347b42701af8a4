// Attention forward: a block of queries a program, the keys in blocks, one after another.
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_tiles.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

namespace {

/// What a program keeps of its rows: the maximum of their logits times the exponent, the sum of their exponentials, and
/// the sum of values by them.
struct Rows {
  k::Mut<float, 1> most, total;
  k::Mut<float, 2> sum;
};

template <class T>
void add_keys(const AttentionFrame& f, const k::Tile<T, 2>& queries, Rows& rows, const ScoreBlock& block) {
  const Attention& a = f.a;
  const bool keys_first = block.keys_first;
  const int along_keys = keys_first ? 0 : 1;
  const auto keys = f.rows<T>(a.k, block.key, block.size.keys, a.keys, a.width);
  const Scores t = logits_of(f, row_products<T>(a, queries, keys, !keys_first), block);
  const double exponent = exponent_of(a);
  const auto larger = k::maximum(rows.most, k::max(t, along_keys) * exponent);
  // Where no key was seen, exponentials are 0 and not NaN.
  const k::Tile<float, 1> base = may_hide_rows(a) ? k::where(larger == -INFINITY, 0.0, larger) : larger;
  const auto p = k::exp2(k::fma(t, exponent, -of_queries(base, keys_first)));
  const auto shrink = k::exp2(rows.most - base);
  rows.total = rows.total * shrink + k::sum(p, along_keys);
  const auto values = f.rows<T>(a.v, block.key, block.size.keys, a.keys, a.value_width);
  const Scores before = rows.sum * k::col(shrink);
  if (keys_first) rows.sum = multiplied<T>(a, k::trans(k::cast<T>(p)), values, before);
  else rows.sum = before + multiplied<T>(a, k::cast<T>(p), values);
  rows.most = larger;
}

template <class T>
void forward(const AttentionFrame& f, const Index& first, const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const auto queries = kept_operand<T>(f.rows<T>(a.q, first, blocks.queries, a.queries, a.width), !blocks.keys_first);
  Rows rows{k::full<float>({blocks.queries}, -INFINITY), k::zeros<float>({blocks.queries}),
            k::zeros<float>({blocks.queries, padded_width(a.value_width)})};
  const KeyRange range = keys_seen(a, first, blocks);
  const AttentionBlocks edge = edge_of_keys(a, blocks);
  const auto add = [&](const AttentionBlocks& size, bool bounded) {
    return [&, bounded](Index at) { add_keys<T>(f, queries, rows, {first, at, size, blocks.keys_first, bounded}); };
  };
  if (range.any_whole) k::loop(range.begin, range.whole, blocks.keys, add(blocks, false));
  if (range.any_bounded) k::loop(range.whole, range.end, edge.keys, add(edge, true));
  const k::Tile<float, 1> total = rows.total.get();
  const auto nothing = total == 0.0;
  const auto share = 1.0f / k::where(nothing, 1.0, total);
  if (a.o) f.store(a.o, first, a.queries, a.value_width, rows.sum * k::col(share));
  if (a.lse)
    f.store_entries(a.lse, first, a.queries, k::where(nothing, INFINITY, (rows.most + k::log2(total)) * (1 / log2_e)));
}

}  // namespace

AttentionKernel attention_forward(const Attention& a, const AttentionBlocks& blocks) {
  check_attention(a, "attention_forward");
  const bool one = a.mask && is_integer(a.mask.dtype);
  const AttentionParams params(a, {{&a.o, a.queries, a.value_width, true},
                                   {&a.lse, a.queries, 0, true},
                                   {&a.q, a.queries, a.width},
                                   {&a.k, a.keys, a.width},
                                   {&a.v, a.keys, a.value_width},
                                   {&a.mask, one ? Dim(1) : a.queries, one ? 1 : a.keys.bound()}});
  return {
      k::trace_with(
          "attention", params.params(), [&](std::span<const k::AnyRef>) { return grid_of_queries(a, blocks.queries); },
          [&](std::span<const k::AnyRef> refs) {
            const AttentionFrame f(a, params, refs, batch_ids(a));
            with_element(a, [&]<class T>() { forward<T>(f, first_query(a, blocks.queries), blocks); });
          }),
      params.buffers()};
}

}  // namespace weft::kernels
