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

class WEFT_API GptBlock : public nn::Module {
 public:
  GptBlock(nn::Module& parent, std::string name, const GptConfig& config);
  /// x is the residual stream; products are computed in `dtype`.
  array operator()(const array& x, Dtype dtype) const;
  /// The same for new tokens at `positions` (int32 [time]): their keys and values enter the cache, and they attend to
  /// its first `length` rows.
  array append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const;
  /// For one token, with which there are `length` (int32 [1]) rows.
  array next(const array& x, Dtype dtype, array& cache, const array& length) const;

  nn::LayerNorm ln_1;
  nn::CausalSelfAttention attn;
  nn::LayerNorm ln_2;
  GptMlp mlp;
};

class WEFT_API Gpt : public TextModel {
 public:
  /// Norms and loss compute in float32 in every precision.
  Gpt(const GptConfig& c, const nn::Precision& p);
  /// Products in `compute`; parameters and residual stream in float32 (nn::mixed).
  explicit Gpt(const GptConfig& c, Dtype compute = float32) : Gpt(c, nn::mixed(compute)) {}

  int64_t vocab() const override { return config.vocab; }
  int64_t context() const override { return config.context; }
  KvCache cache() const override {
    return {config.layers, config.heads, config.context, config.width / config.heads, dtype};
  }
  array logits(const array& ids) const override;
  array append(const array& ids, const array& positions, Dim length, KvCache& cache) const override;
  array next(const array& ids, const array& length, KvCache& cache) const override;

  /// Each block is computed again in the backward pass instead of keeping what it computed: less memory, one more
  /// forward pass.
  bool checkpoint_blocks = false;

  /// GPT-2's: N(0, 0.02), products that end on the residual stream 0.02 / √(2 layers), biases 0.
  void initialise();
  std::string describe() const override;
  const GptConfig config;
  const Dtype dtype;  ///< of products

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::List<GptBlock> h;
  nn::LayerNorm ln_f;
  std::optional<nn::Linear> lm_head;  // only where the head is not tied

 private:
  array head(const array& x) const;
  array embedded(const array& ids, const array& positions) const;
};

}  // namespace weft::models
