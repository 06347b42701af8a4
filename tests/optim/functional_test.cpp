// The functional form of optimizers: trees in, trees out, on the rules of the form with handles.
#include <functional>

#include "optim/support.h"
#include "weft/compile.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::optim;
using namespace weft::optim::test;

namespace {

// Pair as a tree.
Tree start() {
  const Pair p;
  return Tree::dict({{"layer", Tree::dict({{"weight", p.w}, {"bias", p.b}})}});
}

Tree slopes_tree(int step) { return tree_fill(start(), slopes(step)); }

std::vector<float> values(const Tree& parameters) {
  std::vector<float> out;
  for (const array& leaf : tree_leaves(parameters))
    for (const float v : leaf.to_vector<float>()) out.push_back(v);
  return out;
}

Tree walked(Optimizer& optimizer, Tree parameters, int first, int last) {
  for (int s = first; s < last; ++s) {
    optimizer.set_learning_rate(static_cast<float>(0.01 * (s + 1)));
    parameters = optimizer.apply_gradients(slopes_tree(s), parameters);
  }
  return parameters;
}

template <class O, class Options>
void check_same(const Options& options) {
  Pair p;
  O with_handles(p.parameters(), options), functional(options);
  run(with_handles, 0, 4);
  CHECK(values(walked(functional, start(), 0, 4)) == p.values());
  const Parameters saved = with_handles.named_state(), other = functional.named_state();
  REQUIRE(saved.size() == other.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    CHECK(saved[i].first == other[i].first);
    CHECK(saved[i].second->to_vector<float>() == other[i].second->to_vector<float>());
  }
}

std::vector<std::string> paths(const Tree& tree) {
  std::vector<std::string> out;
  for (const auto& entry : tree_flatten(tree)) out.push_back(entry.first);
  return out;
}

}  // namespace

TEST_CASE("both forms give the same bits") {
  check_same<SGD>(SgdOptions{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .decays = is_matrix});
  check_same<Lion>(LionOptions{.weight_decay = 0.1, .decays = is_matrix});
  check_same<Muon>(MuonOptions{});
  check_same<Adam>(AdamOptions{.weight_decay = 0.1, .decays = is_matrix, .bias_correction = true});
  check_same<AdamW>(AdamWOptions{.decays = is_matrix});
  check_same<Lamb>(LambOptions{});
  check_same<Adamax>(AdamaxOptions{.bias_correction = true});
  check_same<RMSprop>(RmspropOptions{.momentum = 0.5, .centered = true});
  check_same<Adagrad>(AdagradOptions{.initial_accumulator = 0.1});
  check_same<AdaDelta>(AdadeltaOptions{});
  check_same<Adafactor>(AdafactorOptions{.beta1 = 0.9});
}

TEST_CASE("apply_gradients: the gradients' structure, parameters that stay, errors") {
  SGD sgd({.learning_rate = 0.5f, .momentum = 0.9});
  const Tree parameters = Tree::dict({{"a", array({1.0f, 2.0f})}, {"b", Tree::list({array(3.0f), array(4.0f)})}});
  const Tree next = sgd.apply_gradients(Tree::dict({{"b", Tree::list({array(2.0f)})}}), parameters);
  CHECK(paths(next) == std::vector<std::string>{"b.0"});
  CHECK(next["b"][0].leaf().item<float>() == 2);
  CHECK(parameters["b"][0].leaf().item<float>() == 3);  // the argument is a value
  CHECK(sgd.step.item<int>() == 1);

  const auto give = [&](Tree gradients) { sgd.apply_gradients(gradients, parameters); };
  CHECK_THROWS_AS(give(Tree::dict({{"c", array(1.0f)}})), std::out_of_range);          // no such parameter
  CHECK_THROWS_AS(give(Tree::dict({{"a", array({1.0f, 1.0f})}})), std::out_of_range);  // no state after the first step
  CHECK_THROWS_AS(give(Tree::dict({{"b", Tree::list({array({1.0f, 1.0f})})}})), std::invalid_argument);
  CHECK(sgd.step.item<int>() == 1);  // nothing has changed
  sgd.init(parameters);              // what has state keeps it
  CHECK(sgd.state_tree()["b"][0]["v"].leaf().item<float>() == 2);
  give(Tree::dict({{"a", array({1.0f, 1.0f})}}));
  CHECK(sgd.step.item<int>() == 2);

  CHECK_THROWS_WITH_AS(sgd.init(Tree::list()), "[Optimizer.init] the parameters must be a dict", std::invalid_argument);
  CHECK_THROWS_AS(sgd.init(Tree::dict({{"ids", array({1})}})), std::invalid_argument);
  CHECK_THROWS_AS(sgd.update({array(1.0f)}), std::invalid_argument);  // no handles
}

TEST_CASE("the state as a tree, with MLX's names") {
  Adam adam({.learning_rate = 0.25f});
  CHECK(paths(adam.state_tree()) == std::vector<std::string>{"step", "learning_rate", "correction1", "correction2"});
  adam.init(start());
  CHECK(paths(adam.state_tree()["layer"]) == std::vector<std::string>{"weight.m", "weight.v", "bias.m", "bias.v"});
  CHECK(adam.state_tree()["layer"]["weight"]["m"].leaf().shape() == Shape{2, 3});
  CHECK(adam.state_tree()["learning_rate"].leaf().item<float>() == 0.25f);

  Pair p;
  Adam handles(p.parameters());  // the state of an optimizer with handles, too
  CHECK(paths(handles.state_tree()) == paths(adam.state_tree()));
  Adam named;
  named.init(p.parameters());
  CHECK(paths(named.state_tree()) == paths(adam.state_tree()));
}

TEST_CASE("a state that was saved continues") {
  const AdamOptions options{.bias_correction = true};
  Adam whole(options), first(options), second(options), foreign(options);
  const Tree expected = walked(whole, start(), 0, 5);
  const Tree middle = walked(first, start(), 0, 3);
  const Tree state = first.state_tree();
  second.set_state(state);
  CHECK(paths(second.state_tree()).size() == paths(state).size());  // nothing is lost before the first step
  CHECK(values(walked(second, middle, 3, 5)) == values(expected));

  // A state of MLX lacks what follows from the step, and counts it in uint64.
  Tree::Dict less;
  for (const auto& [path, leaf] : tree_flatten(state))
    if (path.rfind("correction", 0) != 0) less.emplace_back(path, path == "step" ? Tree(astype(leaf, uint64)) : leaf);
  foreign.set_state(tree_unflatten(less));
  check_close(values(walked(foreign, middle, 3, 5)), values(expected), 1e-6);

  // Handles take it as well.
  Pair p;
  p.w = middle["layer"]["weight"];
  p.b = middle["layer"]["bias"];
  Adam handles(p.parameters(), options);
  handles.set_state(state);
  run(handles, 3, 5);
  CHECK(p.values() == values(expected));
}

TEST_CASE("states that do not fit") {
  Adam adam;
  adam.init(start());
  Tree state = adam.state_tree();
  CHECK_THROWS_AS(adam.set_state(Tree::dict()), std::out_of_range);
  CHECK_THROWS_AS(adam.set_state(Tree::list()), std::invalid_argument);
  Tree wrong = state;
  wrong["layer"]["weight"]["m"] = zeros({3});
  CHECK_THROWS_WITH_AS(adam.set_state(wrong), "[Optimizer.set_state] layer.weight.m is (3) and should be (2,3)",
                       std::invalid_argument);
  Tree less = Tree::dict({{"step", array(3)}});
  less["layer"]["weight"]["m"] = state["layer"]["weight"]["m"];
  CHECK_THROWS_WITH_AS(adam.set_state(less), "[Optimizer.set_state] the state lacks layer.weight.v", std::out_of_range);
  Adam fresh;
  fresh.set_state(less);
  CHECK(fresh.step.item<int>() == 3);
  CHECK_THROWS_AS(fresh.init(start()), std::out_of_range);
  fresh.set_state(Tree::dict({{"step", array(3)}}));
  fresh.init(start());  // parameters without a state begin with one
  CHECK(fresh.state_tree()["layer"]["bias"]["v"].leaf().to_vector<float>() == std::vector<float>{0, 0, 0});
}

TEST_CASE("one parameter: init_single and apply_single") {
  Adam whole({.weight_decay = 0.1, .decays = is_matrix}), single({.weight_decay = 0.1, .decays = is_matrix});
  const Tree expected = walked(whole, start(), 0, 2);
  single.learning_rate = array(0.01f);
  array w = start()["layer"]["weight"];
  Tree state = single.init_single(w, "layer.weight");
  CHECK(paths(state) == std::vector<std::string>{"m", "v"});
  for (int s = 0; s < 2; ++s) {
    single.learning_rate = array(static_cast<float>(0.01 * (s + 1)));
    w = single.apply_single(slopes(s)[0], w, state, "layer.weight");
  }
  check_close(w.to_vector<float>(), expected["layer"]["weight"].leaf().to_vector<float>(), 1e-6);
  check_close(state["v"].leaf().to_vector<float>(),
              whole.state_tree()["layer"]["weight"]["v"].leaf().to_vector<float>(), 1e-7);
  CHECK(single.step.item<int>() == 0);
  CHECK(paths(single.state_tree()).size() == 4);  // it keeps nothing of the parameter
  Tree none = Tree::dict();
  CHECK_THROWS_AS(single.apply_single(slopes(0)[0], w, none), std::out_of_range);
  CHECK_THROWS_AS(single.init_single(array({1, 2})), std::invalid_argument);
}

TEST_CASE("schedules as learning rates") {
  const std::vector<float> rates{0.1f, 0.05f, 0.025f, 0.0125f};
  const Schedule forms[] = {exponential_decay(0.1f, 0.5f),
                            Schedule([](int64_t step) { return 0.1f * std::pow(0.5f, static_cast<float>(step)); }),
                            Schedule([](const array& step) { return power(array(0.5f), step) * 0.1f; })};
  for (const Schedule& form : forms) {
    SGD functional({.learning_rate = form});
    CHECK(functional.learning_rate.item<float>() == 0.1f);
    array w(1.0f);
    SGD handles({{"w", &w}}, {.learning_rate = form});
    Tree parameters = Tree::dict({{"w", array(1.0f)}});
    float expected = 1;
    for (const float rate : rates) {
      parameters = functional.apply_gradients(Tree::dict({{"w", array(1.0f)}}), parameters);
      handles.update({array(1.0f)});
      expected -= rate;
      CHECK(functional.learning_rate.item<float>() == doctest::Approx(rate).epsilon(1e-6));
      CHECK(parameters["w"].leaf().item<float>() == doctest::Approx(expected).epsilon(1e-6));
      CHECK(w.item<float>() == doctest::Approx(expected).epsilon(1e-6));
    }
  }
  // A number that is set lasts until the next step.
  SGD sgd({.learning_rate = constant_schedule(0.5f)});
  sgd.set_learning_rate(7);
  const Tree next = sgd.apply_gradients(Tree::dict({{"w", array(1.0f)}}), Tree::dict({{"w", array(1.0f)}}));
  CHECK(next["w"].leaf().item<float>() == 0.5f);
  // Every rule takes one.
  const Schedule schedule = linear_schedule(0.1f, 0, 10);
  CHECK(Lion({.learning_rate = schedule}).learning_rate.item<float>() == 0.1f);
  CHECK(Muon({.learning_rate = schedule}).learning_rate.item<float>() == 0.1f);
  CHECK(Adafactor({.learning_rate = schedule, .relative_step = false}).learning_rate.item<float>() == 0.1f);
  CHECK(LearningRate(0.5f).value() == 0.5f);
  CHECK_FALSE(LearningRate(0.5f).schedule().has_value());
  CHECK(Schedule()(3) == 0);
  const Schedule vector([](const array&) { return zeros({2}); });
  CHECK_THROWS_AS(vector(array(1)), std::invalid_argument);
  CHECK_FALSE(join_schedules({schedule, forms[1]}, {3}).of_arrays());
  CHECK(join_schedules({schedule, forms[1]}, {3})(array(4)).item<float>() == doctest::Approx(0.05));
}

TEST_CASE("a compiled step computes its schedule") {
  Adam eager({.learning_rate = cosine_decay(0.1f, 4)}), traced({.learning_rate = cosine_decay(0.1f, 4)});
  traced.init(start());
  int traces = 0;
  const TreeFunction step = tree_compile(
      [&](const std::vector<Tree>& in) {
        ++traces;
        return traced.apply_gradients(in[0], in[1]);
      },
      {.state = traced.state()});
  Tree a = start(), b = start();
  for (int s = 0; s < 5; ++s) {
    a = eager.apply_gradients(slopes_tree(s), a);
    b = step({slopes_tree(s), b});
    check_close(values(b), values(a), 1e-6);
    check_close({traced.learning_rate.item<float>()}, {eager.learning_rate.item<float>()}, 1e-8);
  }
  CHECK(traces == 1);
  CHECK(traced.step.item<int>() == 5);
}

TEST_CASE("several optimizers in their functional form") {
  MultiOptimizer both({std::make_shared<SGD>(SgdOptions{.learning_rate = 0.5f, .momentum = 0.9}),
                       std::make_shared<Adam>(AdamOptions{.learning_rate = 0.25f})},
                      {is_matrix});
  SGD sgd({.learning_rate = 0.5f, .momentum = 0.9});
  Adam adam({.learning_rate = 0.25f});
  Tree parameters = start(), a = start(), b = start();
  both.init(parameters);
  for (int s = 0; s < 2; ++s) {
    parameters = both.apply_gradients(slopes_tree(s), parameters);
    a = sgd.apply_gradients(slopes_tree(s), a);
    b = adam.apply_gradients(slopes_tree(s), b);
  }
  CHECK(paths(parameters) == paths(start()));
  CHECK(parameters["layer"]["weight"].leaf().to_vector<float>() == a["layer"]["weight"].leaf().to_vector<float>());
  CHECK(parameters["layer"]["bias"].leaf().to_vector<float>() == b["layer"]["bias"].leaf().to_vector<float>());
  CHECK(both.learning_rate.item<float>() == 0.5f);
  CHECK(both.step.item<int>() == 2);

  const Tree state = both.state_tree();
  REQUIRE(state["states"].size() == 2);
  CHECK(paths(state["states"][0]["layer"]) == std::vector<std::string>{"weight.v"});
  MultiOptimizer again({std::make_shared<SGD>(SgdOptions{.momentum = 0.9}), std::make_shared<Adam>()}, {is_matrix});
  again.set_state(state);
  CHECK(values(again.apply_gradients(slopes_tree(2), parameters)) ==
        values(both.apply_gradients(slopes_tree(2), parameters)));
  CHECK_THROWS_AS(again.set_state(Tree::dict()), std::invalid_argument);
  CHECK_THROWS_AS(both.init_single(array(1.0f)), std::invalid_argument);
  CHECK_THROWS_AS(MultiOptimizer({std::make_shared<Adam>()}, {is_matrix}), std::invalid_argument);
}

TEST_CASE("parameters of 16 bits: masters go on where they belong to the parameter") {
  const Tree precise = Tree::dict({{"w", array({1.0f, 1.0f})}}), slope = Tree::dict({{"w", full({2}, 1.0f)}});
  SGD sgd({.learning_rate = 1e-3f});
  Tree p = tree_map([](const array& x) { return astype(x, bfloat16); }, precise);
  for (int s = 0; s < 8; ++s) p = sgd.apply_gradients(slope, p);
  CHECK(p["w"].leaf().dtype() == bfloat16);
  CHECK(p["w"].leaf().to_vector<float>()[0] ==
        0.9921875f);  // 1 - 0.008, which eight steps of less than half a unit made
  CHECK(sgd.state_tree()["w"]["master"].leaf().to_vector<float>()[0] == doctest::Approx(0.992f));
  // Another value does not go back to the master.
  p = sgd.apply_gradients(slope, Tree::dict({{"w", full({2}, 2.0f, bfloat16)}}));
  CHECK(sgd.state_tree()["w"]["master"].leaf().to_vector<float>()[1] == doctest::Approx(1.999f));

  SGD nearest({.learning_rate = 1e-3f});
  nearest.set_rounding(Rounding::nearest);
  p = nearest.apply_gradients(slope, Tree::dict({{"w", full({2}, 1.0f, bfloat16)}}));
  CHECK_FALSE(nearest.state_tree().contains("w"));  // no master
  CHECK_THROWS_AS(nearest.set_rounding(Rounding::master), std::invalid_argument);
  SGD stochastic;
  stochastic.set_rounding(Rounding::stochastic, 3);
  CHECK_THROWS_AS(stochastic.init(Tree::dict({{"w", zeros({2}, float16)}})), std::invalid_argument);
  stochastic.init(Tree::dict({{"w", zeros({2}, bfloat16)}}));
  CHECK(paths(stochastic.state_tree()["w"]) == std::vector<std::string>{"rounding"});
}
