#include "models/llama.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "models/cache_rows.h"
#include "weft/fast.h"
#include "weft/transforms.h"

namespace weft::models {

namespace {

constexpr float llama_deviation = 0.02f;

const LlamaConfig& checked(const LlamaConfig& config) {
  validate(config);
  return config;
}

/// Returns the positions per radian of each pair of elements, [head_width / 2]: the `freqs` of fast::rope. With
/// Llama 3.1's scaling, pairs that rotate less than `low` times in the original context are slowed down by `factor`,
/// those above `high` rotations stay, and in between both are mixed. Without scaling: unused.
array frequencies(const LlamaConfig& c) {
  if (!c.rope_scaling) return array(0);
  const RopeScaling& s = *c.rope_scaling;
  std::vector<float> out;
  for (int64_t i = 0; i < c.head_width / 2; ++i) {
    const double period = std::pow(c.rope_theta, 2.0 * static_cast<double>(i) / static_cast<double>(c.head_width));
    const double rotations = static_cast<double>(s.original_context) / (2 * std::numbers::pi * period);
    const double fast = std::clamp((rotations - s.low) / (s.high - s.low), 0.0, 1.0);
    out.push_back(static_cast<float>(1 / (fast / period + (1 - fast) / (period * s.factor))));
  }
  return array::from_data(out.data(), {c.head_width / 2}, float32);
}

/// Draws the parameter from N(0, deviation²).
void fill_llama(nn::Parameter& parameter, float deviation) {
  const array& old = parameter;
  array drawn = astype(nn::init::normal(old.shape(), 0, deviation), old.dtype());
  drawn.eval();  // one by one, so that float32 values exist for one parameter at a time
  parameter = drawn;
}

}  // namespace

LlamaAttention::LlamaAttention(nn::Module& parent, std::string name, const LlamaConfig& c)
    : Module(parent, std::move(name)), q_proj(*this, "q_proj", c.width, c.heads * c.head_width, false),
      k_proj(*this, "k_proj", c.width, c.kv_heads * c.head_width, false),
      v_proj(*this, "v_proj", c.width, c.kv_heads * c.head_width, false),
      o_proj(*this, "o_proj", c.heads * c.head_width, c.width, false), config_(c), frequencies_(frequencies(c)) {}

float LlamaAttention::scale() const { return 1 / std::sqrt(static_cast<float>(config_.head_width)); }

array LlamaAttention::rotated(const array& x, const array& offset) const {
  const int width = static_cast<int>(config_.head_width);
  if (config_.rope_scaling) return fast::rope(x, width, false, std::nullopt, 1, offset, frequencies_);
  return fast::rope(x, width, false, static_cast<float>(config_.rope_theta), 1, offset);
}

LlamaAttention::Projected LlamaAttention::project(const array& x, const array& offset) const {
  const auto by_head = [&](const array& y, int64_t heads) {
    return transpose(reshape(y, Shape{x.shape(0), x.shape(1), heads, config_.head_width}), {0, 2, 1, 3});
  };
  return {rotated(by_head(q_proj(x), config_.heads), offset), rotated(by_head(k_proj(x), config_.kv_heads), offset),
          by_head(v_proj(x), config_.kv_heads)};
}

array LlamaAttention::merge(const array& heads) const {
  return o_proj(reshape(transpose(heads, {0, 2, 1, 3}),
                        Shape{heads.shape(0), heads.shape(2), config_.heads * config_.head_width}));
}

LlamaMlp::LlamaMlp(nn::Module& parent, std::string name, const LlamaConfig& c)
    : Module(parent, std::move(name)), gate_proj(*this, "gate_proj", c.width, c.hidden, false),
      up_proj(*this, "up_proj", c.width, c.hidden, false), down_proj(*this, "down_proj", c.hidden, c.width, false) {}

array LlamaMlp::operator()(const array& x) const { return down_proj(nn::silu(gate_proj(x)) * up_proj(x)); }

LlamaBlock::LlamaBlock(nn::Module& parent, std::string name, const LlamaConfig& c)
    : Module(parent, std::move(name)), self_attn(*this, "self_attn", c), mlp(*this, "mlp", c),
      input_layernorm(*this, "input_layernorm", c.width, static_cast<float>(c.norm_eps)),
      post_attention_layernorm(*this, "post_attention_layernorm", c.width, static_cast<float>(c.norm_eps)) {}

array LlamaBlock::finish(const array& x, const array& heads, Dtype dtype) const {
  const array attended = x + astype(self_attn.merge(heads), x.dtype());
  return attended + astype(mlp(astype(post_attention_layernorm(attended), dtype)), x.dtype());
}

array LlamaBlock::operator()(const array& x, Dtype dtype) const {
  const auto [q, k, v] = self_attn.project(astype(input_layernorm(x), dtype), array(0));
  return finish(x, fast::scaled_dot_product_attention(q, k, v, self_attn.scale(), "causal"), dtype);
}

array LlamaBlock::append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const {
  // Positions rise, so the smallest is the first. (A symbolic length has no first index to read.)
  const auto [q, k, v] = self_attn.project(astype(input_layernorm(x), dtype), min(positions));
  const auto [keys, values] = append_rows(cache, k, v, positions, length);
  return finish(
      x, fast::scaled_dot_product_attention(q, keys, values, self_attn.scale(), x.shape(1) == Dim(1) ? "" : "causal"),
      dtype);
}

array LlamaBlock::next(const array& x, Dtype dtype, array& cache, const array& length) const {
  const auto [q, k, v] = self_attn.project(astype(input_layernorm(x), dtype), length - 1);
  const auto [keys, values] = append_rows(cache, k, v, length - 1);
  return finish(x, fast::cached_attention(q, keys, values, self_attn.scale(), length), dtype);
}

LlamaBody::LlamaBody(nn::Module& parent, std::string name, const LlamaConfig& c)
    : Module(parent, std::move(name)), embed_tokens(*this, "embed_tokens", c.vocab, c.width), layers(*this, "layers"),
      norm(*this, "norm", c.width, static_cast<float>(c.norm_eps)) {
  for (int64_t k = 0; k < c.layers; ++k) layers.add(c);
}

Llama::Llama(const LlamaConfig& c, const nn::Precision& p)
    : TextModel(p), config(checked(c)), dtype(p.compute), model(*this, "model", c) {
  nn::check("Llama", precision);
  if (!c.tied_head) lm_head.emplace(*this, "lm_head", c.width, c.vocab, false);
  initialise();
  starting_values = set_dtype(precision.parameters);
  nn::use_float8(model, precision.float8);
}

void Llama::initialise() {
  const float residual = llama_deviation / std::sqrt(2 * static_cast<float>(config.layers));
  for (auto& [name, module] : named_modules()) {
    if (auto* embedding = dynamic_cast<nn::Embedding*>(module)) fill_llama(embedding->weight, llama_deviation);
    if (auto* linear = dynamic_cast<nn::Linear*>(module))
      fill_llama(linear->weight, name.ends_with("o_proj") || name.ends_with("down_proj") ? residual : llama_deviation);
  }
}

std::string Llama::describe() const {
  return "Llama(vocab=" + std::to_string(config.vocab) + ", context=" + std::to_string(config.context) +
         ", layers=" + std::to_string(config.layers) + ", heads=" + std::to_string(config.heads) + "/" +
         std::to_string(config.kv_heads) + ", width=" + std::to_string(config.width) +
         ", hidden=" + std::to_string(config.hidden) + ", " + to_string(precision) + ")";
}

array Llama::embedded(const array& ids) const { return astype(model.embed_tokens(ids), precision.residual); }

array Llama::head(const array& x) const {
  const array normed = astype(model.norm(x), dtype);
  return lm_head ? (*lm_head)(normed) : model.embed_tokens.as_linear(normed);
}

array Llama::logits(const array& ids) const {
  if (ids.ndim() != 2)
    throw_invalid("Llama.logits", "ids must be [batch, time]; their shape is " + to_string(ids.shape()));
  if (ids.shape(1).bound() > config.context)
    throw_invalid("Llama.logits", std::to_string(ids.shape(1).bound()) + " tokens do not fit the context of " +
                                      std::to_string(config.context));
  array x = embedded(ids);
  for (size_t k = 0; k < model.layers.size(); ++k) {
    const auto block = [&](const std::vector<array>& a) { return std::vector<array>{model.layers[k](a[0], dtype)}; };
    x = checkpoint_blocks ? checkpoint(block)({x})[0] : block({x})[0];
  }
  return head(x);
}

array Llama::append(const array& ids, const array& positions, Dim length, KvCache& cache) const {
  check_append("Llama.append", ids, positions);
  array x = embedded(ids);
  for (size_t k = 0; k < model.layers.size(); ++k)
    x = model.layers[k].append(x, dtype, cache.layers[k], positions, length);
  return astype(reshape(head(reshape(last_row(x, positions), {1, 1, config.width})), {config.vocab}), float32);
}

array Llama::next(const array& ids, const array& length, KvCache& cache) const {
  check_append("Llama.next", ids, length);
  array x = embedded(ids);
  for (size_t k = 0; k < model.layers.size(); ++k) x = model.layers[k].next(x, dtype, cache.layers[k], length);
  return astype(reshape(head(x), {config.vocab}), float32);
}

}  // namespace weft::models
