// Attention of several heads in bfloat16: two products with a softmax between, on tensor cores. The scores of the fused
// rungs never leave the registers, where they are the left operand of the second product.
#include <cmath>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Heads = k::In<k::bf16, 3>;  // [heads, T, d]
using Result = k::Out<k::bf16, 3>;

constexpr double log2_of_e = 1.4426950408889634;
double scale_of(int64_t d) { return 1 / std::sqrt(static_cast<double>(d)); }

/// Queries and keys of a tile.
struct Block {
  int64_t queries = 128, keys = 128;
  friend bool operator==(const Block&, const Block&) = default;
};

/// The first of three kernels: scores, in float32.
void scores(Heads q, Heads keys, k::Out<float, 3> s, Block block) {
  const auto head = k::program_id(0);
  const auto rows = k::ds(k::program_id(1) * block.queries, block.queries),
             columns = k::ds(k::program_id(2) * block.keys, block.keys);
  s(head, rows, columns) =
      k::dot(q(head, rows, k::all), k::trans(keys(head, columns, k::all))) * (scale_of(q.dim(2)) * log2_of_e);
}
/// The second one: the weights of a row.
void weights(k::In<float, 3> s, Result p) {
  const auto head = k::program_id(0), row = k::program_id(1);
  const auto v = s(head, row, k::all).load();
  const auto e = k::exp2(v - k::max(v, 0));
  p(head, row, k::all) = k::cast<k::bf16>(e * k::recip(k::sum(e, 0)));
}
/// The third one: sums of values.
void weighted(Heads p, Heads values, Result out, Block block) {
  const auto head = k::program_id(0);
  const auto rows = k::ds(k::program_id(1) * block.queries, block.queries);
  const auto left = [&](const k::Ds& at) { return p(head, rows, at).load(); };
  const auto right = [&](const k::Ds& at) { return values(head, at, k::all).load(); };
  out(head, rows, k::all) = k::cast<k::bf16>(k::gemm_loop(p.dim(2), {block.queries, values.dim(2), 64}, left, right));
}

/// All of it by the online softmax.
void online(Heads q, Heads keys, Heads values, Result out, Block block) {
  const int64_t d = q.dim(2);
  const auto head = k::program_id(0);
  const auto rows = k::ds(k::program_id(1) * block.queries, block.queries);
  const auto result = k::attention_loop(
      q(head, rows, k::all), 0, keys.dim(1), block.keys, d,
      [&](const k::Ds& at) { return keys(head, at, k::all).load(); },
      [&](const k::Ds& at) { return values(head, at, k::all).load(); },
      [&](const auto& s, const auto&) { return s * (scale_of(d) * log2_of_e); });
  out(head, rows, k::all) = k::cast<k::bf16>(result.out);
}

/// The same in whole blocks of keys, as a pipeline: while exponentials of one block are computed, tensor cores multiply
/// those of the block before, which are carried, by its values (FlashAttention-3, section 3.2).
void overlapped(Heads q, Heads keys, Heads values, Result out, Block block) {
  const int64_t length = keys.dim(1), n = block.keys;
  const double scale = scale_of(q.dim(2)) * log2_of_e;
  const auto head = k::program_id(0);
  const auto rows = k::ds(k::program_id(1) * block.queries, block.queries);
  const auto queries = q(head, rows, k::all).load();
  const auto products = [&](const k::Index& at) { return k::dot(queries, k::trans(keys(head, k::ds(at, n), k::all))); };
  const auto values_of = [&](const k::Index& at) { return values(head, k::ds(at, n), k::all).load(); };

  k::Mut most = k::full<float>({block.queries}, -INFINITY), total = k::zeros<float>({block.queries});
  const auto weigh = [&](const auto& s) {  // gives weights, and by what those of earlier blocks shrink
    const auto larger = k::maximum(most, k::max(s, 1) * scale);
    const auto e = k::exp2(k::fma(s, scale, -k::col(larger)));
    const auto shrink = k::exp2(most - larger);
    total = total * shrink + k::sum(e, 1);
    most = larger;
    return std::pair(k::cast<k::bf16>(e), shrink);
  };

  k::Mut p = weigh(products(0)).first;
  k::Mut sum = k::zeros<float>({block.queries, values.dim(2)});
  k::loop(n, length, n, [&](const k::Index& at) {
    const auto s = products(at), before = k::dot(p.get(), values_of(at - n), sum.get());
    const auto [weights, shrink] = weigh(s);
    p = weights;
    sum = before * k::col(shrink);
  });
  sum = k::dot(p.get(), values_of(length - n), sum.get());
  out(head, rows, k::all) = k::cast<k::bf16>(sum / k::col(total));
}

auto fused(const char* name, Block block, const char* steps, decltype(online) body = online) {
  return k::kernel(name, body)
      .config(block)
      .grid([](auto q, auto, auto, auto, Block b) {
        return k::Grid{q.dim(0), k::cdiv(q.dim(1), b.queries)};
      })
      .schedule(steps);
}

Rung unfused(Block block) {
  const auto first = k::kernel("attention_scores_16", scores)
                         .config(block)
                         .grid([](auto q, auto keys, auto, Block b) {
                           return k::Grid{q.dim(0), k::cdiv(q.dim(1), b.queries), k::cdiv(keys.dim(1), b.keys)};
                         })
                         .outputs([](const array& q, const array& keys) {
                           return Shape{q.shape(0), q.shape(1), keys.shape(1)};
                         });
  const auto second = k::kernel("attention_weights_16", weights).grid([](auto s, auto) {
    return k::Grid{s.dim(0), s.dim(1)};
  });
  const auto third = k::kernel("attention_values_16", weighted)
                         .config(block)
                         .grid([](auto p, auto, auto, Block b) {
                           return k::Grid{p.dim(0), k::cdiv(p.dim(1), b.queries)};
                         })
                         .outputs([](const array& p, const array& values) {
                           return Shape{p.shape(0), p.shape(1), values.shape(2)};
                         });
  Rung out =
      rung("unfused: three kernels", one([=](const Arrays& in) { return third(second(first(in[0], in[1])), in[2]); }));
  out.program = [=](const Arrays& in) { return first.program(in[0], in[1]); };
  return out;
}

array of_arrays(const Arrays& in) {
  const auto batch = [&](size_t i) { return weft::expand_dims(in[i], 0); };
  const float scale = static_cast<float>(scale_of(in[0].shape(2)));
  return weft::squeeze(weft::fast::scaled_dot_product_attention(batch(0), batch(1), batch(2), scale), 0);
}

/// A loop in C++ over the numbers in float32.
Rung plain_loop(const Shape& shape) {
  const int64_t heads = shape[0], length = shape[1], d = shape[2];
  Rung out = loop({shape}, [=](auto in, auto to) {
    std::vector<float> p(static_cast<size_t>(length));
    for (int64_t row = 0; row < heads * length; ++row) {
      const float *const q = in[0] + row * d, *const keys = in[1] + row / length * length * d,
                         *const values = in[2] + row / length * length * d;
      float most = -INFINITY, sum = 0;
      for (int64_t j = 0; j < length; ++j) {
        float s = 0;
        for (int64_t c = 0; c < d; ++c) s += q[c] * keys[j * d + c];
        most = std::max(most, p[static_cast<size_t>(j)] = s * static_cast<float>(scale_of(d)));
      }
      for (float& w : p) sum += w = std::exp(w - most);
      for (int64_t c = 0; c < d; ++c) to[0][row * d + c] = 0;
      for (int64_t j = 0; j < length; ++j)
        for (int64_t c = 0; c < d; ++c) to[0][row * d + c] += p[static_cast<size_t>(j)] / sum * values[j * d + c];
    }
  });
  out.run = [run = out.run](const Arrays& in) {
    Arrays wide;
    for (const array& x : in) wide.push_back(weft::astype(x, weft::float32));
    return Arrays{weft::astype(run(wide)[0], weft::bfloat16)};
  };
  return out;
}

}  // namespace

Ladder attention_tensor(Scale scale) {
  // Three blocks of keys at least: where a loop has one iteration, there is nothing to copy ahead.
  const int64_t heads = at(scale, 1, 8, 64), length = at(scale, 384, 1024, 4096), d = at(scale, 128, 64, 128);
  const Shape shape{heads, length, d};
  const auto drawn = [&](uint64_t seed) { return weft::astype(normal(shape, seed), weft::bfloat16); };
  Ladder out{.name = "attention_tensor", .inputs = {drawn(1), drawn(2), drawn(3)}};
  out.library = one(of_arrays);
  out.operations = 4.0 * static_cast<double>(heads * length * length * d);
  out.tolerance = 0.03;
  out.rungs = {
      plain_loop(shape),
      unfused({128, 128}),
      rung("online, mma.sync", fused("attention_mma", {64, 64}, "tensorize(mma)")),
      rung("wgmma, all warps copy", fused("attention_wgmma", {64, 128}, "tensorize(wgmma); specialize(off); warps(4)")),
      rung("wgmma, a warpgroup copies by TMA",
           fused("attention_tma", {64, 128}, "specialize(on); persistent(off); warps(4)")),
      rung("two warpgroups multiply", fused("attention_two", {128, 128}, "specialize(on); persistent(off); warps(8)")),
      rung("blocks take programs in turns",
           fused("attention_persistent", {128, 128}, "specialize(on); persistent(on); warps(8)")),
      rung("overlapped: exponentials beside products",
           fused("attention_overlapped", {128, 128}, "specialize(on); persistent(off); warps(8)", overlapped)),
  };
  return out;
}

}  // namespace ladders
