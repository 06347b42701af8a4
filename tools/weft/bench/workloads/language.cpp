// Transformers over tokens: Llama, GPT-2, a mixture of experts, BERT, an encoder with a decoder.
#include "models/gpt.h"
#include "models/llama.h"
#include "tools/weft/bench/workloads/model.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

nn::Precision language_precision(const Sizes& s) {
  return {.parameters = s.dtype(), .compute = s.dtype(), .residual = s.dtype()};
}

Workload text_workload(std::unique_ptr<models::TextModel> model, const Sizes& s) {
  models::TextModel* m = model.get();
  const Shape shape{s("batch"), s("time")};
  auto masters = m->starting_values;
  return {std::move(model),
          [m](const std::vector<array>& in) { return m->loss(in[0], in[1]); },
          {random_ids(s("vocab"), shape), random_ids(s("vocab"), shape)},
          std::move(masters)};
}

Workload llama_workload(const Sizes& s) {
  const int heads = s("heads"), width = s("width");
  const models::LlamaConfig config{.vocab = s("vocab"),
                                   .context = s("time"),
                                   .layers = s("layers"),
                                   .heads = heads,
                                   .kv_heads = heads,
                                   .width = width,
                                   .head_width = width / heads,
                                   .hidden = s("hidden")};
  return text_workload(std::make_unique<models::Llama>(config, language_precision(s)), s);
}

/// GPT-2, whose dropout of attention weights and elsewhere may differ.
Workload gpt_workload(const Sizes& s) {
  const models::GptConfig config{.vocab = s("vocab"),
                                 .context = s("time"),
                                 .layers = s("layers"),
                                 .heads = s("heads"),
                                 .width = s("width"),
                                 .dropout = s.number("attention_dropout")};
  auto model = std::make_unique<models::Gpt>(config, language_precision(s));
  const float dropout = s.number("dropout");
  model->drop.p = dropout;
  for (size_t i = 0; i < model->h.size(); ++i) model->h[i].attn.resid_dropout.p = model->h[i].mlp.dropout.p = dropout;
  return text_workload(std::move(model), s);
}

/// Experts of two linear layers with gelu. Every expert computes every token; the weights of all but the best ones are
/// 0.
struct Experts : nn::Module {
  Experts(nn::Module& parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)), best(s("best")), gate(*this, "gate", s("width"), s("experts"), false),
        up(*this, "up", nn::init::normal({s("experts"), s("width"), s("hidden")}, 0, 0.02f)),
        down(*this, "down", nn::init::normal({s("experts"), s("hidden"), s("width")}, 0, 0.02f)) {}
  array operator()(const array& x) const {  // [tokens, width]
    const array scores = softmax(astype(gate(x), float32), -1);
    const array chosen = where(scores >= min(topk(scores, best, -1), -1, true), scores, array(0.0f));
    const array weights = chosen / sum(chosen, -1, true);                          // [tokens, experts]
    const array y = matmul(nn::gelu_approx(matmul(expand_dims(x, 0), up)), down);  // [experts, tokens, width]
    return sum(y * astype(expand_dims(transpose(weights), -1), y.dtype()), 0);
  }
  int best;
  nn::Linear gate;
  nn::Parameter up, down;
};

struct ExpertBlock : nn::Module {
  ExpertBlock(nn::Module& parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)), ln_1(*this, "ln_1", s("width")), attn(*this, "attn", s("width"), s("heads")),
        ln_2(*this, "ln_2", s("width")), experts(*this, "experts", s) {}
  array operator()(const array& x) const {
    const array attended = x + attn(ln_1(x)), flat = reshape(ln_2(attended), {-1, attended.shape(2)});
    return attended + reshape(experts(flat), attended.shape());
  }
  nn::LayerNorm ln_1;
  nn::CausalSelfAttention attn;
  nn::LayerNorm ln_2;
  Experts experts;
};

struct MixtureOfExperts : nn::Module {
  explicit MixtureOfExperts(const Sizes& s)
      : wte(*this, "wte", s("vocab"), s("width")), wpe(*this, "wpe", s("time"), s("width")), h(*this, "h"),
        ln_f(*this, "ln_f", s("width")), head(*this, "head", s("width"), s("vocab"), false) {
    for (int i = 0; i < s("layers"); ++i) h.add(s);
  }
  std::vector<array> batch(const Sizes& s) const {
    const Shape shape{s("batch"), s("time")};
    return {random_ids(s("vocab"), shape), random_ids(s("vocab"), shape)};
  }
  array loss(const std::vector<array>& in) const {
    array x = wte(in[0]) + wpe.weight;
    for (size_t i = 0; i < h.size(); ++i) x = h[i](x);
    return mean_cross_entropy(head(ln_f(x)), in[1]);
  }
  nn::Embedding wte, wpe;
  nn::List<ExpertBlock> h;
  nn::LayerNorm ln_f;
  nn::Linear head;
};

/// BERT: an encoder with norms after the sums; the loss is over the masked tokens.
struct Bert : nn::Module {
  explicit Bert(const Sizes& s)
      : wte(*this, "wte", s("vocab"), s("width")), wpe(*this, "wpe", s("time"), s("width")),
        ln(*this, "ln", s("width")), drop(*this, "drop", s.number("dropout")),
        encoder(*this, "encoder", s("layers"), s("width"), s("heads"),
                {.dropout = s.number("dropout"), .activation = nn::gelu, .norm_first = false}),
        transform(*this, "transform", s("width"), s("width")), ln_head(*this, "ln_head", s("width")),
        head(*this, "head", s("width"), s("vocab")) {}
  std::vector<array> batch(const Sizes& s) const {
    const Shape shape{s("batch"), s("time")};
    const array masked = astype(random_ids(7, shape) == array(0), float32);
    return {random_ids(s("vocab"), shape), random_ids(s("vocab"), shape), masked};
  }
  array loss(const std::vector<array>& in) const {
    const array x = encoder(drop(ln(wte(in[0]) + wpe.weight)));
    const array losses = nn::losses::cross_entropy(head(ln_head(nn::gelu(transform(x)))), in[1]);
    return sum(losses * in[2]) / maximum(sum(in[2]), array(1.0f));
  }
  nn::Embedding wte, wpe;
  nn::LayerNorm ln;
  nn::Dropout drop;
  nn::TransformerEncoder encoder;
  nn::Linear transform;
  nn::LayerNorm ln_head;
  nn::Linear head;
};

struct Translator : nn::Module {
  explicit Translator(const Sizes& s)
      : source(*this, "source", s("vocab"), s("width")), target(*this, "target", s("vocab"), s("width")),
        transformer(*this, "transformer", s("width"), s("heads"), s("layers"), s("layers")),
        head(*this, "head", s("width"), s("vocab")) {}
  std::vector<array> batch(const Sizes& s) const {
    const Shape shape{s("batch"), s("time")};
    return {random_ids(s("vocab"), shape), random_ids(s("vocab"), shape), random_ids(s("vocab"), shape)};
  }
  array loss(const std::vector<array>& in) const {
    const array from = source(in[0]), to = target(in[1]);
    const auto time = static_cast<int64_t>(to.shape(1));
    const array mask = nn::MultiHeadAttention::create_additive_causal_mask(time, to.dtype());
    return mean_cross_entropy(head(transformer(from, to, std::nullopt, mask)), in[2]);
  }
  nn::Embedding source, target;
  nn::Transformer transformer;
  nn::Linear head;
};

}  // namespace

void add_language_models(WorkloadMakers& makers) {
  makers["llama"] = llama_workload;
  makers["gpt"] = gpt_workload;
  makers["moe"] = workload_of<MixtureOfExperts>;
  makers["bert"] = workload_of<Bert>;
  makers["transformer"] = workload_of<Translator>;
}

}  // namespace weft::tool
