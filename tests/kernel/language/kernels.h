#pragma once
// Kernels of the kernel language that several tests run.
#include <cmath>
#include <cstdint>

#include "weft/kernel.h"

namespace test_kernels {

namespace k = weft::k;

inline void add(const k::In<float, 1>& x, const k::In<float, 1>& y, const k::Out<float, 1>& z, int64_t block) {
  const auto at = k::ds(k::program_id(0) * block, block);
  z(at) = x(at) + y(at);
}

/// Softmax of a row a program; columns past the end load -inf.
inline void softmax(const k::In<float, 2>& x, const k::Out<float, 2>& y, int64_t block) {
  const auto row = k::program_id(0);
  const auto v = x(row, k::ds(0, block)).load(-INFINITY);
  const auto e = k::exp(v - k::max(v, 0));
  y(row, k::ds(0, block)) = e / k::sum(e, 0);
}

inline void layer_norm(const k::In<float, 2>& x, const k::In<float, 1>& weight, const k::In<float, 1>& bias,
                       const k::Out<float, 2>& y, float eps) {
  const int64_t n = x.dim(1);
  const auto row = k::program_id(0);
  const auto v = x(row, k::ds(0, n)).load();
  const auto centred = v - k::sum(v, 0) / static_cast<float>(n);
  const auto variance = k::sum(centred * centred, 0) / static_cast<float>(n);
  y(row, k::ds(0, n)) = centred * k::rsqrt(variance + eps) * weight(k::ds(0, n)) + bias(k::ds(0, n));
}

/// The logarithm of each row's sum of exponentials: a row a program, its parts by parallel iterations.
inline void logsumexp_by_parts(const k::In<float, 2>& x, const k::Out<float, 1>& y, int64_t parts, int64_t block) {
  const auto row = x.fixed(k::program_id(0));
  const auto largest = k::scratch<float>({parts}), sums = k::scratch<float>({parts});
  k::parallel(parts, [&](const k::Index& part) {
    k::Mut most = k::scalar<float>(-INFINITY), sum = k::scalar<float>(0);
    k::loop(part * block, x.dim(1), parts * block, [&](const k::Index& at) {
      const auto v = row(k::ds(at, block)).load(-INFINITY);
      const auto larger = k::maximum(most, k::max(v, 0));
      sum = sum * k::exp(most - larger) + k::sum(k::exp(v - larger), 0);
      most = larger;
    });
    largest(part) = most, sums(part) = sum;
  });
  const auto all = largest(k::all).load();
  const auto most = k::max(all, 0);
  y(k::program_id(0)) = most + k::log(k::sum(k::where(all == -INFINITY, 0.0, sums(k::all) * k::exp(all - most)), 0));
}

struct Tiles {
  int64_t m = 64, n = 64, k = 32;
};

/// relu(A · B + bias).
template <class T>
void matmul_bias_relu(const k::In<T, 2>& a, const k::In<T, 2>& b, const k::In<float, 1>& bias, const k::Out<T, 2>& c,
                      Tiles tile) {
  const auto m = k::ds(k::program_id(0) * tile.m, tile.m), n = k::ds(k::program_id(1) * tile.n, tile.n);
  k::Mut acc = k::zeros<float>({tile.m, tile.n});
  k::loop(0, a.extent(1), tile.k,
          [&](k::Index i) { acc = k::dot(a(m, k::ds(i, tile.k)), b(k::ds(i, tile.k), n), acc.get()); });
  c(m, n) = k::cast<T>(k::maximum(acc + k::row(bias(n)), 0.0));
}

/// Attention of one head by online softmax: O = softmax(Q Kᵀ / √d) V, and each row's logsumexp to base 2.
template <class T>
void attention(const k::In<T, 2>& query, const k::In<T, 2>& keys, const k::In<T, 2>& values, const k::Out<T, 2>& out,
               const k::Out<float, 1>& lse, int64_t queries, int64_t block, bool causal) {
  const k::Index length = keys.extent(0);
  const int64_t d = query.dim(1);
  const double scale = 1.4426950408889634 / std::sqrt(static_cast<double>(d));
  const auto first = k::program_id(0) * queries;
  const auto rows = k::ds(first, queries);
  const auto q = query(rows, k::all).load();
  k::Mut m = k::full<float>({queries}, -INFINITY), l = k::zeros<float>({queries});
  k::Mut acc = k::zeros<float>({queries, d});
  const k::Index end = causal ? k::minimum(first + queries, length) : length;
  k::loop(0, end, block, [&](k::Index j) {
    const auto columns = k::row(j + k::arange(block));
    auto s = k::dot(q, k::trans(keys(k::ds(j, block), k::all))) * scale;
    s = k::where(columns < k::reshape(length, {1, 1}), s, -INFINITY);
    if (causal) s = k::where(columns <= k::col(first + k::arange(queries)), s, -INFINITY);
    const auto larger = k::maximum(m, k::max(s, 1));
    const auto p = k::exp2(s - k::col(larger));
    const auto r = k::exp2(m - larger);
    l = l * r + k::sum(p, 1);
    acc = acc * k::col(r) + k::dot(k::cast<T>(p), values(k::ds(j, block), k::all));
    m = larger;
  });
  out(rows, k::all) = k::cast<T>(acc / k::col(l));
  lse(rows) = m + k::log2(l);
}

}  // namespace test_kernels
