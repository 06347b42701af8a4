// Llama against numbers of a float64 implementation in PyTorch of the same weights, and a small model that was really
// trained (llama2.c's stories260K).
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/program.h"
#include "compiler/simt_target.h"
#include "models/decoder.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/support.h"
#include "weft/compile.h"
#include "weft/io.h"
#include "weft/optim.h"

using namespace weft;
using namespace weft::models;
using namespace weft::models::testing;

namespace {

const LlamaConfig tiny{
    .vocab = 11, .context = 16, .layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .head_width = 6, .hidden = 24};

std::vector<float> last_row(const array& logits) {
  const auto all = logits.to_vector<float>();
  return {all.end() - logits.shape(-1).bound(), all.end()};
}

double norm(const array& a) { return std::sqrt(static_cast<double>(sum(square(a)).item<float>())); }

/// Loss, the last row of logits, the gradients' norm, and the norm and element 3 of some gradients.
struct Golden {
  LlamaConfig config;
  double loss;
  std::vector<float> row;
  double gradients;
  struct Gradient {
    std::string name;
    double norm, third;
  };
  std::vector<Gradient> some;
};

void check_golden(const Golden& golden) {
  Llama model(golden.config);
  set_weights(model, "norm");
  const auto [x, y] = golden_batch();
  CHECK(largest_difference(last_row(model.logits(x)), golden.row) < 2e-6);
  const auto [loss, grads] =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); })({x, y});
  CHECK(loss.item<float>() == doctest::Approx(golden.loss).epsilon(2e-6));
  double total = 0;
  for (const array& g : grads) total += norm(g) * norm(g);
  CHECK(std::sqrt(total) == doctest::Approx(golden.gradients).epsilon(1e-5));
  const auto names = model.trainable_parameters();
  for (const Golden::Gradient& expected : golden.some)
    for (size_t k = 0; k < names.size(); ++k) {
      if (names[k].first != expected.name) continue;
      CAPTURE(expected.name);
      CHECK(norm(grads[k]) == doctest::Approx(expected.norm).epsilon(1e-4));
      CHECK(grads[k].to_vector<float>()[3] == doctest::Approx(expected.third).epsilon(1e-3));
    }
}

}  // namespace

TEST_CASE(
    "Llama: logits, loss and gradients of a float64 implementation, plain and with scaled positions and a tied head") {
  check_golden({tiny,
                2.3937991379378225,
                {-0.0946679f, -0.0991952f, -0.0907814f, -0.0705243f, -0.0410666f, -0.0062513f, 0.0293795f, 0.0611774f,
                 0.0849941f, 0.0977225f, 0.0977021f},
                1.1383421041287574,
                {{"model.embed_tokens.weight", 0.4729163050148164, 0.002653827805307241},
                 {"model.layers.0.self_attn.k_proj.weight", 0.029934297297253883, 4.80567431698263e-05},
                 {"model.layers.1.mlp.gate_proj.weight", 0.012494729094022246, 0.00016283885171230472},
                 {"model.layers.0.input_layernorm.weight", 0.044731346514302765, 0.014674345739757474}}});
  LlamaConfig scaled = tiny;
  scaled.rope_theta = 500;
  scaled.rope_scaling = RopeScaling{.factor = 8, .low = 1, .high = 4, .original_context = 32};
  scaled.tied_head = true;
  check_golden({scaled,
                2.417026173760616,
                {-0.0661207f, -0.0355204f, -0.000286f, 0.0349856f, 0.065693f, 0.0878301f, 0.0985089f, 0.0963362f,
                 0.0815955f, 0.0562098f, 0.023491f},
                1.1272045404447744,
                {{"model.embed_tokens.weight", 0.9043709184444777, -0.1811646495763831},
                 {"model.layers.0.self_attn.k_proj.weight", 0.018989048671817655, 0.0007492134961113978},
                 {"model.layers.1.mlp.gate_proj.weight", 0.009354013582793322, -0.00022537296280997413},
                 {"model.layers.0.input_layernorm.weight", 0.04155505190414861, 0.014836473897245602}}});
}

TEST_CASE("Llama: decoding with a cache gives the logits of the whole text at every place") {
  LlamaConfig scaled = tiny;
  scaled.rope_scaling = RopeScaling{.factor = 4, .low = 1, .high = 4, .original_context = 8};
  const std::vector<int32_t> text{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  for (const LlamaConfig& config : {tiny, scaled})
    for (const auto& way :
         {std::tuple{float32, float32, false}, {float32, float32, true}, {bfloat16, bfloat16, true}}) {
      const Dtype dtype = std::get<0>(way), kept = std::get<1>(way);
      const bool fixed = std::get<2>(way);
      CAPTURE(dtype_name(dtype));
      CAPTURE(fixed);
      Llama model(config, nn::Precision{.parameters = kept, .compute = dtype});
      set_weights(model, "norm");
      Decoder decoder(model, {.fixed_shapes = fixed});
      decoder.prefill(std::span(text).first(3));
      for (size_t k = 3; k < text.size(); ++k) {
        const auto logits = decoder.append(text[k]);
        const std::vector<int32_t> so_far(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        const auto whole =
            last_row(astype(model.logits(ints(so_far, {1, static_cast<int64_t>(so_far.size())})), float32));
        CHECK(largest_difference(logits, whole) < (dtype == float32 ? 1e-5 : 0.02));
      }
    }
}

TEST_CASE("what a GPU is given for a token writes what the CPU writes") {
  const std::vector<int32_t> prompt{3, 1, 4};
  const auto written = [&](TextModel& model) {
    Decoder decoder(model, {.fixed_shapes = true});
    decoder.prefill(prompt);
    return decoder.generate_greedy(5, 150);
  };
  Llama llama(LlamaConfig{.vocab = 96,
                          .context = 160,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .width = 64,
                          .head_width = 16,
                          .hidden = 96});
  Gpt gpt(GptConfig{.vocab = 96, .context = 160, .layers = 2, .heads = 4, .width = 64});
  for (TextModel* model : {static_cast<TextModel*>(&llama), static_cast<TextModel*>(&gpt)}) {
    for (auto& [name, handle] : model->parameters())
      *handle = *handle * array(8.0f);  // so that tokens differ by more than rounding
    const auto expected = written(*model);
    CHECK(std::set<int32_t>(expected.begin(), expected.end()).size() > 8);
    static weft::test::SimtTarget many;
    static weft::test::SimtTarget clusters(8);
    target::Target& before = compiler::default_target();
    for (target::Target* target : {static_cast<target::Target*>(&many), static_cast<target::Target*>(&clusters)}) {
      compiler::set_default_target(*target);
      const auto got = written(*model);
      compiler::set_default_target(before);
      CHECK(got == expected);
    }
  }
}

TEST_CASE("Llama learns a batch by heart in bfloat16, with blocks computed again") {
  LlamaConfig config = tiny;
  config.width = 32, config.head_width = 8, config.hidden = 64;
  Llama model(config, bfloat16);
  model.checkpoint_blocks = true;
  optim::Adam optimizer(model.trainable_parameters(), {.learning_rate = 1e-2f, .bias_correction = true});
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const auto gradients =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  const auto step = compile(
      [&](const std::vector<array>& in) {
        const auto [loss, grads] = gradients(in);
        optimizer.update(grads);
        return std::vector<array>{loss};
      },
      {.state = state});
  const auto [x, y] = golden_batch();
  float loss = 0;
  for (int k = 0; k < 120; ++k) loss = step({x, y})[0].item<float>();
  CHECK(loss < 0.1f);
}

TEST_CASE("Llama: configurations as Hugging Face writes them, and sentences for what is not here") {
  LlamaConfig config = tiny;
  config.rope_scaling = RopeScaling{};
  config.tied_head = true;
  CHECK(llama_config_from_json(to_json(config)) == config);
  CHECK(llama_config_from_json(to_json(tiny)) == tiny);
  const std::string sizes =
      R"("vocab_size": 32000, "max_position_embeddings": 4096, "num_hidden_layers": 2, "num_attention_heads": 8, )"
      R"("hidden_size": 64, "intermediate_size": 172)";
  const LlamaConfig plain =
      llama_config_from_json("{" + sizes +
                             R"(, "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rope_scaling": null, )"
                             R"("torch_dtype": "bfloat16"})");
  CHECK(plain.kv_heads == 8);
  CHECK(plain.head_width == 8);
  CHECK(plain.norm_eps == 1e-6);
  CHECK(!plain.tied_head);
  for (const char* more :
       {R"("hidden_act": "gelu")", R"("attention_bias": true)", R"("rope_scaling": {"type": "yarn", "factor": 2})",
        R"("num_key_value_heads": 3)", R"("head_dim": 7)", R"("rope_theta": "many")", R"("tie_word_embeddings": 1)",
        R"("model_type": "mistral")"}) {
    CAPTURE(more);
    CHECK_THROWS_AS(llama_config_from_json("{" + sizes + ", " + more + "}"), std::invalid_argument);
  }
  for (const char* text : {"", "[]", "{}", "{\"vocab_size\": 1.5}"})
    CHECK_THROWS_AS(llama_config_from_json(text), std::invalid_argument);
}

TEST_CASE("Llama: a folder as Hugging Face's, in one file or in parts") {
  Llama model(tiny);
  set_weights(model, "norm");
  const std::string folder = std::filesystem::temp_directory_path() / ("weft_llama_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  io::write_file_atomically(folder + "/config.json", to_json(tiny));
  std::unordered_map<std::string, array> weights;
  for (auto& [name, handle] : model.parameters()) weights.emplace(name, *handle);
  const auto [x, y] = golden_batch();
  const auto expected = last_row(model.logits(x));
  CHECK_THROWS_AS(load_llama(folder, {}), std::runtime_error);  // no weights yet
  save_safetensors(folder + "/model.safetensors", weights);
  CHECK(largest_difference(last_row(load_llama(folder, {})->logits(x)), expected) == 0);
  std::filesystem::remove(folder + "/model.safetensors");
  save_sharded_safetensors(folder, weights, 4000);
  CHECK(largest_difference(last_row(load_llama(folder, {})->logits(x)), expected) == 0);
  CHECK(load_llama(folder, {.parameters = bfloat16, .compute = bfloat16})->parameters()[0].second->dtype() == bfloat16);
  std::filesystem::remove_all(folder);
}

namespace {

/// llama2.c's first file format: seven whole numbers, then float32 arrays in a fixed order. Its rotations pair
/// neighbours; ours, as Hugging Face's, an element with the one half a head further on: the rows of the projections
/// are exchanged.
class StoriesFile {
 public:
  explicit StoriesFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    REQUIRE(in.read(reinterpret_cast<char*>(head_), sizeof head_));
    values_.resize((std::filesystem::file_size(path) - sizeof head_) / 4);
    in.read(reinterpret_cast<char*>(values_.data()), static_cast<std::streamsize>(4 * values_.size()));
  }
  LlamaConfig config() const {
    return {.vocab = std::abs(head_[5]),
            .context = head_[6],
            .layers = head_[2],
            .heads = head_[3],
            .kv_heads = head_[4],
            .width = head_[0],
            .head_width = head_[0] / head_[3],
            .hidden = head_[1],
            .tied_head = head_[5] > 0};
  }
  std::unordered_map<std::string, array> weights() {
    const LlamaConfig c = config();
    const int64_t kv = c.kv_heads * c.head_width;
    out_.emplace("model.embed_tokens.weight", take({c.vocab, c.width}));
    layers("input_layernorm.weight", {c.width});
    layers("self_attn.q_proj.weight", {c.width, c.width}, c.heads);
    layers("self_attn.k_proj.weight", {kv, c.width}, c.kv_heads);
    layers("self_attn.v_proj.weight", {kv, c.width});
    layers("self_attn.o_proj.weight", {c.width, c.width});
    layers("post_attention_layernorm.weight", {c.width});
    layers("mlp.gate_proj.weight", {c.hidden, c.width});
    layers("mlp.down_proj.weight", {c.width, c.hidden});
    layers("mlp.up_proj.weight", {c.hidden, c.width});
    out_.emplace("model.norm.weight", take({c.width}));
    return out_;
  }

 private:
  array take(const Shape& shape) {
    const array a = array::from_data(values_.data() + at_, shape, float32);
    at_ += static_cast<size_t>(num_elements(shape));
    return a;
  }
  void layers(const std::string& name, const Shape& shape, int64_t rotated_heads = 0) {
    for (int layer = 0; layer < head_[2]; ++layer) {
      array a = take(shape);
      if (rotated_heads > 0)
        a = reshape(swapaxes(reshape(a, {rotated_heads, shape[0].bound() / rotated_heads / 2, 2, shape[1]}), 1, 2),
                    shape);
      out_.emplace("model.layers." + std::to_string(layer) + "." + name, a);
    }
  }
  int32_t head_[7];
  std::vector<float> values_;
  size_t at_ = 0;
  std::unordered_map<std::string, array> out_;
};

}  // namespace

TEST_CASE("a Llama that was trained on stories tells the one that it tells elsewhere") {
  const std::string file = std::string(WEFT_TEST_DATA) + "/models/stories260K/stories260K.bin";
  if (!std::filesystem::exists(file)) {
    MESSAGE("skipped: there is no " << file);
    return;
  }
  StoriesFile stories(file);
  Llama model(stories.config());
  model.update(stories.weights());
  // "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. …", by an
  // implementation in float64.
  const std::vector<int32_t> expected{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338,
                                      401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433, 426, 385,
                                      328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266, 267,
                                      337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438, 310};
  for (const bool fixed : {false, true}) {
    Decoder decoder(model, {.fixed_shapes = fixed});
    const auto logits = decoder.prefill(std::vector<int32_t>{1});
    const auto first = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    std::vector<int32_t> told = decoder.generate_greedy(first, static_cast<int64_t>(expected.size()) - 1);
    told.insert(told.begin(), first);
    CHECK(told == expected);
  }
}
