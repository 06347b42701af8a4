#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "weft/nn/layers.h"

namespace weft::nn {

struct AttentionOptions {
  bool bias = true;
  float dropout = 0;  ///< of the attention weights and of the result
  bool causal = false;
};

/// Self-attention of x [batch, time, width] in `heads` heads; one product gives queries, keys and values (GPT-2's
/// names: c_attn, c_proj).
class WEFT_API SelfAttention : public Module {
 public:
  SelfAttention(int64_t width, int64_t heads, AttentionOptions options = {});
  SelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, AttentionOptions options = {});
  array operator()(const array& x) const;
  /// The two halves, for callers that keep keys and values: queries, keys, values [batch, heads, time, width / heads] …
  std::tuple<array, array, array> project(const array& x) const;
  /// … and the result [batch, time, width] from attended heads.
  array merge(const array& heads) const;
  float scale() const;
  std::string describe() const override;

 private:
  int64_t width_, heads_;
  AttentionOptions options_;

 public:
  Linear c_attn, c_proj;
  Dropout attn_dropout, resid_dropout;
};

/// SelfAttention in which a place sees itself and what came before.
class WEFT_API CausalSelfAttention : public SelfAttention {
 public:
  CausalSelfAttention(int64_t width, int64_t heads, bool bias = true, float dropout = 0)
      : SelfAttention(width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
  CausalSelfAttention(Module& parent, std::string name, int64_t width, int64_t heads, bool bias = true,
                      float dropout = 0)
      : SelfAttention(parent, std::move(name), width, heads, {.bias = bias, .dropout = dropout, .causal = true}) {}
};

}  // namespace weft::nn
