#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "graph/build.h"
#include "models/gpt.h"
#include "models/support.h"
#include "runtime/trace.h"
#include "weft/compile.h"
#include "weft/data.h"
#include "weft/optim.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::models;
using namespace weft::models::testing;

namespace {

const GptConfig tiny{.vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 16};

optim::AdamW golden_optimizer(Gpt& model) {
  return optim::AdamW(model.trainable_parameters(), {.learning_rate = 1e-2f,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.99,
                                                     .weight_decay = 0.1,
                                                     .decays = optim::is_matrix,
                                                     .bias_correction = true});
}

const std::vector<float> golden_losses{2.546721f, 2.3465712f, 2.2415445f, 2.1606905f, 2.0826797f, 2.0121963f};

std::vector<float> row(const array& logits, int64_t time, int64_t vocab) {
  const auto all = logits.to_vector<float>();
  return {all.begin() + time * vocab, all.begin() + (time + 1) * vocab};
}

}  // namespace

TEST_CASE("config: JSON there and back, and sentences for what is wrong") {
  const GptConfig config{.vocab = 65,
                         .context = 64,
                         .layers = 4,
                         .heads = 4,
                         .width = 128,
                         .dropout = 0.125f,
                         .bias = false,
                         .tied_head = false};
  CHECK(gpt_config_from_json(to_json(config)) == config);
  CHECK(gpt_config_from_json("{}") == GptConfig{});
  for (const char* text :
       {"", "[]", "{\"layers\": 0}", "{\"layers\": 1.5}", "{\"layers\": \"2\"}", "{\"width\": 10, \"heads\": 3}",
        "{\"dropout\": 1}", "{\"dropout\": true}", "{\"bias\": 1}", "{\"wdith\": 64}", "{\"vocab\": 3000000000}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(gpt_config_from_json(text), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(Gpt(GptConfig{.heads = 5}), "[GptConfig] width 768 must be a multiple of heads 5",
                       std::invalid_argument);
}

TEST_CASE("parameters: GPT-2's names and numbers") {
  Gpt model(tiny);
  std::vector<std::string> names;
  for (auto& p : model.parameters()) names.push_back(p.first);
  REQUIRE(names.size() == 2 + 2 * 12 + 2);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 14) ==
        std::vector<std::string>{"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias",
                                 "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight",
                                 "h.0.attn.c_proj.bias", "h.0.ln_2.weight", "h.0.ln_2.bias", "h.0.mlp.c_fc.weight",
                                 "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight", "h.0.mlp.c_proj.bias"});
  CHECK(names.back() == "ln_f.bias");
  const auto count = [](const GptConfig& c) {
    const int64_t w = c.width, b = c.bias ? 1 : 0, block = 12 * w * w + 2 * w + b * (2 * w + 3 * w + w + 4 * w + w);
    return c.vocab * w * (c.tied_head ? 1 : 2) + c.context * w + c.layers * block + w + b * w;
  };
  CHECK(model.num_parameters() == count(tiny));
  CHECK(Gpt(GptConfig{}).num_parameters() == 124475904);  // GPT-2 small with its vocabulary padded to 50304
  GptConfig bare = tiny;
  bare.bias = bare.tied_head = false;
  CHECK(Gpt(bare).num_parameters() == count(bare));
  std::ostringstream os;
  os << model;
  CHECK(os.str().starts_with(
      "Gpt(vocab=11, context=8, layers=2, heads=2, width=16, float32)\n  wte: Embedding(11, 16)\n"));
}

TEST_CASE("shapes, dtypes and mistakes") {
  Gpt model(tiny), half(tiny, bfloat16);
  const array ids = zeros({3, 5}, int32);
  CHECK(model.logits(ids).shape() == Shape{3, 5, 11});
  CHECK(model.logits(ids).dtype() == float32);
  CHECK(model.token_losses(ids, ids).shape() == Shape{3, 5});
  CHECK(model.loss(ids, ids).shape() == Shape{});
  CHECK(half.logits(ids).dtype() == bfloat16);
  CHECK(half.loss(ids, ids).dtype() == float32);
  for (auto& p : half.parameters()) CHECK(p.second->dtype() == float32);
  CHECK_THROWS_WITH_AS(model.logits(zeros({1, 9}, int32)), "[Gpt.logits] 9 tokens do not fit the context of 8",
                       std::invalid_argument);
  CHECK_THROWS_AS(model.logits(zeros({5}, int32)), std::invalid_argument);
  CHECK_THROWS_AS(Gpt(tiny, int32), std::invalid_argument);
}

TEST_CASE("starting values: GPT-2's deviations, and a loss near ln(vocab)") {
  random::seed(1);
  Gpt model({.vocab = 65, .context = 32, .layers = 2, .heads = 4, .width = 64});
  std::map<std::string, double> expected{{"wte.weight", 0.02},
                                         {"wpe.weight", 0.02},
                                         {"h.1.attn.c_attn.weight", 0.02},
                                         {"h.0.attn.c_proj.weight", 0.01},
                                         {"h.1.mlp.c_proj.weight", 0.01},
                                         {"h.0.mlp.c_fc.bias", 0},
                                         {"h.0.ln_1.bias", 0}};
  for (auto& [name, handle] : model.parameters()) {
    if (!expected.count(name)) continue;
    const auto& captured = name;  // clang 14 takes no binding of a structure into a lambda
    CAPTURE(captured);
    double sum = 0;
    for (const float v : handle->to_vector<float>()) sum += static_cast<double>(v) * v;
    const double deviation = std::sqrt(sum / static_cast<double>(handle->size()));
    CHECK(std::abs(deviation - expected[name]) <= 0.05 * expected[name]);
  }
  std::vector<int32_t> ids(64);
  for (size_t i = 0; i < 64; ++i) ids[i] = static_cast<int32_t>((i * 29) % 65);
  std::vector<int32_t> next(64);  // not the ids themselves: those a tied head favours from the start
  for (size_t i = 0; i < 64; ++i) next[i] = static_cast<int32_t>((i * 23 + 7) % 65);
  CHECK(std::abs(model.loss(ints(ids, {2, 32}), ints(next, {2, 32})).item<float>() - std::log(65.0)) < 0.15);
}

TEST_CASE("the same weights give PyTorch's logits and gradient norm") {
  Gpt model(tiny);
  set_weights(model, "ln_");
  const auto [x, y] = golden_batch();
  const std::vector<float> expected{-0.5690928f, -0.3964826f, -0.1721473f, 0.07464629f, 0.3117016f, 0.5080922f,
                                    0.6381972f,  0.6850429f,  0.6425179f,  0.5161698f,  0.3224824f};
  CHECK(largest_difference(row(model.logits(x), 8 + 5, 11), expected) < 2e-5);
  auto [loss, slopes] =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); })({x, y});
  CHECK(loss.item<float>() == doctest::Approx(golden_losses[0]).epsilon(1e-6));
  CHECK(optim::clip_grad_norm(slopes, 1.0f).second.item<float>() == doctest::Approx(1.1832528).epsilon(1e-5));
}

TEST_CASE("training gives PyTorch's losses: AdamW with decay groups and clipping, compiled") {
  Gpt model(tiny);
  set_weights(model, "ln_");
  auto optimizer = golden_optimizer(model);
  auto state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const auto loss_and_grads =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  const auto step = compile(
      [&](const std::vector<array>& in) {
        auto [loss, slopes] = loss_and_grads(in);
        optimizer.update(optim::clip_grad_norm(slopes, 1.0f).first);
        return std::vector<array>{loss};
      },
      {.state = state});
  const auto [x, y] = golden_batch();
  for (const float expected : golden_losses)
    CHECK(step({x, y})[0].item<float>() == doctest::Approx(expected).epsilon(2e-5));
}

TEST_CASE("bfloat16 products: near float32") {
  Gpt model(tiny), half(tiny, bfloat16);
  set_weights(model, "ln_");
  set_weights(half, "ln_");
  const auto [x, y] = golden_batch();
  const float full_loss = model.loss(x, y).item<float>(), half_loss = half.loss(x, y).item<float>();
  CHECK(half_loss != full_loss);
  CHECK(std::abs(half_loss - full_loss) < 0.02);
}

TEST_CASE("precision: what is kept and what is computed in which dtype") {
  const nn::Precision half{.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16};
  Gpt model(tiny, half), plain(tiny);
  set_weights(model, "ln_");
  set_weights(plain, "ln_");
  for (auto& p : model.parameters()) CHECK(p.second->dtype() == bfloat16);
  const auto [x, y] = golden_batch();
  CHECK(model.logits(x).dtype() == bfloat16);
  CHECK(model.loss(x, y).dtype() == float32);
  CHECK(std::abs(model.loss(x, y).item<float>() - plain.loss(x, y).item<float>()) < 0.02);
  auto [loss, slopes] =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); })({x, y});
  for (auto& g : slopes) CHECK(g.dtype() == bfloat16);
  CHECK(model.describe() == "Gpt(vocab=11, context=8, layers=2, heads=2, width=16, bfloat16)");
  CHECK(Gpt(tiny, bfloat16).describe() ==
        "Gpt(vocab=11, context=8, layers=2, heads=2, width=16, bfloat16, parameters float32, residual float32)");
  CHECK_THROWS_WITH_AS(
      Gpt(tiny, nn::Precision{.compute = float32, .residual = bfloat16}),
      "[Gpt] matmuls in float32 cannot be added to a residual stream in bfloat16: take float32 for it, or float32",
      std::invalid_argument);
}

TEST_CASE("linear layers in 8-bit floats: near bfloat16 where the number of tokens fits, elsewhere the same") {
  Gpt plain(tiny, bfloat16), eight(tiny, nn::Precision{.compute = bfloat16, .float8 = true});
  set_weights(plain, "ln_");
  set_weights(eight, "ln_");
  CHECK(eight.describe().find("bfloat16, parameters float32, residual float32, linear layers float8") !=
        std::string::npos);
  CHECK_THROWS_AS(
      Gpt(tiny, nn::Precision{.parameters = float64, .compute = float64, .residual = float64, .float8 = true}),
      std::invalid_argument);
  const auto [odd, odd_targets] = golden_batch();  // 24 tokens
  CHECK(eight.loss(odd, odd_targets).item<float>() == plain.loss(odd, odd_targets).item<float>());
  std::vector<int32_t> tokens;
  for (int k = 0; k < 32; ++k) tokens.push_back(k * k * 7 % 11);
  const array x = ints(tokens, {4, 8});
  const auto learn = [&](Gpt& model) {
    return nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[0]); })({x});
  };
  const auto [loss, slopes] = learn(plain);
  const auto [loss8, slopes8] = learn(eight);
  CHECK(loss8.item<float>() != loss.item<float>());
  CHECK(std::abs(loss8.item<float>() - loss.item<float>()) < 0.03);
  array together = array(0.0f), of_plain = array(0.0f), of_eight = array(0.0f);
  for (size_t k = 0; k < slopes.size(); ++k) {
    together = together + sum(slopes[k] * slopes8[k]);
    of_plain = of_plain + sum(square(slopes[k]));
    of_eight = of_eight + sum(square(slopes8[k]));
  }
  CHECK(together.item<float>() / std::sqrt(of_plain.item<float>() * of_eight.item<float>()) > 0.98f);
}

TEST_CASE("an untied head has weights of its own") {
  GptConfig config = tiny;
  config.tied_head = false;
  Gpt model(config);
  CHECK(model.parameters().back().first == "lm_head.weight");
  CHECK(model.logits(zeros({1, 3}, int32)).shape() == Shape{1, 3, 11});
  model.update({{"lm_head.weight", zeros({11, 16})}}, false);
  CHECK(model.logits(zeros({1, 2}, int32)).to_vector<float>() == std::vector<float>(22, 0.0f));
}

TEST_CASE("dropout: on in training only") {
  GptConfig config = tiny;
  config.dropout = 0.2f;
  random::seed(5);
  Gpt model(config), plain(tiny);
  set_weights(model, "ln_");
  set_weights(plain, "ln_");
  const auto [x, y] = golden_batch();
  const float a = model.loss(x, y).item<float>(), b = model.loss(x, y).item<float>();
  CHECK(a != b);
  model.eval();
  CHECK(model.loss(x, y).item<float>() == doctest::Approx(plain.loss(x, y).item<float>()));
  CHECK(model.loss(x, y).item<float>() == model.loss(x, y).item<float>());
}

TEST_CASE("a later token does not change earlier logits") {
  Gpt model(tiny);
  set_weights(model, "ln_");
  const auto a = model.logits(ints({1, 2, 3, 4}, {1, 4})).to_vector<float>(),
             b = model.logits(ints({1, 2, 3, 9}, {1, 4})).to_vector<float>();
  CHECK(largest_difference({a.begin(), a.begin() + 33}, {b.begin(), b.begin() + 33}) == 0);
  CHECK(largest_difference({a.begin() + 33, a.end()}, {b.begin() + 33, b.end()}) > 1e-3);
}

TEST_CASE("a tiny batch is learned by heart") {
  random::seed(2);
  Gpt model(tiny);
  optim::Adam optimizer(model.trainable_parameters(), {.learning_rate = 1e-2f, .bias_correction = true});
  auto state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const auto loss_and_grads =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  int traced = 0;
  const auto step = compile(
      [&](const std::vector<array>& in) {
        ++traced;
        auto [loss, slopes] = loss_and_grads(in);
        optimizer.update(slopes);
        return std::vector<array>{loss};
      },
      {.state = state});
  const auto [x, y] = golden_batch();
  float loss = 0;
  for (int k = 0; k < 150; ++k) loss = step({x, y})[0].item<float>();
  CHECK(loss < 0.05f);
  CHECK(traced == 1);
}

TEST_CASE("decoding with a cache gives the logits of the whole text at every place") {
  for (const auto& way : {std::pair{float32, false}, {bfloat16, false}, {float32, true}, {bfloat16, true}}) {
    const Dtype dtype = way.first;
    const bool fixed = way.second;
    CAPTURE(dtype_name(dtype));
    CAPTURE(fixed);
    Gpt model(tiny, dtype);
    set_weights(model, "ln_");
    const std::vector<int32_t> text{3, 1, 4, 1, 5, 9, 2, 6};
    const array all = astype(model.logits(ints(text, {1, 8})), float32);
    all.eval();
    const double tolerance = dtype == float32 ? 1e-4 : 0.03;
    Decoder decoder(model, {.fixed_shapes = fixed});
    decoder.prefill(std::span(text).first(2));
    decoder.append(text[2]);
    const int64_t traces = runtime::counters().traces, programs = runtime::counters().programs_built;
    for (size_t prompt = 1; prompt <= text.size(); ++prompt) {
      CAPTURE(prompt);
      auto logits = decoder.prefill(std::span(text).first(prompt));
      CHECK(decoder.length() == static_cast<int64_t>(prompt));
      CHECK(largest_difference(logits, row(all, static_cast<int64_t>(prompt) - 1, 11)) < tolerance);
      for (size_t k = prompt; k < text.size(); ++k) {
        logits = decoder.append(text[k]);
        CHECK(largest_difference(logits, row(all, static_cast<int64_t>(k), 11)) < tolerance);
      }
    }
    CHECK(runtime::counters().traces == traces);  // two programs serve all lengths
    CHECK(runtime::counters().programs_built == programs);
  }
}

TEST_CASE("greedy tokens, chosen in the program or on the host, across the end of the context") {
  Gpt model(tiny);
  set_weights(model, "ln_");
  const std::vector<int32_t> prompt{3, 1};
  for (const bool fixed : {false, true}) {
    Decoder decoder(model, {.fixed_shapes = fixed}), stepwise(model);
    decoder.prefill(prompt);
    stepwise.prefill(prompt);
    std::vector<int32_t> expected;
    int32_t id = 7;
    for (int k = 0; k < 21; ++k) {
      const auto logits = stepwise.append(id);
      id = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      expected.push_back(id);
    }
    std::vector<int32_t> written = decoder.generate_greedy(7, 5);
    const auto rest = decoder.generate_greedy(written.back(), 16);
    written.insert(written.end(), rest.begin(), rest.end());
    CHECK(written == expected);
    CHECK(decoder.length() == stepwise.length());
    CHECK(decoder.generate_greedy(1, 0).empty());
  }
}

TEST_CASE("masters of a model in 16 bits begin with the numbers of the model in float32") {
  random::seed(5);
  Gpt exact(tiny);
  random::seed(5);
  Gpt half(tiny, {.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16});
  optim::AdamW optimizer(half.trainable_parameters());
  optimizer.set_masters(half.starting_values);
  const auto masters = optimizer.precise_parameters();
  for (const auto& [name, handle] : exact.parameters()) {
    CAPTURE(name);
    CHECK(masters.at(name).to_vector<float>() == handle->to_vector<float>());
  }
  for (const auto& [name, handle] : half.parameters())
    CHECK(astype(*handle, float32).to_vector<float>() ==
          astype(astype(masters.at(name), bfloat16), float32).to_vector<float>());
  CHECK(Gpt(tiny).starting_values.empty());
}

TEST_CASE("weights that are kept in 16 bits give the logits of weights that were rounded to 16 bits") {
  Gpt rounded(tiny, bfloat16), kept(tiny, bfloat16);
  set_weights(rounded, "ln_");
  set_weights(kept, "ln_");
  kept.set_dtype(bfloat16);
  std::unordered_map<std::string, array> values;
  for (auto& [name, handle] : kept.parameters()) {
    CHECK(handle->dtype() == bfloat16);
    values.emplace(name, *handle);
  }
  rounded.update(values);
  const std::vector<int32_t> text{3, 1, 4, 1, 5, 9};
  for (const bool fixed : {false, true}) {
    Decoder a(rounded, {.fixed_shapes = fixed}), b(kept, {.fixed_shapes = fixed});
    CHECK(largest_difference(a.prefill(text), b.prefill(text)) == 0);
    CHECK(largest_difference(a.append(2), b.append(2)) == 0);
  }
}

TEST_CASE("prompt and continuation are graphs of a symbolic length") {
  Gpt model(tiny, bfloat16);
  model.eval();
  KvCache cache = model.cache();
  const Dim n = symbol("n", 8);
  const auto argument = [](Shape shape) { return array(graph::parameter({std::move(shape), int32})); };
  const auto check_graph = [&](const array& logits) {
    CHECK(logits.shape() == Shape{11});
    CHECK(logits.dtype() == float32);
    graph::Graph whole;
    whole.outputs.push_back(logits.value());
    for (array* a : cache.state()) {
      CHECK(a->shape() == Shape{1, 4, 8, 8});  // whole, whatever the length
      CHECK(a->dtype() == bfloat16);
      whole.outputs.push_back(a->value());
    }
    for (const auto& node : graph::topological(whole.outputs))
      if (node->op() == graph::Op::parameter && !node->storage(0)) whole.inputs.push_back({node, 0});
    CHECK_NOTHROW(graph::verify(whole));
    CHECK_NOTHROW(graph::verify(graph::inline_composites(whole)));
  };
  check_graph(model.append(argument({1, n}), argument({n}), n, cache));
  check_graph(model.append(argument({1, 1}), argument({1}), n, cache));
}

TEST_CASE("a full context starts over with its last half; new weights are seen") {
  Gpt model(tiny);
  set_weights(model, "ln_");
  Decoder decoder(model);
  std::vector<int32_t> text{3, 1, 4, 1, 5, 9, 2, 6};
  decoder.prefill(text);
  const auto logits = decoder.append(7);  // now {9, 2, 6, …}: half of 8, and the new one
  CHECK(decoder.length() == 5);
  const std::vector<int32_t> rest{5, 9, 2, 6, 7};
  CHECK(largest_difference(logits, row(model.logits(ints(rest, {1, 5})), 4, 11)) < 1e-4);
  std::vector<int32_t> long_text(20);
  for (size_t i = 0; i < 20; ++i) long_text[i] = static_cast<int32_t>(i % 11);
  const auto tail = decoder.prefill(long_text);
  CHECK(decoder.length() == 8);
  CHECK(largest_difference(tail, decoder.prefill(std::span<const int32_t>(long_text).last(8))) == 0);
  model.update({{"ln_f.weight", zeros({16})}, {"ln_f.bias", zeros({16})}}, false);
  CHECK(decoder.append(1) == std::vector<float>(11, 0.0f));
  CHECK_THROWS_AS(decoder.prefill({}), std::invalid_argument);
  CHECK_THROWS_AS(Decoder(model).append(1), std::invalid_argument);
  CHECK(model.training());  // the mode is put back
}
