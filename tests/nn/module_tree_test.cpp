// Modules as trees: parameters, functions on all of them, parts that are replaced, parameters that are frozen.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "weft/nn.h"
#include "weft/optim.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

struct Mlp : nn::Module {
  using Module::Module;
  nn::Linear up{*this, "up", 2, 3};
  nn::ReLU act{*this, "act"};
  nn::Linear down{*this, "down", 3, 2, false};
  nn::Parameter scale{*this, "scale", ones({2})};
  array operator()(const array& x) const { return down(act(up(x))) * scale; }
};

struct Net : nn::Module {
  nn::List<Mlp> blocks{*this, "blocks"};
  nn::BatchNorm norm{*this, "norm", 2};
  nn::Sequential head{*this, "head"};
  Net() {
    blocks.add();
    blocks.add();
    head.add<nn::ReLU>();
    head.add<nn::Linear>(2, 1);
  }
  array loss(const array& x) const { return sum(square(head(norm(blocks[1](blocks[0](x)))))); }
};

using Names = std::vector<std::string>;

template <class Entries>
Names names(const Entries& entries) {
  Names out;
  for (const auto& entry : entries) out.push_back(entry.first);
  return out;
}

std::string text(const Tree& tree) {
  std::ostringstream os;
  os << tree;
  return os.str();
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

TEST_CASE("parameters as a tree, in their order") {
  Net net;
  const Tree tree = net.parameter_tree();
  CHECK(text(tree) ==
        "{blocks: [{up: {weight: (3,2) float32, bias: (3) float32}, act: {}, down: {weight: (2,3) float32}, "
        "scale: (2) float32}, {up: {weight: (3,2) float32, bias: (3) float32}, act: {}, down: {weight: (2,3) float32}, "
        "scale: (2) float32}], norm: {weight: (2) float32, bias: (2) float32, running_mean: (2) float32, "
        "running_var: (2) float32}, head: [{}, {weight: (1,2) float32, bias: (1) float32}]}");
  CHECK(names(tree_flatten(tree)) == names(net.parameters()));
  net.blocks[0].freeze();
  const Tree learned = net.trainable_tree();
  CHECK(names(tree_flatten(learned)) == names(net.trainable_parameters()));
  CHECK(learned["blocks"].size() == 2);  // an index stays what it is
  CHECK(text(learned["blocks"][0]) == "{up: {}, act: {}, down: {}}");
  CHECK(text(nn::Module().parameter_tree()) == "{}");
}

TEST_CASE("filter_and_map") {
  Net net;
  const auto biases = [](const nn::Module&, const std::string& name, const nn::Item& item) {
    return item.is_module() || name == "bias";
  };
  CHECK(names(tree_flatten(net.filter_and_map(biases))) ==
        Names{"blocks.0.up.bias", "blocks.1.up.bias", "norm.bias", "head.1.bias"});
  const auto is_linear = [](const nn::Module&, const std::string&, const nn::Item& item) {
    return dynamic_cast<nn::Linear*>(item.module) != nullptr;
  };
  const auto count = [](const nn::Item& item) { return Tree(array(static_cast<int>(item.module->num_parameters()))); };
  const Tree counts = net.filter_and_map(nn::Module::valid_child_filter, count, is_linear);
  CHECK(counts["blocks"][1]["up"].leaf().item<int>() == 9);
  CHECK(names(tree_flatten(counts)) == Names{"blocks.0.up", "blocks.0.down", "blocks.1.up", "blocks.1.down", "head.1"});
  CHECK_THROWS_AS(net.filter_and_map(nn::Module::valid_child_filter, {}, is_linear), std::invalid_argument);
  // An entry of a list that the filter leaves out.
  const auto second = [](const nn::Module&, const std::string& name, const nn::Item&) { return name != "0"; };
  CHECK(text(net.filter_and_map(second)["blocks"][0]) == "{}");
  CHECK(net.filter_and_map(second)["blocks"][1].size() == 4);
}

TEST_CASE("apply changes every parameter, or those that a filter takes") {
  Net net;
  net.apply([](const array& x) { return full_like(x, 2.0f); });
  CHECK(net.blocks[1].up.weight.value().to_vector<float>() == std::vector<float>(6, 2));
  CHECK(net.norm.running_mean->value().to_vector<float>() == std::vector<float>{2, 2});
  net.blocks[0].freeze();
  net.apply([](const array& x) { return x * 3; }, nn::Module::trainable_parameter_filter);
  CHECK(net.blocks[0].scale.value().to_vector<float>() == std::vector<float>{2, 2});
  CHECK(net.blocks[1].scale.value().to_vector<float>() == std::vector<float>{6, 6});
  net.apply([](const array& x) { return astype(x, bfloat16); });  // the dtype may change, as in MLX
  CHECK(net.blocks[0].scale.value().dtype() == bfloat16);
  CHECK_FALSE(net.blocks[0].scale.trainable);
  CHECK(net.blocks[1].scale.trainable);
}

TEST_CASE("modules, those without parts, and a function on each") {
  Net net;
  CHECK(net.modules().size() == net.named_modules().size());
  CHECK(net.modules()[0] == &net);
  CHECK(names(net.leaf_modules()) == Names{"blocks.0.up", "blocks.0.act", "blocks.0.down", "blocks.1.up",
                                           "blocks.1.act", "blocks.1.down", "norm", "head.0", "head.1"});
  Names seen;
  net.blocks[0].apply_to_modules([&](const std::string& name, nn::Module& module) {
    seen.push_back(name);
    module.train(false);
  });
  CHECK(seen == Names{"", "up", "act", "down"});
  CHECK_FALSE(net.blocks[0].up.training());
  const auto items = net.blocks[0].items();
  CHECK(names(items) == Names{"up", "act", "down", "scale"});
  CHECK(items[0].second.module == &net.blocks[0].up);
  CHECK(items[3].second.parameter == &net.blocks[0].scale);
  CHECK_FALSE(items[3].second.is_module());
}

TEST_CASE("update by a tree") {
  Net net;
  Tree values =
      Tree::dict({{"blocks", Tree::list({Tree::dict(), Tree::dict({{"scale", array({3.0f, 4.0f, 5.0f})}})})}});
  net.update(values);
  CHECK(net.blocks[1].scale.value().shape() == Shape{3});  // as it is, as in MLX
  CHECK(net.blocks[0].scale.value().to_vector<float>() == std::vector<float>{1, 1});

  values["blocks"].push_back(Tree::dict({{"scale", zeros({2})}}));
  values["head"] = Tree::dict({{"1", Tree::dict({{"bias", zeros({1})}, {"odd", zeros({1})}})}});
  CHECK(message([&] { net.update(values); }) == "[Module.update] the module does not have a parameter named blocks.2");
  values["blocks"] = Tree::list();
  CHECK(message([&] { net.update(values); }) ==
        "[Module.update] the module does not have a parameter named head.1.odd");
  net.head[1].apply([](const array& x) { return ones(x.shape()); });
  CHECK(message([&] {
          net.update(Tree::dict({{"head", values["head"]}, {"norm", zeros({2})}}));
        }) == "[Module.update] the module does not have a parameter named head.1.odd");
  CHECK(message([&] {
          net.update(Tree::dict({{"norm", zeros({2})}}));
        }) == "[Module.update] the value of norm is an array");
  CHECK(message([&] {
          net.update(Tree::dict({{"norm", Tree::dict({{"bias", Tree::list({zeros({2})})}})}}));
        }) == "[Module.update] the value of norm.bias is no array");
  CHECK(message([&] { net.update(zeros({2})); }) == "[Module.update] the value is an array");
  CHECK(net.parameters().back().second->item<float>() == 1);  // nothing has changed
  values["norm"] = zeros({2});
  net.update(values, false);  // what fits
  CHECK(net.parameters().back().second->item<float>() == 0);
  net.update(net.parameter_tree());
}

TEST_CASE("a step of training by trees is the step by handles") {
  Net net, other;
  other.update(net.parameter_tree());
  const array x({1.0f, -2.0f, 0.5f, 3.0f, 2.0f, 1.0f}, {3, 2});
  optim::AdamW functional({.learning_rate = 0.1f}), handles(other.trainable_parameters(), {.learning_rate = 0.1f});
  for (int step = 0; step < 3; ++step) {
    const auto loss_and_grads =
        nn::tree_value_and_grad(net, [&](const std::vector<array>& in) { return net.loss(in[0]); });
    const auto [loss, gradients] = loss_and_grads({x});
    CHECK(gradients["blocks"][0]["up"].size() == 2);
    net.update(functional.apply_gradients(gradients, net.parameter_tree()));
    handles.update(
        nn::value_and_grad(other, [&](const std::vector<array>& in) { return other.loss(in[0]); })({x}).second);
  }
  for (size_t i = 0; i < net.parameters().size(); ++i)
    CHECK(net.parameters()[i].second->to_vector<float>() == other.parameters()[i].second->to_vector<float>());
}

TEST_CASE("update_modules replaces parts") {
  struct Sum : nn::Layer {
    using Layer::Layer;
    array operator()(const array& x) const override { return sum(x, -1, true); }
  };
  Net net;
  const auto before = net.parameters().size();
  std::map<std::string, std::unique_ptr<nn::Module>> parts;
  parts["head.1"] = std::make_unique<Sum>();
  parts["blocks.0"] = std::make_unique<Mlp>();
  net.update_modules(std::move(parts));
  CHECK(net.parameters().size() == before - 2);
  CHECK(names(net.named_modules())[1] == "blocks");
  CHECK(names(net.children()) == Names{"blocks", "norm", "head"});
  CHECK(names(net.head.children()) == Names{"0", "1"});
  CHECK(net.head[1].name() == "1");
  CHECK(net.head(array({2.0f, 3.0f}, {1, 2})).item<float>() == 5);
  CHECK(net.loss(ones({2, 2})).shape().empty());

  const auto replace = [&](const std::string& name, std::unique_ptr<nn::Module> part, bool strict = true) {
    std::map<std::string, std::unique_ptr<nn::Module>> one;
    one[name] = std::move(part);
    return message([&] { net.update_modules(std::move(one), strict); });
  };
  CHECK(replace("tail", std::make_unique<Sum>()) ==
        "[Module.update_modules] the module does not have a sub-module named \"tail\"");
  CHECK(replace("tail", std::make_unique<Sum>(), false) == "no error");
  CHECK(replace("norm", std::make_unique<nn::BatchNorm>(2)).find("norm is a member of Net that cannot be") !=
        std::string::npos);
  CHECK(replace("blocks.0", std::make_unique<Sum>()).find("cannot be replaced by a Sum") != std::string::npos);
  CHECK(replace("blocks.0", nullptr).find("must be a module by itself") != std::string::npos);
  nn::Module elsewhere;
  CHECK(replace("head.0", std::make_unique<nn::ReLU>(elsewhere, "x")).find("must be a module by itself") !=
        std::string::npos);
  // A part, and what holds it.
  parts.clear();
  parts["head.1"] = std::make_unique<nn::Linear>(2, 2);
  nn::List<nn::Sequential> list;
  list.add().add<nn::ReLU>();
  parts["0.0"] = std::make_unique<nn::Tanh>();
  parts["0"] = std::make_unique<nn::Sequential>();
  parts.erase("head.1");
  list.update_modules(std::move(parts));
  CHECK(list[0].size() == 0);

  struct Same : nn::Encoder {
    using Encoder::Encoder;
    array operator()(const array& x, const std::optional<array>&) const override { return x; }
  };
  nn::Transformer transformer(4, 2, 1, 1);
  parts.clear();
  parts["encoder"] = std::make_unique<Same>();
  transformer.update_modules(std::move(parts));
  CHECK(transformer.encoder->parameters().empty());
  CHECK(names(transformer.children()) == Names{"encoder", "decoder"});
  parts.clear();
  parts["decoder"] = std::make_unique<Same>();
  CHECK_THROWS_AS(transformer.update_modules(std::move(parts)), std::invalid_argument);
}

TEST_CASE("freeze and unfreeze by names") {
  Net net;
  const auto learned = [&] { return names(net.trainable_parameters()); };
  const size_t all = learned().size();
  net.freeze({.keys = Names{"bias"}});
  CHECK(learned() == Names{"blocks.0.up.weight", "blocks.0.down.weight", "blocks.0.scale", "blocks.1.up.weight",
                           "blocks.1.down.weight", "blocks.1.scale", "norm.weight", "head.1.weight"});
  net.unfreeze({.keys = Names{"bias"}});
  CHECK(learned().size() == all);  // statistics stay what they are
  net.blocks[0].freeze({.recurse = false});
  CHECK(learned().size() == all - 1);
  CHECK_FALSE(net.blocks[0].scale.trainable);
  net.blocks[0].unfreeze({.recurse = false, .keys = Names{"bias"}});  // it has none itself
  CHECK_FALSE(net.blocks[0].scale.trainable);
  net.unfreeze();
  net.freeze({.keys = Names{"up", "norm"}});  // a module's name stands for what is in it
  CHECK(learned() == Names{"blocks.0.down.weight", "blocks.0.scale", "blocks.1.down.weight", "blocks.1.scale",
                           "head.1.weight", "head.1.bias"});
  net.freeze({.keys = Names{}});
  CHECK(learned().size() == 6);
  CHECK_THROWS_WITH_AS(net.freeze({.keys = Names{"scale", "scales"}, .strict = true}),
                       "[Module] the module does not contain a member named scales", std::out_of_range);
  CHECK(learned().size() == 6);
  net.freeze({.keys = Names{"scale"}, .strict = true});
  CHECK(learned().size() == 4);
  CHECK_THROWS_AS(net.unfreeze({.recurse = false, .keys = Names{"scale"}, .strict = true}), std::out_of_range);
}

TEST_CASE("weights in NumPy's archives") {
  Net net, other;
  const std::string file = std::filesystem::temp_directory_path() / "weft_module_tree_test.npz";
  net.save_weights(file);
  other.load_weights(file);
  for (size_t i = 0; i < net.parameters().size(); ++i)
    CHECK(net.parameters()[i].second->to_vector<float>() == other.parameters()[i].second->to_vector<float>());
  CHECK_THROWS_AS(net.save_weights(file, {{"a", "b"}}), std::invalid_argument);
  Mlp part;
  CHECK_THROWS_AS(part.load_weights(file), std::invalid_argument);
  part.load_weights(file, false);  // none of the names
  std::filesystem::remove(file);
}
