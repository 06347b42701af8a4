#pragma once
// Attention with the online softmax (Dao, 2022; 2023): forward, its derivative as kernels, causal or not, of one head.
// Batches and heads come from vmap. attention.cpp checks it, life.cpp follows it from its first run to a file.
#include <cmath>
#include <vector>

#include "weft/kernel_function.h"
#include "weft/weft.h"

namespace flash {

namespace k = weft::k;

/// How many queries and keys a program takes at once, and whether a query sees keys behind itself.
struct Options {
  int64_t queries = 32, keys = 32;
  bool causal = false;
  friend bool operator==(const Options&, const Options&) = default;
};

inline constexpr double log2_of_e = 1.4426950408889634;

/// O = softmax(Q Kᵀ / √d) V for one block of queries, and the base-2 logarithm of each row's sum.
inline void forward(k::In<float, 2> query, k::In<float, 2> keys, k::In<float, 2> values, k::Out<float, 2> out,
                    k::Out<float, 1> lse, Options o) {
  const int64_t length = keys.dim(0), d = query.dim(1);
  const double scale = log2_of_e / std::sqrt(static_cast<double>(d));
  const auto first = k::program_id(0) * o.queries;
  const auto rows = k::ds(first, o.queries);
  const auto q = query(rows, k::all).load();
  k::Mut m = k::full<float>({o.queries}, -INFINITY), l = k::zeros<float>({o.queries});
  k::Mut sum = k::zeros<float>({o.queries, d});
  const k::Index end = o.causal ? k::minimum(first + o.queries, length) : k::Index(length);
  k::loop(0, end, o.keys, [&](k::Index j) {
    const auto columns = k::row(j + k::arange(o.keys));
    auto s = k::dot(q, k::trans(keys(k::ds(j, o.keys), k::all))) * scale;
    s = k::where(columns < length, s, -INFINITY);
    if (o.causal) s = k::where(columns <= k::col(first + k::arange(o.queries)), s, -INFINITY);
    const auto larger = k::watch("larger", k::maximum(m, k::max(s, 1)));
    const auto p = k::exp2(s - k::col(larger));
    const auto r = k::exp2(m - larger);
    l = l * r + k::sum(p, 1);
    sum = k::dot(p, values(k::ds(j, o.keys), k::all), sum * k::col(r));
    m = larger;
  });
  out(rows, k::all) = sum / k::col(l);
  lse(rows) = m + k::log2(l);
}

/// The derivative with respect to the queries: a block of them a program.
inline void backward_queries(k::In<float, 2> query, k::In<float, 2> keys, k::In<float, 2> values, k::In<float, 1> lse,
                             k::In<float, 1> delta, k::In<float, 2> g, k::Out<float, 2> dq, Options o) {
  const int64_t length = keys.dim(0), d = query.dim(1);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const auto first = k::program_id(0) * o.queries;
  const auto rows = k::ds(first, o.queries);
  const auto q = query(rows, k::all).load(), cotangent = g(rows, k::all).load();
  const auto row_lse = k::col(lse(rows)), row_delta = k::col(delta(rows));
  k::Mut sum = k::zeros<float>({o.queries, d});
  k::loop(0, length, o.keys, [&](k::Index j) {
    const auto at = k::ds(j, o.keys);
    const auto key = keys(at, k::all).load();
    const auto columns = k::row(j + k::arange(o.keys));
    auto p = k::exp2(k::dot(q, k::trans(key)) * (scale * log2_of_e) - row_lse);
    p = k::where(columns < length, p, 0.0);
    if (o.causal) p = k::where(columns <= k::col(first + k::arange(o.queries)), p, 0.0);
    const auto ds = p * (k::dot(cotangent, k::trans(values(at, k::all))) - row_delta) * scale;
    sum = k::dot(ds, key, sum.get());
  });
  dq(rows, k::all) = sum;
}

/// The derivatives with respect to keys and values: a block of them a program.
inline void backward_keys(k::In<float, 2> query, k::In<float, 2> keys, k::In<float, 2> values, k::In<float, 1> lse,
                          k::In<float, 1> delta, k::In<float, 2> g, k::Out<float, 2> dk, k::Out<float, 2> dv,
                          Options o) {
  const int64_t length = query.dim(0), d = query.dim(1);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const auto first = k::program_id(0) * o.keys;
  const auto at = k::ds(first, o.keys);
  const auto key = keys(at, k::all).load(), value = values(at, k::all).load();
  k::Mut sum_k = k::zeros<float>({o.keys, d}), sum_v = k::zeros<float>({o.keys, d});
  k::loop(0, length, o.queries, [&](k::Index i) {
    const auto rows = k::ds(i, o.queries);
    const auto q = query(rows, k::all).load(), cotangent = g(rows, k::all).load();
    const auto indices = k::row(i + k::arange(o.queries));
    auto p = k::exp2(k::dot(key, k::trans(q)) * (scale * log2_of_e) - k::row(lse(rows)));  // [keys, queries]
    p = k::where(indices < length, p, 0.0);
    if (o.causal) p = k::where(indices >= k::col(first + k::arange(o.keys)), p, 0.0);
    sum_v = k::dot(p, cotangent, sum_v.get());
    const auto ds = p * (k::dot(value, k::trans(cotangent)) - k::row(delta(rows))) * scale;
    sum_k = k::dot(ds, q, sum_k.get());
  });
  dk(at, k::all) = sum_k;
  dv(at, k::all) = sum_v;
}

/// Returns the forward kernel: queries, keys and values [length, d] → O [length, d] and the logarithms of sums
/// [length].
inline auto forward_kernel(Options options) {
  return k::kernel("attention", forward)
      .config(options)
      .grid([](auto q, auto, auto, auto, auto, Options o) { return k::Grid{k::cdiv(q.dim(0), o.queries)}; })
      .outputs([](const weft::array& q, const weft::array&, const weft::array&) {
        return std::vector<weft::Shape>{q.shape(), weft::Shape{q.shape(0)}};
      });
}

/// Returns attention as a function of queries, keys and values [length, d] with a derivative of its own; its results
/// are those of the forward kernel.
inline weft::ArrayFunction flash_attention(Options options) {
  using weft::array;
  const auto attend = forward_kernel(options);
  const auto of_queries = k::kernel("attention_backward_queries", backward_queries)
                              .config(options)
                              .grid([](auto q, auto, auto, auto, auto, auto, auto, Options o) {
                                return k::Grid{k::cdiv(q.dim(0), o.queries)};
                              });
  const auto of_keys =
      k::kernel("attention_backward_keys", backward_keys)
          .config(options)
          .grid([](auto, auto keys, auto, auto, auto, auto, auto, auto, Options o) {
            return k::Grid{k::cdiv(keys.dim(0), o.keys)};
          })
          .outputs([](const array&, const array& keys, const array& values, const array&, const array&, const array&) {
            return std::vector<weft::Shape>{keys.shape(), values.shape()};
          });
  return weft::custom_vjp(
      [=](const std::vector<array>& in) {
        const auto [o, lse] = attend(in[0], in[1], in[2]);
        return std::vector<array>{o, lse};
      },
      [=](const std::vector<array>& in, const std::vector<array>& g, const std::vector<array>& out) {
        const array delta = weft::sum(out[0] * g[0], -1);
        const array dq = of_queries(in[0], in[1], in[2], out[1], delta, g[0]);
        const auto [dk, dv] = of_keys(in[0], in[1], in[2], out[1], delta, g[0]);
        return std::vector<array>{dq, dk, dv};
      });
}

/// Returns softmax(Q Kᵀ / √d) V by arrays, of queries, keys and values […, length, d].
inline weft::array attention_by_arrays(const std::vector<weft::array>& in, bool causal) {
  using weft::array;
  const auto length = in[0].shape(-2), d = in[0].shape(-1);
  array scores = weft::matmul(in[0], weft::swapaxes(in[1], -1, -2)) * array(1 / std::sqrt(static_cast<float>(d)));
  if (causal) {
    const array i = weft::arange(static_cast<int>(length));
    scores = weft::where(weft::expand_dims(i, 1) >= weft::expand_dims(i, 0), scores, array(-INFINITY));
  }
  return weft::matmul(weft::softmax(scores, -1), in[2]);
}

}  // namespace flash
