#pragma once
// GPT-2 (Radford et al. 2019) in nanoGPT's form: learned positions, pre-norm blocks, tanh gelu, the head tied to the
// token embedding. Parameter names are GPT-2's (wte.weight, h.0.attn.c_attn.weight, …); weights are [out, in].
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "models/text_model.h"
#include "weft/nn.h"

namespace weft::models {

/// Sizes of the model; the defaults are GPT-2 124M's.
struct GptConfig {
  int64_t vocab = 50304;   ///< tokens; GPT-2's 50257, rounded up to a multiple of 64
  int64_t context = 1024;  ///< the most tokens that are read at once
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;    ///< of the residual stream; a multiple of heads
  float dropout = 0;      ///< of embeddings, attention weights, and what is added to the residual stream
  bool bias = true;       ///< of linear layers and norms
  bool tied_head = true;  ///< the head is the token embedding, transposed

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};
/// Throws std::invalid_argument where a size is out of range.
WEFT_API void validate(const GptConfig& config);
/// Returns the configuration as JSON.
WEFT_API std::string to_json(const GptConfig& config);
/// Returns the configuration that to_json wrote. Missing keys keep their defaults; unknown keys and wrong types throw
/// std::invalid_argument.
WEFT_API GptConfig gpt_config_from_json(std::string_view json);

/// Computes c_proj(gelu(c_fc(x))) for x [batch, time, width].
class WEFT_API GptMlp : public nn::Module {
 public:
  GptMlp(nn::Module& parent, std::string name, const GptConfig& config);
  array operator()(const array& x) const;

  nn::Linear c_fc, c_proj;  // [4 · width, width] and [width, 4 · width]
  nn::Dropout dropout;
};

/// Attention and MLP, each after a norm and added to the residual stream x [batch, time, width].
class WEFT_API GptBlock : public nn::Module {
 public:
  GptBlock(nn::Module& parent, std::string name, const GptConfig& config);
  /// Returns the residual stream after the block; matrix products are computed in `dtype`.
  array operator()(const array& x, Dtype dtype) const;
  /// Returns the same for new tokens at `positions` (int32 [time]): their keys and values are appended to the cache,
  /// and they attend to its first `length` rows.
  array append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const;
  /// Returns the same for one token, with which the cache has `length` (int32 [1]) rows.
  array next(const array& x, Dtype dtype, array& cache, const array& length) const;

  nn::LayerNorm ln_1;
  nn::CausalSelfAttention attn;
  nn::LayerNorm ln_2;
  GptMlp mlp;
};

/// The model: ids → wte + wpe → blocks h → norm ln_f → logits.
class WEFT_API Gpt : public TextModel {
 public:
  /// Norms and loss compute in float32 in every precision.
  Gpt(const GptConfig& c, const nn::Precision& p);
  /// Matrix products in `compute`; parameters and residual stream in float32 (nn::mixed).
  explicit Gpt(const GptConfig& c, Dtype compute = float32) : Gpt(c, nn::mixed(compute)) {}

  int64_t vocab() const override { return config.vocab; }
  int64_t context() const override { return config.context; }
  KvCache cache() const override {
    return {config.layers, config.heads, config.context, config.width / config.heads, dtype};
  }
  array logits(const array& ids) const override;
  array append(const array& ids, const array& positions, Dim length, KvCache& cache) const override;
  array next(const array& ids, const array& length, KvCache& cache) const override;

  /// Whether the backward pass computes each block again instead of keeping its intermediate results: less memory for
  /// one more forward pass.
  bool checkpoint_blocks = false;

  /// Draws GPT-2's initial weights: N(0, 0.02); layers that add to the residual stream N(0, 0.02 / √(2 layers)); biases
  /// 0.
  void initialise();
  std::string describe() const override;
  const GptConfig config;
  const Dtype dtype;  ///< of matrix products

  nn::Embedding wte, wpe;  // [vocab, width] and [context, width]
  nn::Dropout drop;
  nn::List<GptBlock> h;
  nn::LayerNorm ln_f;
  std::optional<nn::Linear> lm_head;  // [vocab, width], only where the head is not tied

 private:
  array head(const array& x) const;
  array embedded(const array& ids, const array& positions) const;
};

}  // namespace weft::models
