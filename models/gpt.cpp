#include "models/gpt.h"

#include <cmath>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/transforms.h"

namespace weft::models {

namespace {

constexpr float start_deviation = 0.02f;

const GptConfig& checked(const GptConfig& config) {
  validate(config);
  return config;
}

/// The first `length` places along axis 2 of a cache.
array prefix(const array& cache, Dim length) {
  const Shape& full = cache.shape();
  if (length == full[2]) return cache;
  return slice(cache, {0, 0, 0, 0}, {full[0], full[1], length, full[3]});
}

/// The cache [1, heads, context, d] with the rows of `fresh` [1, heads, t, d] at `positions` [t].
array with_rows(const array& cache, const array& fresh, const array& positions) {
  const Shape& s = fresh.shape();
  return scatter(cache, positions, reshape(transpose(fresh, {2, 0, 1, 3}), {s[2], s[0], s[1], 1, s[3]}), 2);
}

void fill(nn::Parameter& parameter, float deviation) {
  const array& old = parameter;
  parameter = astype(deviation > 0 ? nn::init::normal(old.shape(), 0, deviation) : nn::init::constant(old.shape(), 0), old.dtype());
}

/// The row of x [1, time, width] at the largest position. A length that may be symbolic is not indexed but folded.
array last_row(const array& x, const array& positions) {
  const Dim time = x.shape(1);
  if (time == Dim(1)) return x;
  const array chosen = reshape(equal(positions, max(positions, true)), {1, time, 1});
  return sum(where(chosen, x, array(0, x.dtype())), 1);
}

}  // namespace

GptMlp::GptMlp(nn::Module& parent, std::string name, const GptConfig& config)
    : Module(parent, std::move(name)), c_fc(*this, "c_fc", config.width, 4 * config.width, config.bias),
      c_proj(*this, "c_proj", 4 * config.width, config.width, config.bias), dropout(*this, "dropout", config.dropout) {}

array GptMlp::operator()(const array& x) const { return dropout(c_proj(nn::gelu_approx(c_fc(x)))); }

GptCache::GptCache(const GptConfig& config, Dtype dtype) {
  const Shape shape{1, config.heads, config.context, config.width / config.heads};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    keys.push_back(zeros(shape, dtype));
    values.push_back(zeros(shape, dtype));
  }
}

std::vector<array*> GptCache::state() {
  std::vector<array*> out;
  for (auto& k : keys) out.push_back(&k);
  for (auto& v : values) out.push_back(&v);
  return out;
}

GptBlock::GptBlock(nn::Module& parent, std::string name, const GptConfig& config)
    : Module(parent, std::move(name)), ln_1(*this, "ln_1", config.width, config.bias),
      attn(*this, "attn", config.width, config.heads, config.bias, config.dropout), ln_2(*this, "ln_2", config.width, config.bias), mlp(*this, "mlp", config) {}

array GptBlock::operator()(const array& x, Dtype dtype) const {
  const array attended = x + astype(attn(astype(ln_1(x), dtype)), x.dtype());
  return attended + astype(mlp(astype(ln_2(attended), dtype)), x.dtype());
}

array GptBlock::append(const array& x, Dtype dtype, array& keys, array& values, const array& positions, Dim length) const {
  const auto [q, k, v] = attn.project(astype(ln_1(x), dtype));
  keys = with_rows(keys, k, positions);
  values = with_rows(values, v, positions);
  // Row i of t new ones sees the rows up to i + length - t, which is what "causal" says; a single new row sees them all.
  const bool single = x.shape(1) == Dim(1);
  const array heads = fast::scaled_dot_product_attention(q, prefix(keys, length), prefix(values, length), attn.scale(), single ? "" : "causal");
  const array attended = x + astype(attn.merge(heads), x.dtype());
  return attended + astype(mlp(astype(ln_2(attended), dtype)), x.dtype());
}

Gpt::Gpt(const GptConfig& c, const nn::Precision& p)
    : config(checked(c)), precision(p), dtype(p.compute), wte(*this, "wte", c.vocab, c.width), wpe(*this, "wpe", c.context, c.width), drop(*this, "drop", c.dropout),
      h(*this, "h"), ln_f(*this, "ln_f", c.width, c.bias) {
  nn::check("Gpt", precision);
  for (int64_t layer = 0; layer < c.layers; ++layer) h.add(c);
  if (!c.tied_head) lm_head.emplace(*this, "lm_head", c.width, c.vocab, false);
  initialise();
  set_dtype(precision.parameters);
}

void Gpt::initialise() {
  const float residual = start_deviation / std::sqrt(2 * static_cast<float>(config.layers));
  for (auto& [name, module] : named_modules()) {
    if (auto* embedding = dynamic_cast<nn::Embedding*>(module)) fill(embedding->weight, start_deviation);
    auto* linear = dynamic_cast<nn::Linear*>(module);
    if (!linear) continue;
    fill(linear->weight, name.ends_with("c_proj") ? residual : start_deviation);
    if (linear->bias) fill(*linear->bias, 0);
  }
}

std::string Gpt::describe() const {
  return "Gpt(vocab=" + std::to_string(config.vocab) + ", context=" + std::to_string(config.context) + ", layers=" + std::to_string(config.layers) +
         ", heads=" + std::to_string(config.heads) + ", width=" + std::to_string(config.width) + ", " + to_string(precision) + ")";
}

array Gpt::head(const array& x) const {
  const array normed = astype(ln_f(x), dtype);
  return lm_head ? (*lm_head)(normed) : wte.as_linear(normed);
}

array Gpt::logits(const array& ids) const {
  if (ids.ndim() != 2) throw_invalid("Gpt.logits", "ids must be [batch, time]; their shape is " + to_string(ids.shape()));
  const Dim time = ids.shape(1);
  if (time.bound() > config.context)
    throw_invalid("Gpt.logits", std::to_string(time.bound()) + " tokens do not fit the context of " + std::to_string(config.context));
  // Positions are 0, 1, …: a slice, whose gradient is a copy.
  const array places = slice(wpe.weight, {0, 0}, {time, config.width});
  array x = drop(astype(wte(ids), precision.residual) + astype(places, precision.residual));
  for (size_t layer = 0; layer < h.size(); ++layer) {
    const auto block = [&](const std::vector<array>& a) { return std::vector<array>{h[layer](a[0], dtype)}; };
    x = checkpoint_blocks ? checkpoint(block)({x})[0] : block({x})[0];
  }
  return head(x);
}

array Gpt::token_losses(const array& ids, const array& targets) const {
  return nn::losses::cross_entropy(logits(ids), targets, nn::losses::Reduction::none);
}

array Gpt::loss(const array& ids, const array& targets) const { return nn::losses::cross_entropy(logits(ids), targets); }

array Gpt::append(const array& ids, const array& positions, Dim length, GptCache& cache) const {
  if (ids.ndim() != 2 || ids.shape(0) != Dim(1)) throw_invalid("Gpt.append", "ids must be [1, time]; their shape is " + to_string(ids.shape()));
  const Dim time = ids.shape(1);
  if (positions.shape() != Shape{time})
    throw_invalid("Gpt.append", "there must be one position for each of the ids " + to_string(ids.shape()) + "; got " + to_string(positions.shape()));
  array x = astype(wte(ids), precision.residual) + astype(wpe(positions), precision.residual);
  for (size_t layer = 0; layer < h.size(); ++layer) x = h[layer].append(x, dtype, cache.keys[layer], cache.values[layer], positions, length);
  x = reshape(last_row(x, positions), {1, 1, config.width});
  return astype(reshape(head(x), {config.vocab}), float32);
}

}  // namespace weft::models
