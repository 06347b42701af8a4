#pragma once
// GPT-2 (Radford et al. 2019) in nanoGPT's form: learned positions, pre-norm blocks, tanh gelu, the head tied to the token embedding.
// Parameter names are GPT-2's (wte.weight, h.0.attn.c_attn.weight, …); weights are [out, in].
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/nn.h"

namespace weft::models {

struct GptConfig {
  int64_t vocab = 50304;
  int64_t context = 1024;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  float dropout = 0;
  bool bias = true;
  bool tied_head = true;

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};
/// Throws std::invalid_argument with a sentence where a number makes no sense.
WEFT_API void validate(const GptConfig& config);
WEFT_API std::string to_json(const GptConfig& config);
/// Missing keys keep their defaults; unknown keys and wrong types throw std::invalid_argument.
WEFT_API GptConfig gpt_config_from_json(std::string_view json);

class WEFT_API GptMlp : public nn::Module {
 public:
  GptMlp(nn::Module& parent, std::string name, const GptConfig& config);
  array operator()(const array& x) const;

  nn::Linear c_fc, c_proj;
  nn::Dropout dropout;
};

/// Keys and values of the tokens so far, one pair a layer: [1, heads, context, width / heads], rows past the length are not read.
struct WEFT_API GptCache {
  GptCache(const GptConfig& config, Dtype dtype);
  std::vector<array> keys, values;
  std::vector<array*> state();  ///< handles, for CompileOptions::state
};

class WEFT_API GptBlock : public nn::Module {
 public:
  GptBlock(nn::Module& parent, std::string name, const GptConfig& config);
  /// x is the residual stream; products are computed in `dtype`.
  array operator()(const array& x, Dtype dtype) const;
  /// The same for new tokens at `positions` (int32 [time]): their keys and values enter the cache, and they attend to its first `length` rows.
  array append(const array& x, Dtype dtype, array& keys, array& values, const array& positions, Dim length) const;

  nn::LayerNorm ln_1;
  nn::CausalSelfAttention attn;
  nn::LayerNorm ln_2;
  GptMlp mlp;
};

class WEFT_API Gpt : public nn::Module {
 public:
  /// Norms and loss compute in float32 in every precision.
  Gpt(const GptConfig& c, const nn::Precision& p);
  /// Products in `compute`; parameters and residual stream in float32 (nn::mixed).
  explicit Gpt(const GptConfig& c, Dtype compute = float32) : Gpt(c, nn::mixed(compute)) {}

  array logits(const array& ids) const;                              ///< ids int [batch, time ≤ context] → [batch, time, vocab] of the compute dtype
  array token_losses(const array& ids, const array& targets) const;  ///< float32 [batch, time]
  array loss(const array& ids, const array& targets) const;          ///< their mean
  /// Reads tokens ids [1, t] at `positions` (int32 [t], rising by 1) into the cache, whose first `length` rows are then valid, and gives float32 logits
  /// [vocab] for what follows the last of them. t and `length` may be symbolic, so that one program serves all lengths.
  array append(const array& ids, const array& positions, Dim length, GptCache& cache) const;

  /// Each block is computed again in the backward pass instead of keeping what it computed: less memory, one more forward pass.
  bool checkpoint_blocks = false;

  /// GPT-2's: N(0, 0.02), products that end on the residual stream 0.02 / √(2 layers), biases 0.
  void initialise();
  std::string describe() const override;
  const GptConfig config;
  const nn::Precision precision;
  const Dtype dtype;  ///< of products

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::List<GptBlock> h;
  nn::LayerNorm ln_f;
  std::optional<nn::Linear> lm_head;  // only where the head is not tied

 private:
  array head(const array& x) const;
};

/// Reads and continues texts with a key-value cache; two programs (a prompt, one more token) serve all lengths. The model must outlive it; it is
/// used in eval mode, and its weights may change between calls. Once the context is full, the last half of it is read again, and writing goes on from there.
class WEFT_API GptDecoder {
 public:
  explicit GptDecoder(Gpt& model);
  /// Starts afresh with a text of at least one token (of a long one, the last `context` tokens); logits for what follows.
  std::vector<float> prefill(std::span<const int32_t> ids);
  /// One more token; logits for what follows.
  std::vector<float> append(int32_t id);
  int64_t length() const { return static_cast<int64_t>(window_.size()); }  ///< tokens in the cache

 private:
  std::vector<float> read_window();
  Gpt& model_;
  GptCache cache_;
  std::vector<int32_t> window_;
  ArrayFunction prefill_, append_;
};

struct SamplerOptions {
  float temperature = 1;  ///< 0: always the likeliest
  int64_t top_k = 0;      ///< only the k likeliest; 0: all
  float top_p = 1;        ///< only the likeliest that together reach p
  uint64_t seed = 0;
};

/// Draws tokens from logits. Draw k of a seed is always the same.
class WEFT_API Sampler {
 public:
  explicit Sampler(SamplerOptions options);  ///< throws std::invalid_argument for impossible values
  int32_t operator()(std::span<const float> logits);

 private:
  SamplerOptions options_;
  uint64_t draws_ = 0;
};

}  // namespace weft::models
