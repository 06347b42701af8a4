#include <doctest/doctest.h>

#include <sstream>

#include "weft/nn.h"

using namespace weft;

namespace {

struct Mlp : nn::Module {
  using Module::Module;
  nn::Linear up{*this, "up", 4, 8};
  nn::Linear down{*this, "down", 8, 4, false};
  nn::Dropout drop{*this, "drop", 0.25f};
  nn::Parameter scale{*this, "scale", ones({4})};
};

struct Net : nn::Module {
  nn::Parameter first{*this, "first", zeros({2})};
  nn::List<Mlp> blocks{*this, "blocks"};
  nn::LayerNorm norm{*this, "norm", 4};
  Net() {
    blocks.add();
    blocks.add();
  }
};

std::vector<std::string> names(const std::vector<std::pair<std::string, array*>>& parameters) {
  std::vector<std::string> out;
  for (const auto& p : parameters) out.push_back(p.first);
  return out;
}

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("parameters: dotted names in the order of declaration") {
  Net net;
  CHECK(names(net.parameters()) ==
        std::vector<std::string>{"first", "blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight",
                                 "blocks.0.scale", "blocks.1.up.weight", "blocks.1.up.bias", "blocks.1.down.weight",
                                 "blocks.1.scale", "norm.weight", "norm.bias"});
  CHECK(net.parameters()[1].second->shape() == Shape{8, 4});
  CHECK(net.parameters()[0].second == net.first.handle());
  CHECK(net.num_parameters() == 2 + 2 * (32 + 8 + 32 + 4) + 8);
  const auto state = net.state();
  REQUIRE(state.size() == 11);
  CHECK(state[4] == net.blocks[0].scale.handle());
}

TEST_CASE("modules by name, and the printed tree") {
  Net net;
  std::vector<std::string> found;
  for (auto& m : net.named_modules()) found.push_back(m.first);
  CHECK(found == std::vector<std::string>{"", "blocks", "blocks.0", "blocks.0.up", "blocks.0.down", "blocks.0.drop",
                                          "blocks.1", "blocks.1.up", "blocks.1.down", "blocks.1.drop", "norm"});
  CHECK(net.children().size() == 2);
  CHECK(net.blocks[1].name() == "1");
  std::ostringstream os;
  os << net;
  CHECK(os.str() ==
        "Net(first (2) float32)\n"
        "  blocks: List(2)\n"
        "    0: Mlp(scale (4) float32)\n"
        "      up: Linear(4, 8)\n"
        "      down: Linear(8, 4, bias=false)\n"
        "      drop: Dropout(0.25)\n"
        "    1: Mlp(scale (4) float32)\n"
        "      up: Linear(4, 8)\n"
        "      down: Linear(8, 4, bias=false)\n"
        "      drop: Dropout(0.25)\n"
        "  norm: LayerNorm(4, bias=true)\n");
}

TEST_CASE("a part that is gone is no longer listed") {
  struct Changing : nn::Module {
    std::optional<nn::Linear> head;
    std::optional<nn::Parameter> extra;
  } m;
  m.head.emplace(m, "head", 2, 3);
  m.extra.emplace(m, "extra", zeros({1}));
  CHECK(names(m.parameters()) == std::vector<std::string>{"head.weight", "head.bias", "extra"});
  m.head.reset();
  CHECK(names(m.parameters()) == std::vector<std::string>{"extra"});
  m.extra.reset();
  CHECK(m.parameters().empty());
  m.head.emplace(m, "head", 2, 3);  // the name is free again
  CHECK(m.parameters().size() == 2);
}

TEST_CASE("names must be unique, not empty and without dots") {
  nn::Module m;
  nn::Linear a{m, "a", 1, 1};
  CHECK(message([&] { nn::Linear again(m, "a", 1, 1); }) == "[Module] the name 'a' is taken twice in one module");
  CHECK(message([&] { nn::Parameter p(m, "a.b", zeros({1})); }).find("'a.b' is no name") != std::string::npos);
  CHECK_THROWS_AS(nn::Parameter(m, "", zeros({1})), std::invalid_argument);
  CHECK(m.parameters().size() == 2);
}

TEST_CASE("freeze and unfreeze reach everything below") {
  Net net;
  net.blocks[0].freeze();
  CHECK(names(net.trainable_parameters()) == std::vector<std::string>{"first", "blocks.1.up.weight", "blocks.1.up.bias",
                                                                      "blocks.1.down.weight", "blocks.1.scale",
                                                                      "norm.weight", "norm.bias"});
  CHECK(net.parameters().size() == 11);
  net.freeze();
  CHECK(net.trainable_parameters().empty());
  CHECK_THROWS_WITH_AS(nn::value_and_grad(net, [](const std::vector<array>&) { return array(0.0f); })({}),
                       "[nn.value_and_grad] the model has no trainable parameters (all frozen?)",
                       std::invalid_argument);
  net.blocks[1].down.weight.trainable = true;
  CHECK(names(net.trainable_parameters()) == std::vector<std::string>{"blocks.1.down.weight"});
  net.unfreeze();
  CHECK(net.trainable_parameters().size() == 11);
}

TEST_CASE("train and eval reach everything below") {
  Net net;
  CHECK(net.blocks[0].drop.training());
  net.eval();
  CHECK_FALSE(net.training());
  CHECK_FALSE(net.blocks[1].drop.training());
  net.blocks[1].train();
  CHECK(net.blocks[1].drop.training());
  CHECK_FALSE(net.blocks[0].drop.training());
}

TEST_CASE("update: everything that does not fit is named, and nothing is changed") {
  Mlp m;
  const array other = zeros({4});
  const std::string text = message([&] {
    m.update(
        {{"up.weight", zeros({4, 8})}, {"up.bias", zeros({8})}, {"scale", other}, {"sclae", other}, {"odd", other}});
  });
  CHECK(text ==
        "[Module.update] the values do not fit the model: wrong shape: up.weight is (4,8) and should be (8,4); "
        "missing: down.weight; not in the model: odd, sclae");
  CHECK_THROWS_AS(m.update({{"scale", zeros({5})}}, false), std::invalid_argument);
  m.update({{"scale", zeros({4}, bfloat16)}, {"unknown", zeros({1})}}, false);
  CHECK(m.scale.value().dtype() == float32);  // cast to what the parameter is
  CHECK_THROWS_AS(m.update({{"scale", zeros({4})}}), std::invalid_argument);
}

TEST_CASE("a parameter keeps its shape and dtype") {
  Mlp m;
  m.scale = full({4}, array(2.0f));
  CHECK_THROWS_AS(m.scale = zeros({3}), std::invalid_argument);
  CHECK_THROWS_AS(m.scale = zeros({4}, int32), std::invalid_argument);
}

TEST_CASE("impossible sizes are refused") {
  CHECK_THROWS_AS(nn::Linear(0, 3), std::invalid_argument);
  CHECK_THROWS_AS(nn::Embedding(-1, 3), std::invalid_argument);
  CHECK_THROWS_AS(nn::Dropout(1.0f), std::invalid_argument);
  CHECK_THROWS_AS(nn::Dropout(-0.1f), std::invalid_argument);
  CHECK_THROWS_AS(nn::CausalSelfAttention(10, 3), std::invalid_argument);
  CHECK(message([] {
          nn::Linear(4, 2)(zeros({3, 5}));
        }) == "[Linear] the input's last axis must be 4; its shape is (3,5)");
  CHECK_THROWS_AS(nn::Linear(4, 2)(zeros({3, 4}, int32)), std::invalid_argument);
  CHECK_THROWS_AS(nn::Embedding(4, 2)(zeros({3})), std::invalid_argument);
}
