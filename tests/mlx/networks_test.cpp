// nn: tests/mlx/generate/networks.py.
#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::test {
namespace {

using Activation = std::function<array(const array&)>;
namespace losses = nn::losses;
using losses::Reduction;

Arrays joined(std::initializer_list<Arrays> lists) {
  Arrays all;
  for (const Arrays& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

array slope(const Activation& f, const array& x) {
  return gradient([&](const Arrays& a) { return f(a[0]); }, {x})[0];
}

std::vector<Assertion> activations() {
  using A = const array&;
  const std::pair<const char*, Activation> plain[] = {{"celu", [](A x) { return nn::celu(x); }},
                                                      {"elu", [](A x) { return nn::elu(x); }},
                                                      {"gelu", nn::gelu},
                                                      {"gelu_approx", nn::gelu_approx},
                                                      {"gelu_fast_approx", nn::gelu_fast_approx},
                                                      {"glu", [](A x) { return nn::glu(x); }},
                                                      {"hard_shrink", [](A x) { return nn::hard_shrink(x); }},
                                                      {"hard_tanh", [](A x) { return nn::hard_tanh(x); }},
                                                      {"hardswish", nn::hardswish},
                                                      {"leaky_relu", [](A x) { return nn::leaky_relu(x); }},
                                                      {"log_sigmoid", nn::log_sigmoid},
                                                      {"log_softmax", [](A x) { return nn::log_softmax(x); }},
                                                      {"mish", nn::mish},
                                                      {"relu", nn::relu},
                                                      {"relu2", nn::relu2},
                                                      {"relu6", nn::relu6},
                                                      {"selu", nn::selu},
                                                      {"sigmoid", nn::sigmoid},
                                                      {"silu", nn::silu},
                                                      {"softmax", [](A x) { return nn::softmax(x); }},
                                                      {"softmin", [](A x) { return nn::softmin(x); }},
                                                      {"softplus", nn::softplus},
                                                      {"softshrink", [](A x) { return nn::softshrink(x); }},
                                                      {"softsign", nn::softsign},
                                                      {"tanh", nn::tanh}};
  std::vector<Assertion> cases;
  for (const auto& [name, f] : plain)
    // MLX rounds every step of a float16 activation, Weft the result alone.
    cases.push_back({std::string("activation ") + name,
                     [f = f](const Arrays& in) {
                       return Arrays{f(in[0]), f(astype(in[0], float16)), slope(f, in[0])};
                     },
                     {16, 4, false}});
  cases.push_back({"activations with numbers",
                   [](const Arrays& in) {
                     A x = in[0];
                     return Arrays{nn::celu(x, 0.5f),
                                   nn::elu(x, 2.0f),
                                   nn::hard_shrink(x, 1.0f),
                                   nn::hard_tanh(x, -0.5f, 0.25f),
                                   nn::leaky_relu(x, 0.2f),
                                   nn::softshrink(x, 1.5f),
                                   nn::glu(x, 1),
                                   nn::log_softmax(x, 0),
                                   nn::softmin(x, 0),
                                   nn::prelu(x, array({0.25f}))};
                   },
                   {16, 4, false}});
  cases.push_back({"step", [](const Arrays& in) { return Arrays{nn::step(in[0]), nn::step(in[0], 0.5f)}; }});
  cases.push_back({"kinks",
                   [](const Arrays& in) {
                     const Activation kinked[] = {nn::relu,
                                                  nn::relu2,
                                                  nn::relu6,
                                                  [](A x) { return nn::leaky_relu(x); },
                                                  [](A x) { return nn::elu(x); },
                                                  [](A x) { return nn::hard_tanh(x); },
                                                  nn::hardswish,
                                                  [](A x) { return nn::softshrink(x); },
                                                  [](A x) { return nn::hard_shrink(x); },
                                                  [](A x) { return nn::celu(x); }};
                     Arrays all;
                     for (const Activation& f : kinked) all.push_back(f(in[0])), all.push_back(slope(f, in[0]));
                     return all;
                   },
                   {16, 8, false}});
  return cases;
}

// The result by default, and with each reduction.
template <class F>
Arrays each_reduction(array by_default, F with) {
  return {std::move(by_default), with(Reduction::none), with(Reduction::mean), with(Reduction::sum)};
}

std::vector<Assertion> distances() {
  using Loss = std::function<array(const array&, const array&, std::optional<Reduction>)>;
  const std::pair<const char*, Loss> plain[] = {
      {"l1_loss", [](auto& p, auto& t, auto r) { return r ? losses::l1_loss(p, t, *r) : losses::l1_loss(p, t); }},
      {"mse_loss", [](auto& p, auto& t, auto r) { return r ? losses::mse_loss(p, t, *r) : losses::mse_loss(p, t); }},
      {"smooth_l1_loss",
       [](auto& p, auto& t, auto r) { return r ? losses::smooth_l1_loss(p, t, 1, *r) : losses::smooth_l1_loss(p, t); }},
      {"huber_loss",
       [](auto& p, auto& t, auto r) { return r ? losses::huber_loss(p, t, 1, *r) : losses::huber_loss(p, t); }},
      {"log_cosh_loss",
       [](auto& p, auto& t, auto r) { return r ? losses::log_cosh_loss(p, t, *r) : losses::log_cosh_loss(p, t); }}};
  std::vector<Assertion> cases;
  for (const auto& [name, f] : plain)
    cases.push_back({name,
                     [f = f](const Arrays& in) {
                       const array& t = in[1];
                       return joined(
                           {each_reduction(f(in[0], t, std::nullopt), [&](Reduction r) { return f(in[0], t, r); }),
                            {slope([&](const array& a) { return f(a, t, Reduction::mean); }, in[0])}});
                     },
                     {16, 4, false}});
  return cases;
}

const std::vector<Assertion> other_losses = {
    {"cross_entropy",
     [](const Arrays& in) {
       const array &p = in[0], &c = in[1], &w = in[2];
       return joined(
           {each_reduction(losses::cross_entropy(p, c), [&](Reduction r) { return losses::cross_entropy(p, c, r); }),
            {losses::cross_entropy(p, c, {.weights = w}), losses::cross_entropy(p, c, {.label_smoothing = 0.1f}),
             losses::cross_entropy(p, c, {.label_smoothing = 0.2f, .reduction = Reduction::mean}),
             losses::cross_entropy(transpose(p), c, {.axis = 0}),
             slope([&](const array& a) { return losses::cross_entropy(a, c); }, p)}});
     },
     {16, 4, false}},
    {"cross_entropy of probabilities",
     [](const Arrays& in) {
       return Arrays{losses::cross_entropy(in[0], in[1]),
                     losses::cross_entropy(in[0], in[1], {.label_smoothing = 0.1f}),
                     losses::cross_entropy(in[0], in[1], {.reduction = Reduction::mean})};
     },
     {16, 4, false}},
    {"binary_cross_entropy",
     [](const Arrays& in) {
       const array &p = in[0], &t = in[1], &q = in[2];
       return joined({each_reduction(losses::binary_cross_entropy(p, t),
                                     [&](Reduction r) { return losses::binary_cross_entropy(p, t, {.reduction = r}); }),
                      {losses::binary_cross_entropy(q, t, {.with_logits = false}),
                       losses::binary_cross_entropy(p, t, {.weights = q}),
                       slope([&](const array& a) { return losses::binary_cross_entropy(a, t); }, p)}});
     },
     {16, 4, false}},
    {"losses with numbers",
     [](const Arrays& in) {
       return Arrays{losses::smooth_l1_loss(in[0], in[1], 0.5f), losses::huber_loss(in[0], in[1], 0.3f)};
     },
     {16, 4, false}},
    {"nll_loss",
     [](const Arrays& in) {
       return each_reduction(losses::nll_loss(in[0], in[1]),
                             [&](Reduction r) { return losses::nll_loss(in[0], in[1], -1, r); });
     }},
    {"gaussian_nll_loss",
     [](const Arrays& in) {
       return joined({each_reduction(
                          losses::gaussian_nll_loss(in[0], in[1], in[2]),
                          [&](Reduction r) { return losses::gaussian_nll_loss(in[0], in[1], in[2], false, 1e-6f, r); }),
                      {losses::gaussian_nll_loss(in[0], in[1], in[2], true)}});
     },
     {16, 4, false}},
    {"kl_div_loss",
     [](const Arrays& in) {
       return each_reduction(losses::kl_div_loss(in[0], in[1]),
                             [&](Reduction r) { return losses::kl_div_loss(in[0], in[1], -1, r); });
     }},
    {"triplet_loss",
     [](const Arrays& in) {
       return joined(
           {each_reduction(losses::triplet_loss(in[0], in[1], in[2]),
                           [&](Reduction r) { return losses::triplet_loss(in[0], in[1], in[2], -1, 2, 1, 1e-6f, r); }),
            {losses::triplet_loss(in[0], in[1], in[2], -1, 1, 0.5f)}});
     },
     {16, 4, false}},
    {"hinge_loss",
     [](const Arrays& in) {
       return each_reduction(losses::hinge_loss(in[0], in[1]),
                             [&](Reduction r) { return losses::hinge_loss(in[0], in[1], r); });
     }},
    {"cosine_similarity_loss",
     [](const Arrays& in) {
       return each_reduction(losses::cosine_similarity_loss(in[0], in[1]),
                             [&](Reduction r) { return losses::cosine_similarity_loss(in[0], in[1], 1, 1e-8f, r); });
     }},
    {"margin_ranking_loss",
     [](const Arrays& in) {
       return joined(
           {each_reduction(losses::margin_ranking_loss(in[0], in[1], in[2]),
                           [&](Reduction r) { return losses::margin_ranking_loss(in[0], in[1], in[2], 0, r); }),
            {losses::margin_ranking_loss(in[0], in[1], in[2], 0.5f)}});
     }},
};

// A case of its own random sequence: started with the seed that the generator starts MLX's with.
Assertion seeded(const std::string& name, std::function<Arrays(const Arrays&)> call, Bound bound = {64, 4, false}) {
  auto start = [call = std::move(call)](const Arrays& in) {
    random::seed(17);
    Arrays results = call(in);
    eval(results);
    return results;
  };
  return {name, start, bound, false};
}

std::vector<Assertion> initial_values() {
  const Shape shape{6, 4};
  const std::pair<const char*, std::function<array()>> makers[] = {
      {"normal", [=] { return nn::init::normal(shape, 1.0f, 0.5f); }},
      {"uniform", [=] { return nn::init::uniform(shape, -1.0f, 2.0f); }},
      {"glorot_normal", [=] { return nn::init::glorot_normal(shape); }},
      {"glorot_uniform", [=] { return nn::init::glorot_uniform(shape, 2.0f); }},
      {"he_normal", [=] { return nn::init::he_normal(shape); }},
      {"he_uniform", [=] { return nn::init::he_uniform(shape, nn::init::Fan::out); }},
      {"constant", [=] { return nn::init::constant(shape, 3.0f); }},
      {"sparse", [=] { return nn::init::sparse(shape, 0.4f); }},
      {"orthogonal", [=] { return nn::init::orthogonal(shape, 2.0f); }},
      {"identity", [] {
         return nn::init::identity({3, 3});
       }}};
  std::vector<Assertion> cases;
  for (const auto& [name, make] : makers)
    cases.push_back(seeded(std::string("init ") + name, [make = make](const Arrays&) { return Arrays{make()}; }));
  return cases;
}

template <class Make>
Assertion layer(const std::string& name, Make make) {
  return seeded("layer " + name, [make](const Arrays& in) {
    auto made = make();
    return Arrays{made(in[0])};
  });
}

nn::UpsampleOptions linear(bool align) {
  nn::UpsampleOptions options{.mode = nn::UpsampleOptions::Mode::linear, .align_corners = align};
  if (!align) options.scale = {1.5, 2};
  return options;
}

std::vector<Assertion> layers() {
  using A = const Arrays&;
  return {
      layer("Linear", [] { return nn::Linear(8, 3); }),
      layer("Linear without bias", [] { return nn::Linear(8, 3, false); }),
      seeded("layer Bilinear", [](A in) { return Arrays{nn::Bilinear(8, 8, 3)(in[0], in[1])}; }),
      layer("Embedding", [] { return nn::Embedding(9, 4); }),
      layer("Conv1d", [] { return nn::Conv1d(8, 4, 3, {.padding = {1}}); }),
      layer("Conv2d",
            [] {
              return nn::Conv2d(4, 6, {3, 2}, {.stride = {2, 1}, .padding = {1}});
            }),
      layer("Conv3d", [] { return nn::Conv3d(2, 3, {2}); }),
      layer("ConvTranspose1d", [] { return nn::ConvTranspose1d(8, 4, 3, {.stride = {2}}); }),
      layer("ConvTranspose2d", [] { return nn::ConvTranspose2d(4, 3, {3}, {.stride = {2}, .padding = {1}}); }),
      layer("ConvTranspose3d", [] { return nn::ConvTranspose3d(2, 3, {2}); }),
      layer("MaxPool1d", [] { return nn::MaxPool1d(); }),
      layer("MaxPool2d", [] { return nn::MaxPool2d({.kernel = {3}, .stride = {2}, .padding = {1}}); }),
      layer("MaxPool3d", [] { return nn::MaxPool3d(); }),
      layer("AvgPool1d", [] { return nn::AvgPool1d(); }),
      layer("AvgPool2d", [] { return nn::AvgPool2d({.kernel = {3}, .stride = {2}, .padding = {1}}); }),
      layer("AvgPool3d", [] { return nn::AvgPool3d(); }),
      seeded("layer Upsample",
             [](A in) {
               using Mode = nn::UpsampleOptions::Mode;
               const array& x = in[0];
               return Arrays{nn::Upsample()(x),
                             nn::Upsample(linear(false))(x),
                             nn::Upsample(linear(true))(x),
                             nn::Upsample({.scale = {1.5}, .mode = Mode::cubic})(x),
                             nn::Upsample({.scale = {0.5}})(x),
                             nn::Upsample({.scale = {0.6}})(x)};
             }),
      layer("LayerNorm", [] { return nn::LayerNorm(8); }),
      layer("RMSNorm", [] { return nn::RMSNorm(8); }),
      layer("InstanceNorm", [] { return nn::InstanceNorm(4); }),
      layer("BatchNorm", [] { return nn::BatchNorm(4); }),
      layer("RNN", [] { return nn::RNN(8, 4); }),
      layer("GRU", [] { return nn::GRU(8, 4); }),
      seeded("layer LSTM",
             [](A in) {
               auto [hidden, cell] = nn::LSTM(8, 4).run(in[0]);
               return Arrays{hidden, cell};
             }),
      seeded("layer MultiHeadAttention",
             [](A in) { return Arrays{nn::MultiHeadAttention(8, 2)(in[0], in[0], in[0])}; }),
      layer("TransformerEncoderLayer", [] { return nn::TransformerEncoderLayer(8, 2); }),
      layer("TransformerEncoder", [] { return nn::TransformerEncoder(2, 8, 2); }),
      seeded("layer TransformerDecoderLayer",
             [](A in) { return Arrays{nn::TransformerDecoderLayer(8, 2)(in[0], in[1])}; }),
      seeded("layer RoPE",
             [](A in) {
               return Arrays{nn::RoPE(8)(in[0]), nn::RoPE(4, {.traditional = true})(in[0], 3)};
             }),
      layer("SinusoidalPositionalEncoding", [] { return nn::SinusoidalPositionalEncoding(8); }),
      seeded("layer Dropout",
             [](A in) {
               return Arrays{nn::Dropout(0.3f)(in[0]), nn::Dropout2d(0.5f)(in[0])};
             }),
      layer("PReLU", [] { return nn::PReLU(); }),
      seeded("layer GroupNorm",
             [](A in) {
               return Arrays{nn::GroupNorm(2, 4)(in[0]), nn::GroupNorm(2, 4, {.pytorch_compatible = true})(in[0])};
             }),
  };
}

}  // namespace

TEST_CASE("activations and losses as in MLX") {
  std::vector<Assertion> all = activations();
  for (const auto& more : {distances(), other_losses}) all.insert(all.end(), more.begin(), more.end());
  check_assertions("functions", all);
}

TEST_CASE("initial values and layers from a seed as in MLX") {
  std::vector<Assertion> all = initial_values();
  for (Assertion& a : layers()) all.push_back(std::move(a));
  check_assertions("layers", all);
}

}  // namespace weft::test
