#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "weft/nn/layers.h"

namespace weft::nn {

/// Options of SelfAttention.
struct AttentionOptions {
  bool bias = true;     ///< of both linear layers
  float dropout = 0;    ///< of the attention weights and of the result
  bool causal = false;  ///< a position sees itself and those before it
};

/// Self-attention of x [batch, time, width] in `heads` heads; one matrix product computes queries, keys and values
/// (GPT-2's names: c_attn, c_proj). Throws std::invalid_argument unless the width is a multiple of `heads`.
class WEFT_API SelfAttention : public Module {
 public:
  SelfAttention(int64_t width, int64_t heads, AttentionOptions options = {});
  SelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, AttentionOptions options = {});
  /// Returns [batch, time, width].
  array operator()(const array& x) const;
  /// Returns queries, keys and values [batch, heads, time, width / heads] of x: the first half, for callers with a
  /// key-value cache.
  std::tuple<array, array, array> project(const array& x) const;
  /// Returns [batch, time, width] from attended heads [batch, heads, time, width / heads]: the second half.
  array merge(const array& heads) const;
  /// Returns 1 / √(width / heads), the factor of the scores.
  float scale() const;
  std::string describe() const override;

 private:
  int64_t width_, heads_;
  AttentionOptions options_;

 public:
  Linear c_attn, c_proj;                ///< [3 · width, width] and [width, width]
  Dropout attn_dropout, resid_dropout;  ///< of the attention weights, and of the result
};

/// SelfAttention in which a position sees itself and those before it.
class WEFT_API CausalSelfAttention : public SelfAttention {
 public:
  CausalSelfAttention(int64_t width, int64_t heads, bool bias = true, float dropout = 0)
      : SelfAttention(width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
  CausalSelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, bool bias = true,
                      float dropout = 0)
      : SelfAttention(parent, std::move(name), width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
};

}  // namespace weft::nn
