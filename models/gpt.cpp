#include "models/gpt.h"

#include <cmath>

#include "base/error.h"
#include "models/cache_rows.h"
#include "weft/fast.h"
#include "weft/transforms.h"

namespace weft::models {

namespace {

constexpr float gpt_deviation = 0.02f;

const GptConfig& checked(const GptConfig& config) {
  validate(config);
  return config;
}

/// Draws the parameter from N(0, deviation²); 0 sets it to zeros.
void fill_gpt(nn::Parameter& parameter, float deviation) {
  const array& old = parameter;
  parameter = astype(deviation > 0 ? nn::init::normal(old.shape(), 0, deviation) : nn::init::constant(old.shape(), 0),
                     old.dtype());
}

}  // namespace

GptMlp::GptMlp(nn::Module& parent, std::string name, const GptConfig& config)
    : Module(parent, std::move(name)), c_fc(*this, "c_fc", config.width, 4 * config.width, config.bias),
      c_proj(*this, "c_proj", 4 * config.width, config.width, config.bias), dropout(*this, "dropout", config.dropout) {}

array GptMlp::operator()(const array& x) const { return dropout(c_proj(nn::gelu_approx(c_fc(x)))); }

GptBlock::GptBlock(nn::Module& parent, std::string name, const GptConfig& config)
    : Module(parent, std::move(name)), ln_1(*this, "ln_1", config.width, {.bias = config.bias}),
      attn(*this, "attn", config.width, config.heads, config.bias, config.dropout),
      ln_2(*this, "ln_2", config.width, {.bias = config.bias}), mlp(*this, "mlp", config) {}

array GptBlock::operator()(const array& x, Dtype dtype) const {
  const array attended = x + astype(attn(astype(ln_1(x), dtype)), x.dtype());
  return attended + astype(mlp(astype(ln_2(attended), dtype)), x.dtype());
}

array GptBlock::append(const array& x, Dtype dtype, array& cache, const array& positions, Dim length) const {
  const auto [q, k, v] = attn.project(astype(ln_1(x), dtype));
  const auto [keys, values] = append_rows(cache, k, v, positions, length);
  // q [1, heads, t, d], keys and values [1, heads, length, d]. Query i of t sees the keys up to i + length - t, which
  // is what "causal" means; a single query sees all of them.
  const bool single = x.shape(1) == Dim(1);
  const array heads = fast::scaled_dot_product_attention(q, keys, values, attn.scale(), single ? "" : "causal");
  const array attended = x + astype(attn.merge(heads), x.dtype());
  return attended + astype(mlp(astype(ln_2(attended), dtype)), x.dtype());
}

array GptBlock::next(const array& x, Dtype dtype, array& cache, const array& length) const {
  const auto [q, k, v] = attn.project(astype(ln_1(x), dtype));
  const auto [keys, values] = append_rows(cache, k, v, length - 1);
  const array attended =
      x + astype(attn.merge(fast::cached_attention(q, keys, values, attn.scale(), length)), x.dtype());
  return attended + astype(mlp(astype(ln_2(attended), dtype)), x.dtype());
}

Gpt::Gpt(const GptConfig& c, const nn::Precision& p)
    : TextModel(p), config(checked(c)), dtype(p.compute), wte(*this, "wte", c.vocab, c.width),
      wpe(*this, "wpe", c.context, c.width), drop(*this, "drop", c.dropout), h(*this, "h"),
      ln_f(*this, "ln_f", c.width, {.bias = c.bias}) {
  nn::check("Gpt", precision);
  for (int64_t layer = 0; layer < c.layers; ++layer) h.add(c);
  if (!c.tied_head) lm_head.emplace(*this, "lm_head", c.width, c.vocab, false);
  initialise();
  starting_values = set_dtype(precision.parameters);
  nn::use_float8(h, precision.float8);
}

void Gpt::initialise() {
  const float residual = gpt_deviation / std::sqrt(2 * static_cast<float>(config.layers));
  for (auto& [name, module] : named_modules()) {
    if (auto* embedding = dynamic_cast<nn::Embedding*>(module)) fill_gpt(embedding->weight, gpt_deviation);
    auto* linear = dynamic_cast<nn::Linear*>(module);
    if (!linear) continue;
    fill_gpt(linear->weight, name.ends_with("c_proj") ? residual : gpt_deviation);
    if (linear->bias) fill_gpt(*linear->bias, 0);
  }
}

std::string Gpt::describe() const {
  return "Gpt(vocab=" + std::to_string(config.vocab) + ", context=" + std::to_string(config.context) +
         ", layers=" + std::to_string(config.layers) + ", heads=" + std::to_string(config.heads) +
         ", width=" + std::to_string(config.width) + ", " + to_string(precision) + ")";
}

array Gpt::head(const array& x) const {
  const array normed = astype(ln_f(x), dtype);
  return lm_head ? (*lm_head)(normed) : wte.as_linear(normed);
}

array Gpt::logits(const array& ids) const {
  if (ids.ndim() != 2)
    throw_invalid("Gpt.logits", "ids must be [batch, time]; their shape is " + to_string(ids.shape()));
  const Dim time = ids.shape(1);
  if (time.bound() > config.context)
    throw_invalid("Gpt.logits",
                  std::to_string(time.bound()) + " tokens do not fit the context of " + std::to_string(config.context));
  // Positions are 0, 1, …, so their embeddings are a slice, whose gradient is a copy.
  const array positions = slice(wpe.weight, {0, 0}, {time, config.width});                       // [time, width]
  array x = drop(astype(wte(ids), precision.residual) + astype(positions, precision.residual));  // [batch, time, width]
  for (size_t layer = 0; layer < h.size(); ++layer) {
    const auto block = [&](const std::vector<array>& a) { return std::vector<array>{h[layer](a[0], dtype)}; };
    x = checkpoint_blocks ? checkpoint(block)({x})[0] : block({x})[0];
  }
  return head(x);
}

array Gpt::embedded(const array& ids, const array& positions) const {
  return astype(wte(ids), precision.residual) + astype(wpe(positions), precision.residual);
}

array Gpt::append(const array& ids, const array& positions, Dim length, KvCache& cache) const {
  check_append("Gpt.append", ids, positions);
  array x = embedded(ids, positions);
  for (size_t layer = 0; layer < h.size(); ++layer)
    x = h[layer].append(x, dtype, cache.layers[layer], positions, length);
  x = reshape(last_row(x, positions), {1, 1, config.width});  // of t tokens the last one
  return astype(reshape(head(x), {config.vocab}), float32);
}

array Gpt::next(const array& ids, const array& length, KvCache& cache) const {
  check_append("Gpt.next", ids, length);
  array x = embedded(ids, length - 1);
  for (size_t layer = 0; layer < h.size(); ++layer) x = h[layer].next(x, dtype, cache.layers[layer], length);
  return astype(reshape(head(x), {config.vocab}), float32);
}

}  // namespace weft::models
