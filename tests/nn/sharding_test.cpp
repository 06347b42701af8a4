// Layers that are divided among processes, in a group of one, and the parts of several.
#include "nn/sharding.h"

#include <doctest/doctest.h>

#include <numeric>
#include <sstream>

#include "weft/nn.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

array counted(const Shape& shape) { return reshape(arange(0.0, static_cast<double>(num_elements(shape))), shape); }

std::string text(const nn::Module& module) {
  std::ostringstream os;
  os << module;
  return os.str();
}

}  // namespace

TEST_CASE("a group of one has all of a divided layer") {
  nn::Linear linear(64, 6);
  const array x = sin(counted({3, 64}));
  const auto rows = nn::shard_all_to_sharded(linear);
  const auto columns = nn::shard_sharded_to_all(linear);
  CHECK(array_equal((*rows)(x), linear(x)).item<bool>());
  CHECK(array_equal((*columns)(x), linear(x)).item<bool>());
  CHECK(text(*rows) == "AllToShardedLinear(64, 6)\n");
  CHECK(text(nn::ShardedToAllLinear(64, 6, false)) == "ShardedToAllLinear(64, 6, bias=false)\n");
  CHECK(rows->trainable_parameters().size() == 2);
  const auto slope = [&](const array& in) { return sum((*rows)(in)); };
  const auto expected = [&](const array& in) { return sum(linear(in)); };
  CHECK(array_equal(grad(UnaryFunction(slope))(x), grad(UnaryFunction(expected))(x)).item<bool>());

  linear.quantize();
  const auto codes = nn::shard_all_to_sharded(linear);
  const auto more = nn::shard_sharded_to_all(linear);
  CHECK(array_equal((*codes)(x), linear(x)).item<bool>());
  CHECK(array_equal((*more)(x), linear(x)).item<bool>());
  CHECK(nn::QuantizedAllToShardedLinear(64, 6).quantized->how.bits == 4);
  CHECK(nn::QuantizedShardedToAllLinear(64, 6, false, {.bits = 8}).parameters().size() == 3);

  struct Model : nn::Module {
    nn::AllToShardedLinear up{*this, "up", 4, 8};
    nn::ShardedToAllLinear down{*this, "down", 8, 4};
  } model;
  CHECK(model.parameters().size() == 4);
}

TEST_CASE("parts of processes: segments are divided one by one") {
  const array stacked = counted({6, 2});  // two matrices of three rows are no four, but three of two are
  CHECK(nn::part_of(stacked, {0, 3}, 0, 2).to_vector<float>() == std::vector<float>{0, 1, 4, 5, 8, 9});
  CHECK(nn::part_of(stacked, {0, 3}, 1, 2).to_vector<float>() == std::vector<float>{2, 3, 6, 7, 10, 11});
  CHECK(nn::part_of(stacked, {0, std::vector<int>{2}}, 1, 2).to_vector<float>() ==
        std::vector<float>{2, 3, 8, 9, 10, 11});
  CHECK(nn::part_of(stacked, {0, std::vector<double>{1.0 / 3}}, 1, 2).to_vector<float>() ==
        std::vector<float>{2, 3, 8, 9, 10, 11});
  CHECK(nn::part_of(stacked, {-1}, 1, 2).to_vector<float>() == std::vector<float>{1, 3, 5, 7, 9, 11});
  CHECK_THROWS_AS(nn::part_of(stacked, {0}, 0, 4), std::invalid_argument);

  CHECK(nn::all_to_sharded()("up.weight", stacked)->axis == 0);
  CHECK(nn::all_to_sharded()("up.bias", zeros({6}))->axis == -1);
  CHECK(nn::sharded_to_all()("up.weight", stacked)->axis == -1);
  CHECK_FALSE(nn::sharded_to_all()("up.bias", zeros({6})).has_value());
}

TEST_CASE("a group of one: shard_inplace, average_gradients, clip_grad_norm_sharded") {
  nn::Linear linear(4, 6), same(4, 6);
  same.update(linear.parameter_tree());
  nn::shard_inplace(linear, nn::all_to_sharded(3));
  CHECK(array_equal(linear.weight, same.weight).item<bool>());
  const Tree gradients = Tree::dict({{"a", array({3.0f})}, {"b", Tree::list({array({4.0f})})}});
  CHECK(nn::average_gradients(gradients)["b"][0].leaf().item<float>() == 4);
  const auto [clipped, norm] = nn::clip_grad_norm_sharded(gradients, 1);
  CHECK(norm.item<float>() == 5);
  CHECK(clipped["b"][0].leaf().item<float>() == doctest::Approx(0.8));
  CHECK(nn::clip_grad_norm_sharded(gradients, 10).first["a"].leaf().item<float>() == 3);
}

TEST_CASE("a fully sharded layer of a group of one computes what the layer does") {
  random::seed(2);
  nn::Linear plain(6, 4);
  random::seed(2);
  nn::FullyShardedModule layer(std::make_unique<nn::Linear>(6, 4));
  const array x = sin(counted({3, 6}));
  CHECK(allclose(layer(x), plain(x), 1e-6, 1e-6).item<bool>());
  CHECK(text(layer) == "FullyShardedModule(2)\n  module: Linear(6, 4)\n");
  REQUIRE(layer.parameters().size() == 2);
  CHECK(layer.parameters()[0].first == "module.weight");
  const auto loss = [&](auto& model) {
    return nn::value_and_grad(model, [&](const std::vector<array>& in) { return sum(square(model(in[0]))); })({x});
  };
  const auto [value, gradients] = loss(layer);
  const auto [expected, slopes] = loss(plain);
  CHECK(value.item<float>() == doctest::Approx(expected.item<float>()));
  for (size_t k = 0; k < 2; ++k) CHECK(allclose(gradients[k], slopes[k], 1e-5, 1e-6).item<bool>());
  CHECK(layer.gathered([&] { return layer.module()(x) * 2; }).shape() == Shape{3, 4});
  const array before = *layer.parameters()[0].second;
  CHECK_THROWS_AS(layer(ones({3, 5})), std::invalid_argument);
  CHECK(array_equal(*layer.parameters()[0].second, before).item<bool>());  // the parts are back
}

TEST_CASE("fully sharded layers: dtypes of calls, nested ones, what is refused") {
  nn::FullyShardedModule half(std::make_unique<nn::Linear>(4, 2), std::nullopt, bfloat16);
  const array x = ones({1, 4}, bfloat16);
  CHECK(half(x).dtype() == bfloat16);
  CHECK(half.parameters()[0].second->dtype() == float32);
  const auto loss_and_gradients =
      nn::value_and_grad(half, [&](const std::vector<array>& in) { return sum(half(in[0])); });
  const auto [value, gradients] = loss_and_gradients({x});
  CHECK(value.dtype() == bfloat16);
  CHECK(gradients[0].dtype() == float32);
  CHECK(gradients[0].to_vector<float>() == std::vector<float>(8, 1));

  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(4, 4);
  net->add<nn::FullyShardedModule>(std::make_unique<nn::Linear>(4, 2));
  const nn::FullyShardedModule outer(std::move(net));
  CHECK(outer.describe() == "FullyShardedModule(2)");  // the two of the first layer
  CHECK(outer(ones({1, 4})).shape() == Shape{1, 2});

  // One process keeps the layer as it is.
  auto linear = std::make_unique<nn::Linear>(4, 4);
  const nn::Layer* address = linear.get();
  CHECK(nn::fully_shard(std::move(linear)).get() == address);
  CHECK_THROWS_AS(nn::fully_shard(nullptr), std::invalid_argument);
  CHECK_THROWS_AS(nn::FullyShardedModule(nullptr), std::invalid_argument);
  struct Scaled : nn::Layer {
    nn::Parameter scale{*this, "scale", array(2.0f)};
    array operator()(const array& in) const override { return in * scale; }
  };
  CHECK_THROWS_WITH_AS(nn::FullyShardedModule(std::make_unique<Scaled>()), doctest::Contains("scale is a scalar"),
                       std::invalid_argument);
}
