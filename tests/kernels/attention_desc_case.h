#pragma once
// Attention of descriptors whose operands lie in packed rows, on numbers, and what it should give, in float64.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/describe/attention_desc.h"
#include "target/cuda/cuda_support.h"

namespace weft::test {

/// Q, K and V lie side by side in each row: [batch, length, heads + 2 kv_heads, width]; O is [batch, length, heads,
/// width].
inline kernel::AttentionDesc packed(Dtype t, int64_t batch, int64_t heads, int64_t kv_heads, int64_t queries,
                                    int64_t keys, int64_t width, bool causal, bool derivative = false) {
  kernel::AttentionDesc d;
  d.dtype = t, d.batch = batch, d.heads = heads, d.kv_heads = kv_heads, d.queries = queries, d.keys = keys,
  d.width = d.value_width = width;
  d.causal = causal, d.derivative = derivative, d.scale = 1 / std::sqrt(static_cast<double>(width));
  const int64_t row = (heads + 2 * kv_heads) * width, longest = std::max(queries, keys);
  d.q = d.k = d.v = d.dq = d.dk = d.dv = {longest * row, width, row, 1};
  d.o = d.g = {queries * heads * width, width, heads * width, 1};
  return d;
}

inline size_t packed_size(const kernel::AttentionDesc& d) { return static_cast<size_t>(d.batch * d.q[0]); }
inline int64_t k_begin(const kernel::AttentionDesc& d) { return d.heads * d.width; }
inline int64_t v_begin(const kernel::AttentionDesc& d) { return (d.heads + d.kv_heads) * d.width; }

/// The arrays: `dqkv` lies as `qkv` does.
struct PackedAttention {
  std::vector<double> qkv, o, lse, g, dqkv;
};

/// Returns the operands of a descriptor in arrays that begin at these addresses.
inline std::vector<void*> packed_operands(const kernel::AttentionDesc& d, void* qkv, void* o, void* lse,
                                          void* g = nullptr, void* dqkv = nullptr) {
  const auto at = [&](void* base, int64_t elements) { return static_cast<char*>(base) + elements * d.dtype.size(); };
  std::vector<void*> out{qkv, at(qkv, k_begin(d)), at(qkv, v_begin(d)), o, lse};
  if (d.derivative) out.insert(out.end(), {g, dqkv, at(dqkv, k_begin(d)), at(dqkv, v_begin(d))});
  return out;
}

/// Forward or derivative of one head in float64; the derivative reads o and lse as they are.
inline void attend_head(const kernel::AttentionDesc& d, PackedAttention& x, int64_t b, int64_t h, bool derivative) {
  const auto at = [](const kernel::AttentionDesc::Strides& s, int64_t batch, int64_t head, int64_t row, int64_t column,
                     int64_t begin = 0) {
    return static_cast<size_t>(begin + batch * s[0] + head * s[1] + row * s[2] + column * s[3]);
  };
  const int64_t kv = h / (d.heads / d.kv_heads);
  for (int64_t i = 0; i < d.queries; ++i) {
    const int64_t seen = d.causal ? std::min(d.keys, i + d.keys - d.queries + 1) : d.keys;
    std::vector<double> s(static_cast<size_t>(seen));
    for (int64_t j = 0; j < seen; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < d.width; ++c) sum += x.qkv[at(d.q, b, h, i, c)] * x.qkv[at(d.k, b, kv, j, c, k_begin(d))];
      s[static_cast<size_t>(j)] = sum * d.scale;
    }
    double& lse = x.lse[static_cast<size_t>((b * d.heads + h) * d.queries + i)];
    if (!derivative) {
      const double most = *std::max_element(s.begin(), s.end());
      double total = 0;
      for (double v : s) total += std::exp(v - most);
      lse = most + std::log(total);
    }
    double delta = 0;
    for (int64_t c = 0; c < d.width; ++c) {
      const size_t position = at(d.o, b, h, i, c);
      if (derivative) {
        delta += x.g[position] * x.o[position];
        continue;
      }
      x.o[position] = 0;
      for (int64_t j = 0; j < seen; ++j)
        x.o[position] += std::exp(s[static_cast<size_t>(j)] - lse) * x.qkv[at(d.v, b, kv, j, c, v_begin(d))];
    }
    for (int64_t j = 0; derivative && j < seen; ++j) {
      const double p = std::exp(s[static_cast<size_t>(j)] - lse);
      double dp = 0;
      for (int64_t c = 0; c < d.width; ++c) dp += x.g[at(d.g, b, h, i, c)] * x.qkv[at(d.v, b, kv, j, c, v_begin(d))];
      const double ds = p * (dp - delta) * d.scale;
      for (int64_t c = 0; c < d.width; ++c) {
        x.dqkv[at(d.dv, b, kv, j, c, v_begin(d))] += p * x.g[at(d.g, b, h, i, c)];
        x.dqkv[at(d.dk, b, kv, j, c, k_begin(d))] += ds * x.qkv[at(d.q, b, h, i, c)];
        x.dqkv[at(d.dq, b, h, i, c)] += ds * x.qkv[at(d.k, b, kv, j, c, k_begin(d))];
      }
    }
  }
}

/// Returns numbers for the inputs, and the results.
inline PackedAttention reference(const kernel::AttentionDesc& d) {
  const auto outputs = static_cast<size_t>(d.batch * d.queries * d.heads * d.width);
  PackedAttention x{numbers(packed_size(d), 1),
                    std::vector<double>(outputs),
                    std::vector<double>(static_cast<size_t>(d.batch * d.heads * d.queries)),
                    numbers(outputs, 2),
                    {}};
  for (double& v : x.qkv) v *= 2;  // so that rows of probabilities are far from even
  x.qkv = rounded(x.qkv, d.dtype), x.g = rounded(x.g, d.dtype);
  x.dqkv.assign(x.qkv.size(), 0);
  for (const bool derivative : {false, true}) {
    if (derivative && !d.derivative) break;
    for (int64_t b = 0; b < d.batch; ++b)
      for (int64_t h = 0; h < d.heads; ++h) attend_head(d, x, b, h, derivative);
    x.o = rounded(x.o, d.dtype), x.lse = rounded(x.lse, float32);
  }
  return x;
}

/// Checks results of the forward pass against numbers of `x`; or of the derivative.
inline void check_attention(const kernel::AttentionDesc& d, const PackedAttention& x, const std::vector<double>& o,
                            const std::vector<double>& lse) {
  CHECK(beside_largest(o, x.o) < (d.dtype == float16 ? 2e-3 : 1.2e-2));
  CHECK(worst_error(lse, x.lse) < 1e-4);
}
inline void check_derivative(const kernel::AttentionDesc& d, const PackedAttention& x,
                             const std::vector<double>& dqkv) {
  CHECK(beside_largest(dqkv, x.dqkv) < (d.dtype == float16 ? 5e-3 : 2e-2));
}

}  // namespace weft::test
