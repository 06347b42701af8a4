#pragma once
// Attention of 16-bit floats on tensor cores with its backward kernels, as in Triton's tutorial on fused attention: O
// and the logarithm of each row's sum, and from these the derivative, by rows for dQ and by columns for dK and dV.
#include <cmath>
#include <utility>
#include <vector>

#include "weft/kernel_function.h"
#include "weft/weft.h"

namespace tutorials {

namespace k = weft::k;

template <class T>
using Heads = k::In<T, 3>;  // [heads, length, d]

/// Queries and keys that a program takes at once, and whether a query sees keys behind itself. A block of one is a
/// whole number of blocks of the other where it is causal.
struct AttentionTile {
  int64_t queries = 128, keys = 128;
  bool causal = true;
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};

inline constexpr double log2_of_e = 1.4426950408889634;
inline double scale_of(int64_t d) { return 1 / std::sqrt(static_cast<double>(d)); }

/// O = softmax(Q Kᵀ / √d) V of a block of queries, and the base-2 logarithm of each row's sum. Exponentials of one
/// block of keys are computed while those of the block before are multiplied by its values (FlashAttention-3,
/// section 3.2), so that the first block of keys and the last one of values stand outside of the loops.
template <class T>
void attention(Heads<T> queries, Heads<T> keys, Heads<T> values, k::Out<T, 3> out, k::Out<float, 2> lse,
               AttentionTile tile) {
  const int64_t length = keys.dim(1), n = tile.keys, rows_of_tile = tile.queries;
  const bool causal = tile.causal, bounded = causal || length % n != 0;
  const double exponent = scale_of(queries.dim(2)) * log2_of_e;
  const auto head = k::program_id(0);
  // Long rows of causal attention come first.
  const auto first =
      (causal ? k::cdiv(queries.dim(1), rows_of_tile) - 1 - k::program_id(1) : k::program_id(1)) * rows_of_tile;
  const auto rows = k::ds(first, rows_of_tile);
  const auto q = queries(head, rows, k::all).load();
  const auto scores_of = [&](k::Index at) { return k::dot(q, k::trans(keys(head, k::ds(at, n), k::all))); };
  const auto values_of = [&](k::Index at) { return values(head, k::ds(at, n), k::all).load(); };
  k::Mut most = k::full<float>({rows_of_tile}, -INFINITY), total = k::zeros<float>({rows_of_tile});
  // Gives exponentials, and by what those of earlier blocks shrink.
  const auto exponentials = [&](k::Tile<float, 2> s, k::Index at, bool masked) {
    if (masked) {
      const auto columns = k::row(at + k::arange(n));
      s = k::where(columns < length, s, -INFINITY);
      if (causal) s = k::where(columns <= k::col(first + k::arange(rows_of_tile)), s, -INFINITY);
    }
    const auto larger = k::maximum(most, k::max(s, 1) * exponent);
    const auto e = k::exp2(k::fma(s, exponent, -k::col(larger)));
    const auto shrink = k::exp2(most - larger);
    total = total * shrink + k::sum(e, 1);
    most = larger;
    return std::pair(k::cast<T>(e), shrink);
  };
  k::Mut p = exponentials(scores_of(0), 0, bounded).first;
  k::Mut sum = k::zeros<float>({rows_of_tile, queries.dim(2)});
  const auto step = [&](bool masked) {
    return [&, masked](k::Index at) {
      const auto s = scores_of(at), before = k::dot(p.get(), values_of(at - n), sum.get());
      const auto [e, shrink] = exponentials(s, at, masked);
      p = e;
      sum = before * k::col(shrink);
    };
  };
  const k::Index whole = causal ? first / n * n : k::Index(length / n * n);
  const k::Index end = causal ? k::minimum(first + rows_of_tile, length) : k::Index(length);
  k::loop(n, whole, n, step(false));
  if (bounded) k::loop(k::maximum(whole, n), end, n, step(true));
  sum = k::dot(p.get(), values_of((end - 1) / n * n), sum.get());
  out(head, rows, k::all) = k::cast<T>(sum * k::col(1.0f / total));
  lse(head, rows) = most + k::log2(total);
}

/// dQ of a block of queries. What lies behind the last key is 0 and gives nothing.
template <class T>
void attention_queries(Heads<T> queries, Heads<T> keys, Heads<T> values, k::In<float, 2> lse, k::In<float, 2> delta,
                       Heads<T> cotangents, k::Out<T, 3> dq, AttentionTile tile) {
  const int64_t length = keys.dim(1), n = tile.keys, d = queries.dim(2);
  const double exponent = scale_of(d) * log2_of_e;
  const auto head = k::program_id(0);
  const auto first =
      (tile.causal ? k::cdiv(queries.dim(1), tile.queries) - 1 - k::program_id(1) : k::program_id(1)) * tile.queries;
  const auto rows = k::ds(first, tile.queries);
  const auto q = queries(head, rows, k::all).load(), g = cotangents(head, rows, k::all).load();
  const auto row_lse = k::col(lse(head, rows)), row_delta = k::col(delta(head, rows));
  k::Mut sum = k::zeros<float>({tile.queries, d});
  const auto step = [&](bool masked) {
    return [&, masked](k::Index at) {
      const auto key = keys(head, k::ds(at, n), k::all).load();
      const auto s = k::dot(q, k::trans(key)), dp = k::dot(g, k::trans(values(head, k::ds(at, n), k::all)));
      auto p = k::exp2(k::fma(s, exponent, -row_lse));
      if (masked) p = k::where(k::row(at + k::arange(n)) <= k::col(first + k::arange(tile.queries)), p, 0.0);
      sum = k::dot(k::cast<T>(p * (dp - row_delta)), key, sum.get());
    };
  };
  const k::Index whole = tile.causal ? first / n * n : k::Index(length);
  k::loop(0, whole, n, step(false));
  if (tile.causal) k::loop(whole, k::minimum(first + tile.queries, length), n, step(true));
  dq(head, rows, k::all) = k::cast<T>(sum * scale_of(d));
}

/// dK and dV of a block of keys. What lies behind the last query is 0 and gives nothing.
template <class T>
void attention_keys(Heads<T> queries, Heads<T> keys, Heads<T> values, k::In<float, 2> lse, k::In<float, 2> delta,
                    Heads<T> cotangents, k::Out<T, 3> dk, k::Out<T, 3> dv, AttentionTile tile) {
  const int64_t length = queries.dim(1), n = tile.queries, d = queries.dim(2);
  const double exponent = scale_of(d) * log2_of_e;
  const auto head = k::program_id(0);
  const auto first = k::program_id(1) * tile.keys;
  const auto at = k::ds(first, tile.keys);
  const auto key = keys(head, at, k::all).load(), value = values(head, at, k::all).load();
  k::Mut sum_k = k::zeros<float>({tile.keys, d}), sum_v = k::zeros<float>({tile.keys, d});
  const auto step = [&](bool masked) {
    return [&, masked](k::Index i) {
      const auto rows = k::ds(i, n);
      const auto q = queries(head, rows, k::all).load(), g = cotangents(head, rows, k::all).load();
      const auto s = k::dot(key, k::trans(q)), dp = k::dot(value, k::trans(g));  // [keys, queries]
      auto p = k::exp2(k::fma(s, exponent, -k::row(lse(head, rows))));
      if (masked) p = k::where(k::row(i + k::arange(n)) >= k::col(first + k::arange(tile.keys)), p, 0.0);
      sum_v = k::dot(k::cast<T>(p), g, sum_v.get());
      sum_k = k::dot(k::cast<T>(p * (dp - k::row(delta(head, rows)))), q, sum_k.get());
    };
  };
  const k::Index begin = tile.causal ? first / n * n : k::Index(0);
  const k::Index whole = tile.causal ? k::minimum(k::cdiv(first + tile.keys, n) * n, length) : k::Index(0);
  if (tile.causal) k::loop(begin, whole, n, step(true));
  k::loop(whole, length, n, step(false));
  dk(head, at, k::all) = k::cast<T>(sum_k * scale_of(d));
  dv(head, at, k::all) = k::cast<T>(sum_v);
}

/// How a program of each of the three kernels is tiled.
struct AttentionTiles {
  AttentionTile forward, queries, keys;
};

/// Returns a grid of blocks of `rows` for each head of `x`.
template <class X>
k::Grid grid_of_rows(const X& x, int64_t rows) {
  return {x.dim(0), k::cdiv(x.dim(1), rows)};
}

/// Returns the forward kernel: queries, keys and values [heads, length, d] → O and the logarithms of sums.
template <class T>
auto attention_forward(const AttentionTile& tile) {
  using weft::array, weft::Shape;
  return k::kernel("attention", attention<T>)
      .config(tile)
      .grid([](auto q, auto, auto, auto, auto, AttentionTile t) { return grid_of_rows(q, t.queries); })
      .outputs([](const array& q, const array&, const array&) {
        return std::vector<Shape>{q.shape(), {q.shape(0), q.shape(1)}};
      });
}

/// Returns the kernel of dQ: queries, keys, values, logarithms of sums, sums of O ∘ G and G → dQ.
template <class T>
auto attention_queries_kernel(const AttentionTile& tile) {
  return k::kernel("attention_queries", attention_queries<T>)
      .config(tile)
      .grid([](auto q, auto, auto, auto, auto, auto, auto, AttentionTile t) { return grid_of_rows(q, t.queries); });
}

/// Returns the kernel of dK and dV, of the same arrays.
template <class T>
auto attention_keys_kernel(const AttentionTile& tile) {
  using weft::array, weft::Shape;
  return k::kernel("attention_keys", attention_keys<T>)
      .config(tile)
      .grid([](auto, auto keys, auto, auto, auto, auto, auto, auto, AttentionTile t) {
        return grid_of_rows(keys, t.keys);
      })
      .outputs([](const array&, const array& keys, const array& values, const array&, const array&, const array&) {
        return std::vector<Shape>{keys.shape(), values.shape()};
      });
}

/// Returns the backward pass as a function of queries, keys, values, O, the logarithms of sums and the cotangents of O;
/// it gives those of queries, keys and values.
template <class T>
weft::ArrayFunction attention_gradient(const AttentionTiles& tiles) {
  using weft::array;
  const auto of_queries = attention_queries_kernel<T>(tiles.queries);
  const auto of_keys = attention_keys_kernel<T>(tiles.keys);
  return [=](const std::vector<array>& in) {
    const array delta = weft::sum(astype(in[3], weft::float32) * astype(in[5], weft::float32), -1);
    const array dq = of_queries(in[0], in[1], in[2], in[4], delta, in[5]);
    const auto [dk, dv] = of_keys(in[0], in[1], in[2], in[4], delta, in[5]);
    return std::vector<array>{dq, dk, dv};
  };
}

/// Returns attention as a function of queries, keys and values [heads, length, d] with a derivative of its own; its
/// results are O and the logarithms of sums.
template <class T>
weft::ArrayFunction attention_of(const AttentionTiles& tiles) {
  using weft::array;
  const auto forward = attention_forward<T>(tiles.forward);
  return weft::custom_vjp(
      [=](const std::vector<array>& in) { return forward(in); },
      [=](const std::vector<array>& in, const std::vector<array>& g, const std::vector<array>& out) {
        return attention_gradient<T>(tiles)({in[0], in[1], in[2], out[0], out[1], g[0]});
      });
}

}  // namespace tutorials
