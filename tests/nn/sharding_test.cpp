// Layers that are divided among processes, in a group of one, and the parts of several.
#include "nn/sharding.h"

#include <doctest/doctest.h>

#include <numeric>
#include <sstream>

#include "weft/nn.h"
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
