#pragma once
// Llama (Touvron et al. 2023): RMS norms before each half of a block, rotary positions, queries in groups that share
// keys and values, a gated feed-forward layer (SwiGLU). Configuration and parameter names are Hugging Face's
// (config.json; model.layers.0.self_attn.q_proj.weight, …); weights are [out, in].
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/text_model.h"
#include "weft/nn.h"

namespace weft::models {

/// How Llama 3.1 stretches rotary positions over a longer context than it was first trained with: slow rotations are
/// slowed down by `factor`, fast ones stay, and between `low` and `high` rotations within the original context there is
/// a smooth passage.
struct RopeScaling {
  double factor = 8, low = 1, high = 4;
  int64_t original_context = 8192;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct LlamaConfig {
  int64_t vocab = 32000;
  int64_t context = 2048;
  int64_t layers = 22;
  int64_t heads = 32;
  int64_t kv_heads = 4;  ///< each serves heads / kv_heads query heads
  int64_t width = 2048;
  int64_t head_width = 64;
  int64_t hidden = 5632;  ///< of the feed-forward layer
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling = std::nullopt;
  double norm_eps = 1e-5;
  bool tied_head = false;

  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};
/// Throws std::invalid_argument with a sentence where a number makes no sense.
WEFT_API void validate(const LlamaConfig& config);
/// As Hugging Face's config.json.
WEFT_API std::string to_json(const LlamaConfig& config);
/// Keys that say nothing about the architecture are passed over; one that asks for what is not here (biases, another
/// activation, another scaling of positions) throws std::invalid_argument, and so do missing sizes.
WEFT_API LlamaConfig llama_config_from_json(std::string_view json);

class WEFT_API LlamaAttention : public nn::Module {
 public:
  LlamaAttention(nn::Module& parent, std::string name, const LlamaConfig& config);
  struct Projected {
    array q, k, v;  ///< [batch, heads or kv_heads, time, head width], q and k rotated
  };
  /// The first of x's places is number `offset` (an integer array of one element).
  Projected project(const array& x, const array& offset) const;
  array merge(const array& heads) const;
  float scale() const;

  nn::Linear q_proj, k_proj, v_proj, o_proj;

 private:
  array rotated(const array& x, const array& offset) const;
  const LlamaConfig config_;
  array frequencies_;  // places are divided by them; only with scaling
};

class WEFT_API LlamaMlp : public nn::Module {
 public:
  LlamaMlp(nn::Module& parent, std::string name, const LlamaConfig& config);
  array operator()(const array& x) const;

  nn::Linear gate_proj, up_proj, down_proj;
};

class WEFT_API LlamaBlock : public nn::Module {
 public:
  LlamaBlock(nn::Module& parent, std::string name, const LlamaConfig& config);
  /// x is the residual stream; products are computed in `dtype`.
  array operator()(const array& x, Dtype dtype) const;
  array append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const;
  array next(const array& x, Dtype dtype, array& cache, const array& length) const;

  LlamaAttention self_attn;
  LlamaMlp mlp;
  nn::RMSNorm input_layernorm, post_attention_layernorm;

 private:
  array finish(const array& x, const array& heads, Dtype dtype) const;
};

/// What lies under "model." in the names.
class WEFT_API LlamaBody : public nn::Module {
 public:
  LlamaBody(nn::Module& parent, std::string name, const LlamaConfig& config);

  nn::Embedding embed_tokens;
  nn::List<LlamaBlock> layers;
  nn::RMSNorm norm;
};

class WEFT_API Llama : public TextModel {
 public:
  /// Norms and loss compute in float32 in every precision. Parameters are made one by one, so that a large model is
  /// never there in float32.
  Llama(const LlamaConfig& c, const nn::Precision& p);
  /// Products in `compute`; parameters and residual stream in float32 (nn::mixed).
  explicit Llama(const LlamaConfig& c, Dtype compute = float32) : Llama(c, nn::mixed(compute)) {}
  int64_t vocab() const override { return config.vocab; }
  int64_t context() const override { return config.context; }
  KvCache cache() const override { return {config.layers, config.kv_heads, config.context, config.head_width, dtype}; }
  array logits(const array& ids) const override;
  array append(const array& ids, const array& positions, Dim length, KvCache& cache) const override;
  array next(const array& ids, const array& length, KvCache& cache) const override;

  /// Each block is computed again in the backward pass instead of keeping what it computed: less memory, one more
  /// forward pass.
  bool checkpoint_blocks = false;

  /// N(0, 0.02), products that end on the residual stream 0.02 / √(2 layers).
  void initialise();
  std::string describe() const override;
  const LlamaConfig config;
  const Dtype dtype;  ///< of products

  LlamaBody model;
  std::optional<nn::Linear> lm_head;  // only where the head is not tied

 private:
  array embedded(const array& ids) const;
  array head(const array& x) const;
};

/// The model in a folder as Hugging Face's: config.json, and model.safetensors or its parts with their index. Throws
/// std::runtime_error or std::invalid_argument with the file and what is wrong with it.
WEFT_API std::unique_ptr<Llama> load_llama(const std::string& folder, const nn::Precision& precision);

}  // namespace weft::models
