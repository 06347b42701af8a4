#include "kernels/attention/derivative.h"

namespace weft::kernels {

using k::Index;
using Scores = k::Tile<float, 2>;

std::vector<AttentionParams::Use> with_operands(const Attention& a, std::vector<AttentionParams::Use> out) {
  const bool one = a.mask && is_integer(a.mask.dtype);
  const AttentionParams::Use read[] = {
      {&a.q, a.queries, a.width},       {&a.k, a.keys, a.width},
      {&a.v, a.keys, a.value_width},    {&a.mask, one ? Dim(1) : a.queries, one ? 1 : a.keys.bound()},
      {&a.g, a.queries, a.value_width}, {&a.lse, a.queries, 0},
      {&a.delta, a.queries, 0},         {&a.key, 2, 0}};
  out.insert(out.end(), std::begin(read), std::end(read));
  return out;
}

Scores probabilities(const AttentionFrame& f, const Scores& products, const Scores& lse, const ScoreBlock& block) {
  return k::exp2(k::fma(logits_of(f, products, block), exponent_of(f.a), -lse));
}

Scores after_dropout(const AttentionFrame& f, const Scores& cotangents, const ScoreBlock& block) {
  return f.a.dropout == 0 ? cotangents : dropped(f, cotangents, block) * dropout_share(f.a);
}

bool summed(const Attention& a, size_t axis) {
  const AttentionArray& x = a.dk ? a.dk : a.dv;
  return a.batch[axis] > 1 && x.batch[axis] == 0;
}

namespace {

template <class T>
void deltas(const AttentionFrame& f, const Index& first, int64_t rows) {
  const Attention& a = f.a;
  const auto o = f.rows<T>(a.o, first, rows, a.queries, a.value_width),
             g = f.rows<T>(a.g, first, rows, a.queries, a.value_width);
  f.store_entries(a.delta, first, a.queries, k::sum(k::cast<float>(o) * k::cast<float>(g), 1));
}

/// Returns whether a CPU computes all cotangents in one kernel: there is a batch index for each of its cores.
bool is_together(const Attention& a, const AttentionLimits& limits) {
  if (limits.cores == 0 || !a.dq || !a.dk || !a.dv) return false;
  int64_t programs = 1;
  for (size_t axis = 0; axis < a.batch.size(); ++axis) programs *= summed(a, axis) ? 1 : a.batch[axis];
  return programs >= limits.cores;
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
