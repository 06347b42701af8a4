#pragma once
// Llama (Touvron et al. 2023): RMS norms before attention and feed-forward layer, rotary positions, grouped-query
// attention, a gated feed-forward layer (SwiGLU). Configuration and parameter names are Hugging Face's (config.json;
// model.layers.0.self_attn.q_proj.weight, …); weights are [out, in].
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/text_model.h"
#include "weft/nn.h"

namespace weft::models {

/// Llama 3.1's scaling of rotary positions for a longer context than the original one: pairs that rotate less than
/// `low` times within the original context are slowed down by `factor`, those that rotate more than `high` times stay,
/// and between both is a smooth transition.
struct RopeScaling {
  double factor = 8, low = 1, high = 4;
  int64_t original_context = 8192;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// Sizes of the model; the defaults are TinyLlama 1.1B's.
struct LlamaConfig {
  int64_t vocab = 32000;   ///< tokens
  int64_t context = 2048;  ///< the most tokens that are read at once
  int64_t layers = 22;
  int64_t heads = 32;
  int64_t kv_heads = 4;  ///< each serves heads / kv_heads query heads
  int64_t width = 2048;  ///< of the residual stream
  int64_t head_width = 64;
  int64_t hidden = 5632;  ///< of the feed-forward layer
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling = std::nullopt;
  double norm_eps = 1e-5;
  bool tied_head = false;

  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};
/// Throws std::invalid_argument where a size is out of range.
WEFT_API void validate(const LlamaConfig& config);
/// Returns the configuration as Hugging Face's config.json.
WEFT_API std::string to_json(const LlamaConfig& config);
/// Returns the configuration of a Hugging Face config.json. Keys that do not concern the architecture are ignored;
/// missing sizes, and features that this model lacks (biases, other activations or position scalings), throw
/// std::invalid_argument.
WEFT_API LlamaConfig llama_config_from_json(std::string_view json);

/// Causal self-attention with rotary positions.
class WEFT_API LlamaAttention : public nn::Module {
 public:
  LlamaAttention(nn::Module& parent, std::string name, const LlamaConfig& config);
  struct Projected {
    array q, k, v;  ///< [batch, heads, time, head width], k and v with kv_heads; q and k with rotary encoding
  };
  /// Returns queries, keys and values of x [batch, time, width], whose first row has position `offset` (one integer).
  Projected project(const array& x, const array& offset) const;
  /// Returns [batch, time, width] from attended heads [batch, heads, time, head width].
  array merge(const array& heads) const;
  /// Returns 1 / √(head width), the factor of the scores.
  float scale() const;

  nn::Linear q_proj, k_proj, v_proj, o_proj;

 private:
  array rotated(const array& x, const array& offset) const;
  const LlamaConfig config_;
  array frequencies_;  // fast::rope divides positions by them; only with scaling
};

/// Computes down_proj(silu(gate_proj(x)) · up_proj(x)) for x [batch, time, width].
class WEFT_API LlamaMlp : public nn::Module {
 public:
  LlamaMlp(nn::Module& parent, std::string name, const LlamaConfig& config);
  array operator()(const array& x) const;

  nn::Linear gate_proj, up_proj, down_proj;  // [hidden, width] twice, and [width, hidden]
};

/// Attention and feed-forward layer, each after a norm and added to the residual stream x [batch, time, width].
class WEFT_API LlamaBlock : public nn::Module {
 public:
  LlamaBlock(nn::Module& parent, std::string name, const LlamaConfig& config);
  /// Returns the residual stream after the block; matrix products are computed in `dtype`.
  array operator()(const array& x, Dtype dtype) const;
  /// Returns the same for new tokens at `positions` (int32 [time]): their keys and values are appended to the cache,
  /// and they attend to its first `length` rows.
  array append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const;
  /// Returns the same for one token, with which the cache has `length` (int32 [1]) rows.
  array next(const array& x, Dtype dtype, array& cache, const array& length) const;

  LlamaAttention self_attn;
  LlamaMlp mlp;
  nn::RMSNorm input_layernorm, post_attention_layernorm;

 private:
  array finish(const array& x, const array& heads, Dtype dtype) const;
};

/// The parameters named "model.…": everything but the head.
class WEFT_API LlamaBody : public nn::Module {
 public:
  LlamaBody(nn::Module& parent, std::string name, const LlamaConfig& config);

  nn::Embedding embed_tokens;
  nn::List<LlamaBlock> layers;
  nn::RMSNorm norm;
};

/// The model: ids → embed_tokens → layers → norm → logits.
class WEFT_API Llama : public TextModel {
 public:
  /// Norms and loss compute in float32 in every precision. Parameters are drawn one by one, so that a large model is
  /// never in memory in float32.
  Llama(const LlamaConfig& c, const nn::Precision& p);
  /// Matrix products in `compute`; parameters and residual stream in float32 (nn::mixed).
  explicit Llama(const LlamaConfig& c, Dtype compute = float32) : Llama(c, nn::mixed(compute)) {}
  int64_t vocab() const override { return config.vocab; }
  int64_t context() const override { return config.context; }
  KvCache cache() const override { return {config.layers, config.kv_heads, config.context, config.head_width, dtype}; }
  array logits(const array& ids) const override;
  array append(const array& ids, const array& positions, Dim length, KvCache& cache) const override;
  array next(const array& ids, const array& length, KvCache& cache) const override;

  /// Whether the backward pass computes each block again instead of keeping its intermediate results: less memory for
  /// one more forward pass.
  bool checkpoint_blocks = false;

  /// Draws initial weights: N(0, 0.02); layers that add to the residual stream N(0, 0.02 / √(2 layers)).
  void initialise();
  std::string describe() const override;
  const LlamaConfig config;
  const Dtype dtype;  ///< of matrix products

  LlamaBody model;
  std::optional<nn::Linear> lm_head;  // [vocab, width], only where the head is not tied

 private:
  array embedded(const array& ids) const;
  array head(const array& x) const;
};

/// Returns the model of a Hugging Face folder: config.json, and model.safetensors or its parts with their index. Throws
/// std::runtime_error or std::invalid_argument with the file and what is wrong with it.
WEFT_API std::unique_ptr<Llama> load_llama(const std::string& folder, const nn::Precision& precision);

}  // namespace weft::models
