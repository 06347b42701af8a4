// Attention forward: a block of queries a program, the keys in blocks, one after another.
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/attention/tiles.h"

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

/// Adds the scores of a block of queries and keys to the rows' maxima and sums. Returns their exponentials, after
/// dropout, and by what what was summed before shrinks.
struct Exponentials {
  Scores p;
  k::Tile<float, 1> shrink;
};
Exponentials exponentials(const AttentionFrame& f, const Scores& products, Rows& rows, const ScoreBlock& block) {
  const Attention& a = f.a;
  const int along_keys = block.keys_first ? 0 : 1;
  const Scores t = logits_of(f, products, block);
  const double exponent = exponent_of(a);
  const auto larger = k::maximum(rows.most, k::max(t, along_keys) * exponent);
  // Where no key was seen, exponentials are 0 and not NaN.
  const k::Tile<float, 1> base = may_hide_rows(a) ? k::where(larger == -INFINITY, 0.0, larger) : larger;
  const auto p = k::exp2(k::fma(t, exponent, -of_queries(base, block.keys_first)));
  const auto shrink = k::exp2(rows.most - base);
  rows.total = rows.total * shrink + k::sum(p, along_keys);
  rows.most = larger;
  return {dropped(f, p, block), shrink};
}

/// Takes the blocks of keys one after another.
template <class T>
void take_keys(const AttentionFrame& f, const k::Tile<T, 2>& queries, Rows& rows, const Index& first,
               const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const KeyRange range = keys_seen(a, first, blocks);
  const AttentionBlocks edge = edge_of_keys(a, blocks);
  const auto add = [&](const AttentionBlocks& size, bool bounded) {
    return [&, bounded](Index at) {
      const ScoreBlock block{first, at, size, blocks.keys_first, bounded};
      const auto keys = f.rows<T>(a.k, at, size.keys, a.keys, a.width);
      const Scores products = row_products<T>(a, queries, keys, !blocks.keys_first);
      const auto [p, shrink] = exponentials(f, products, rows, block);
      const auto values = f.rows<T>(a.v, at, size.keys, a.keys, a.value_width);
      const Scores before = rows.sum * k::col(shrink);
      if (blocks.keys_first) rows.sum = multiplied<T>(a, k::trans(k::cast<T>(p)), values, before);
      else rows.sum = before + multiplied<T>(a, k::cast<T>(p), values);
    };
  };
  if (range.any_whole) k::loop(range.begin, range.whole, blocks.keys, add(blocks, false));
  if (range.any_bounded) k::loop(range.whole, range.end, edge.keys, add(edge, true));
}

/// Takes the blocks of keys such that tensor cores always have a product to do: while exponentials of one block are
/// computed, those of the block before are multiplied by its values (FlashAttention-3, section 3.2).
template <class T>
void take_keys_overlapped(const AttentionFrame& f, const k::Tile<T, 2>& queries, Rows& rows, const Index& first,
                          const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const int64_t n = blocks.keys;
  const KeyRange range = keys_seen(a, first, blocks);
  const auto products = [&](const Index& at) {
    return row_products<T>(a, queries, f.rows<T>(a.k, at, n, a.keys, a.width), true);
  };
  const auto values = [&](const Index& at) { return f.rows<T>(a.v, at, n, a.keys, a.value_width); };
  const ScoreBlock begin{first, range.begin, blocks, false, range.any_bounded};
  k::Mut p = k::cast<T>(exponentials(f, products(range.begin), rows, begin).p);
  const auto add = [&](bool bounded) {
    return [&, bounded](Index at) {
      const Scores next = products(at), sum = multiplied<T>(a, p.get(), values(at - n), rows.sum.get());
      const auto [e, shrink] = exponentials(f, next, rows, {first, at, blocks, false, bounded});
      p = k::cast<T>(e);
      rows.sum = sum * k::col(shrink);
    };
  };
  const Index second = range.begin + n;
  if (range.any_whole) k::loop(second, range.whole, n, add(false));
  if (range.any_bounded) k::loop(range.any_whole ? k::maximum(second, range.whole) : second, range.end, n, add(true));
  const Index last = k::maximum(k::floordiv(range.end - 1, n) * n, range.begin);
  rows.sum = multiplied<T>(a, p.get(), values(last), rows.sum.get());
}

template <class T>
void forward(const AttentionFrame& f, const Index& first, const AttentionBlocks& blocks) {
  const Attention& a = f.a;
  const auto queries = kept_operand<T>(f.rows<T>(a.q, first, blocks.queries, a.queries, a.width), !blocks.keys_first);
  Rows rows{k::full<float>({blocks.queries}, -INFINITY), k::zeros<float>({blocks.queries}),
            k::zeros<float>({blocks.queries, padded_width(a.value_width)})};
  if (blocks.overlapped) take_keys_overlapped<T>(f, queries, rows, first, blocks);
  else take_keys<T>(f, queries, rows, first, blocks);
  const k::Tile<float, 1> total = rows.total.get();
  const auto nothing = total == 0.0;
  const auto share = 1.0f / k::where(nothing, 1.0, total);
  if (a.o) f.store(a.o, first, a.queries, a.value_width, rows.sum * k::col(share * dropout_share(a)));
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
                                   {&a.mask, one ? Dim(1) : a.queries, one ? 1 : a.keys.bound()},
                                   {&a.key, 2, 0}});
  const auto body = [&](std::span<const k::AnyRef> refs) {
    const AttentionFrame f(a, params, refs, batch_ids(a, axis_of_blocks(a, blocks)));
    with_element(a, [&]<class T>() { forward<T>(f, first_query(a, blocks), blocks); });
  };
  const auto grid = [&](std::span<const k::AnyRef>) { return grid_of_queries(a, blocks); };
  return launched(k::trace_with("attention", params.params(), grid, body), params, blocks);
}

}  // namespace weft::kernels
