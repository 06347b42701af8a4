// Layers whose matrices are codes of a few bits.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

#include "nn/support.h"
#include "weft/compile.h"
#include "weft/optim.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::nn::test;

namespace {

struct Tied : nn::Module {
  using Module::Module;
  nn::Embedding table{*this, "table", 40, 64};
  nn::Linear up{*this, "up", 64, 96};
  nn::Linear down{*this, "down", 96, 64, false};
  array operator()(const array& ids) const { return table.as_linear(down(nn::relu(up(table(ids))))); }
};

array rounded(const array& w, const nn::Quantization& how) {
  const std::vector<array> q = quantize(w, how.group_size, how.bits, how.mode);
  return dequantize(q[0], q[1], q.size() > 2 ? std::optional(q[2]) : std::nullopt, how.group_size, how.bits, how.mode,
                    std::nullopt, float32);
}

std::vector<std::string> names(const std::vector<std::pair<std::string, array*>>& parameters) {
  std::vector<std::string> out;
  for (const auto& [name, value] : parameters) out.push_back(name);
  return out;
}

const array ids({3, 1, 39, 0, 7, 7}, {2, 3});

}  // namespace

TEST_CASE("a quantised model computes what its codes stand for, in every mode") {
  for (const nn::Quantization& how : {nn::Quantization{.group_size = 32, .bits = 4},
                                      {.group_size = 32, .bits = 3},
                                      {.group_size = 32, .bits = 8},
                                      {.mode = "mxfp4"},
                                      {.mode = "mxfp8"},
                                      {.mode = "nvfp4"}}) {
    CAPTURE(how.mode);
    Tied exact, model;
    model.update({{"table.weight", exact.table.weight},
                  {"up.weight", exact.up.weight},
                  {"up.bias", *exact.up.bias},
                  {"down.weight", exact.down.weight}});
    for (nn::Parameter* w : {&exact.table.weight, &exact.up.weight, &exact.down.weight}) *w = rounded(*w, how);
    nn::quantize(model, how);
    CHECK(model.up.weight.value().dtype() == uint32);
    CHECK(allclose(model(ids), exact(ids), 1e-4, 1e-4).item<bool>());
    CHECK(allclose(model.table(ids), exact.table(ids), 0, 1e-6).item<bool>());
    const array half = model.up(astype(exact.table(ids), bfloat16));
    CHECK(half.dtype() == bfloat16);
    CHECK(allclose(astype(half, float32), exact.up(exact.table(ids)), 0.05, 0.05).item<bool>());
  }
}

TEST_CASE("codes, scales and biases are part of a model's files, and are not learned") {
  Tied model;
  nn::quantize(model, {.group_size = 32});
  const std::vector<std::string> all{"table.weight", "table.scales", "table.biases", "up.weight",   "up.bias",
                                     "up.scales",    "up.biases",    "down.weight",  "down.scales", "down.biases"};
  CHECK(names(model.parameters()) == all);
  CHECK(names(model.trainable_parameters()) == std::vector<std::string>{"up.bias"});
  model.freeze();
  model.unfreeze();
  CHECK(names(model.trainable_parameters()) == std::vector<std::string>{"up.bias"});
  model.set_dtype(bfloat16);
  CHECK(model.up.quantized->scales.value().dtype() == float32);
  model.set_dtype(float32);
  const auto file =
      (std::filesystem::temp_directory_path() / ("weft-codes-" + std::to_string(::getpid()))).string() + ".safetensors";
  model.save_weights(file);
  Tied other;
  nn::quantize(other, {.group_size = 32});
  other.load_weights(file);
  CHECK(array_equal(other(ids), model(ids)).item<bool>());
  std::filesystem::remove(file);
  nn::QuantizedLinear alone(64, 96, true, {.group_size = 32});
  alone.update({{"weight", model.up.weight},
                {"bias", *model.up.bias},
                {"scales", model.up.quantized->scales},
                {"biases", *model.up.quantized->biases}});
  const array x = waves({2, 64}, 0.3);
  CHECK(array_equal(alone(x), model.up(x)).item<bool>());
  CHECK(alone.describe() == "Linear(64, 96, group_size=32, bits=4, mode=affine)");
  CHECK(nn::QuantizedEmbedding(40, 64).describe() == "Embedding(40, 64, group_size=64, bits=4, mode=affine)");
}

TEST_CASE("what is not quantised learns beside codes; inputs may be quantised as well") {
  nn::Linear layer(64, 32);
  layer.quantize({.mode = "mxfp8", .input = true});
  const array x = waves({4, 64}, 0.7), target = waves({4, 32}, 0.2);
  CHECK(layer.describe() == "Linear(64, 32, group_size=32, bits=8, mode=mxfp8, input=true)");
  optim::SGD sgd(layer.trainable_parameters(), {.learning_rate = 0.1f});
  const auto step =
      nn::value_and_grad(layer, [&](const std::vector<array>& in) { return mean(square(layer(in[0]) - target)); });
  std::vector<float> losses;
  for (int k = 0; k < 20; ++k) {
    const auto [loss, gradients] = step({x});
    sgd.update(gradients);
    losses.push_back(loss.item<float>());
  }
  CHECK(losses.back() < losses.front());
  const array slope = grad([&](const array& v) { return sum(layer(v)); })(x);
  CHECK(slope.shape() == x.shape());
}

TEST_CASE("layers that cannot be quantised are named, and nothing is changed") {
  struct Odd : nn::Module {
    nn::Linear first{*this, "first", 64, 8};
    nn::Linear odd{*this, "odd", 48, 8};
  } model;
  const auto why = [&](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  const std::string text = why([&] { nn::quantize(model); });
  CHECK(text.find("[nn::quantize] odd, Linear(48, 8): [quantize] the last axis of float32 (8,48)") == 0);
  CHECK(!model.first.quantized);
  nn::quantize(model, {}, [](const std::string& name, const nn::Module&) { return name == "first"; });
  CHECK(model.first.quantized);
  CHECK(why([&] { model.first.quantize(); }).find("the layer is quantised") != std::string::npos);
  CHECK(why([&] { model.odd.quantize({.mode = "mxfp4", .input = true}); }).find("modes nvfp4 and mxfp8") !=
        std::string::npos);
  CHECK(why([&] { model.first(waves({2, 32}, 1.0)); }).find("last axis must be 64") != std::string::npos);
  CHECK(why([&] { nn::Embedding(4, 64).quantize({.mode = "mxfp8", .input = true}); }).find("ids are no numbers") !=
        std::string::npos);
}
