#pragma once
// Scaled dot-product attention as one unit of work, for which a vendor library is asked.
#include <array>
#include <cstdint>
#include <string>

#include "base/hash.h"
#include "weft/dtype.h"
#include "weft/numerics.h"

namespace weft::kernel {

/// O = softmax(scale Q Kᵀ) V for each batch entry and head; query head h reads head h / (heads / kv_heads) of K and V.
/// Causal: query i sees keys up to i + keys - queries. Operands: Q, K, V, O, and L, the logarithm of each row's sum of
/// exponentials (float32 [batch, heads, queries], row-major). The derivative: Q, K, V, O, L, G (the cotangent of O),
/// then dQ, dK, dV.
struct AttentionDesc {
  using Strides = std::array<int64_t, 4>;  // of batch, head, row and column, in elements
  Dtype dtype = bfloat16;
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  int64_t width = 0, value_width = 0;  // columns of Q and K, and of V and O
  double scale = 1;
  bool causal = false, derivative = false;
  Numerics numerics{};  // what a library may sacrifice for speed
  Strides q{}, k{}, v{}, o{};
  Strides g{}, dq{}, dk{}, dv{};  // of the derivative
  double flops() const;           // of the matmuls, without what causality leaves out
  Digest digest() const;
  std::string to_string() const;  // "attention bf16 [64,12]x1024x1024x64 causal"
  friend bool operator==(const AttentionDesc&, const AttentionDesc&) = default;
};

}  // namespace weft::kernel
