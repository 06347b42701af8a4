// Parameters of 16 bits: masters, rounding by chance, scaled losses.
#include <cmath>

#include "optim/support.h"
#include "weft/compile.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;
using namespace weft::optim;
using namespace weft::optim::test;

namespace {

std::vector<float> floats(const array& a) { return astype(a, float32).to_vector<float>(); }

/// One step of SGD that takes the parameter from `from` to `from + change` before it is rounded.
std::vector<float> stepped(const std::vector<float>& from, float change, Rounding rounding, uint64_t seed,
                           int steps = 1) {
  const int n = static_cast<int>(from.size());
  array p = astype(made(from, {n}), bfloat16);
  SGD optimizer({{"p", &p}}, {.learning_rate = 1});
  optimizer.set_rounding(rounding, seed);
  for (int k = 0; k < steps; ++k) optimizer.update({full({n}, array(-change, float32), float32)});
  return floats(p);
}

}  // namespace

TEST_CASE("stochastic rounding gives the two neighbours, and on average the number itself") {
  constexpr int n = 40000;
  // Between 1 and 2 the distance is 2^-7: 1 + x 2^-7 is rounded up with probability x. The same for negative numbers,
  // away from zero.
  for (const float share : {0.25f, 0.7f, 0.03125f})
    for (const float sign : {1.0f, -1.0f}) {
      CAPTURE(share);
      CAPTURE(sign);
      const float step = 1.0f / 128;
      int up = 0;
      for (const float v : stepped(std::vector<float>(n, sign), sign * share * step, Rounding::stochastic, 3)) {
        CHECK_UNARY(v == sign || v == sign * (1 + step));
        up += v != sign;
      }
      const double expected = share * n, deviation = std::sqrt(n * share * (1 - share));
      CHECK(std::abs(up - expected) < 5 * deviation);
    }
}

TEST_CASE("small steps: lost in rounding to nearest, kept by masters and by chance") {
  const std::vector<float> ones(4096, 1.0f);
  const float change = 1.0f / 2048;  // a sixteenth of the distance; 64 steps make 1/32
  const auto mean = [](const std::vector<float>& v) {
    double sum = 0;
    for (const float x : v) sum += static_cast<double>(x);
    return sum / static_cast<double>(v.size());
  };
  CHECK(mean(stepped(ones, change, Rounding::nearest, 0, 64)) == 1.0);
  CHECK(mean(stepped(ones, change, Rounding::master, 0, 64)) == 1 + 1.0 / 32);
  CHECK(mean(stepped(ones, change, Rounding::stochastic, 0, 64)) == doctest::Approx(1 + 1.0 / 32).epsilon(1e-3));
}

TEST_CASE("chance depends on seed, parameter, step and element, and on nothing else") {
  const std::vector<float> from(256, 1.0f);
  const float change = 1.0f / 256;
  const auto first = stepped(from, change, Rounding::stochastic, 7);
  CHECK(first == stepped(from, change, Rounding::stochastic, 7));
  CHECK(first != stepped(from, change, Rounding::stochastic, 8));
  std::string up;
  for (size_t i = 0; i < 48; ++i) up += first[i] > 1 ? '1' : '0';
  CHECK(up == "101011000101111100100100100010100000001101100101");  // on every device
  array a = astype(made(from, {256}), bfloat16), b = a;
  SGD optimizer({{"a", &a}, {"b", &b}}, {.learning_rate = 1});
  optimizer.set_rounding(Rounding::stochastic, 7);
  const array g = full({256}, array(-change, float32), float32);
  optimizer.update({g, g});
  CHECK(floats(a) == first);
  CHECK(floats(b) != first);
  const auto once = floats(a);
  a = astype(made(from, {256}), bfloat16);
  optimizer.update({g, g});
  CHECK(floats(a) != once);
}

TEST_CASE("what is not finite stays so, and float16 is refused") {
  const float inf = INFINITY;
  const auto out = stepped({inf, -inf, NAN, 3e38f}, 0, Rounding::stochastic, 1);
  CHECK(out[0] == inf);
  CHECK(out[1] == -inf);
  CHECK(std::isnan(out[2]));
  CHECK(out[3] == doctest::Approx(3e38).epsilon(0.01));
  array half = ones({4}, float16);
  SGD optimizer({{"half", &half}});
  CHECK_THROWS_WITH_AS(optimizer.set_rounding(Rounding::stochastic),
                       "[Optimizer.set_rounding] parameter half is float16; stochastic rounding is for bfloat16",
                       std::invalid_argument);
}

TEST_CASE("every rule with masters makes the steps of float32, rounded") {
  const auto each = [](auto make) {
    array exact = made(filled(64, [](int i) { return std::sin(0.3 * i); }), {8, 8}),
          start = astype(astype(exact, bfloat16), float32), half = astype(exact, bfloat16);
    eval(start, half);
    const std::unique_ptr<Optimizer> full_rule = make(Parameters{{"w", &start}}),
                                     half_rule = make(Parameters{{"w", &half}});
    for (int s = 0; s < 5; ++s) {
      const array g = astype(made(slope(s, 64, 0), {8, 8}), bfloat16);
      full_rule->update({astype(g, float32)});
      half_rule->update({g});
    }
    CHECK(half.dtype() == bfloat16);
    CHECK(half_rule->precise_parameters().at("w").to_vector<float>() == start.to_vector<float>());
    CHECK(floats(half) == floats(astype(start, bfloat16)));
  };
  each([](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<AdamW>(std::move(p)); });
  each([](Parameters p) -> std::unique_ptr<Optimizer> {
    return std::make_unique<SGD>(std::move(p), SgdOptions{.momentum = 0.9});
  });
  each([](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<Lion>(std::move(p)); });
  each([](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<RMSprop>(std::move(p)); });
  each([](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<Adafactor>(std::move(p)); });
}

TEST_CASE("masters begin with what their parameters were rounded from, and with nothing else") {
  const array precise = made({0.3f, 0.7f, -1.1f, 2.0f}, {4});
  const auto start = [&](const array& values, array& w, Rounding rounding = Rounding::master) {
    auto optimizer = std::make_unique<SGD>(Parameters{{"w", &w}}, SgdOptions{.learning_rate = 1});
    optimizer->set_rounding(rounding);
    optimizer->set_masters({{"w", values}, {"another", values}});
    return optimizer;
  };
  array w = astype(precise, bfloat16);
  const auto optimizer = start(precise, w);
  CHECK(floats(optimizer->precise_parameters().at("w")) == floats(precise));
  // 0.7 lies three tenths of a step of bfloat16 below where rounding changes, and its rounding five: an update of a
  // third of a step shows.
  optimizer->update({full({4}, array(-0.0013f), float32)});
  CHECK(floats(w) == floats(astype(precise + 0.0013f, bfloat16)));
  CHECK(floats(w)[1] != floats(astype(precise, bfloat16))[1]);

  // Where a parameter is something else by now, its master is that.
  array changed = astype(made({0.3f, 0.5f, -1.1f, NAN}, {4}), bfloat16);
  const auto masters = floats(start(precise, changed)->precise_parameters().at("w"));
  CHECK(std::vector<float>(masters.begin(), masters.begin() + 3) == std::vector<float>{0.3f, 0.5f, -1.1f});
  CHECK(std::isnan(masters[3]));

  array none = astype(precise, bfloat16);
  CHECK(floats(start(precise, none, Rounding::stochastic)->precise_parameters().at("w")) == floats(none));
  CHECK_THROWS_WITH_AS(start(zeros({2}), w), "[Optimizer.set_masters] w is (2) and should be (4)",
                       std::invalid_argument);

  array first = astype(precise, bfloat16), second = astype(made({1.7f}, {1}), bfloat16);
  const auto make = [](Parameters p) { return std::make_unique<SGD>(std::move(p)); };
  MultiOptimizer shares({{"a", &first}, {"b", &second}},
                        {{[](const std::string& name, const array&) { return name == "a"; }, make}, {every, make}});
  shares.set_masters({{"b", made({1.7f}, {1})}});
  CHECK(floats(shares.precise_parameters().at("b")) == std::vector<float>{1.7f});
  CHECK(floats(shares.precise_parameters().at("a")) == floats(first));
}

TEST_CASE("state of masters and of chance goes through named_state") {
  for (const Rounding rounding : {Rounding::master, Rounding::stochastic}) {
    array a = astype(made(filled(6, [](int i) { return 0.5 * std::cos(i); }), {2, 3}), bfloat16), b = a;
    const auto g = [](int s) { return std::vector<array>{made(slope(s, 6, 0), {2, 3})}; };
    AdamW first({{"w", &a}}), second({{"w", &b}});
    first.set_rounding(rounding, 11);
    second.set_rounding(rounding, 12);  // which the state overwrites
    for (int s = 0; s < 3; ++s) first.update(g(s));
    std::unordered_map<std::string, array> saved;
    for (const auto& [name, handle] : first.named_state()) saved.emplace(name, *handle);
    CHECK(saved.count(rounding == Rounding::master ? "master.w" : "rounding.w") == 1);
    b = a;
    second.load_state(saved);
    first.update(g(3));
    second.update(g(3));
    CHECK(floats(a) == floats(b));
  }
}

TEST_CASE("an update that is not to be made changes nothing") {
  for (const bool make : {false, true}) {
    Pair p;
    AdamW optimizer(p.parameters());
    run(optimizer, 0, 2);
    const auto before = p.values();
    std::vector<std::vector<float>> state;
    for (const auto& [name, handle] : optimizer.named_state()) state.push_back(floats(*handle));
    optimizer.update({full({2, 3}, array(NAN)), full({3}, array(1.0f))}, array(make));
    size_t k = 0;
    bool same = true;
    for (const auto& [name, handle] : optimizer.named_state()) same = same && floats(*handle) == state[k++];
    CHECK(same == !make);
    CHECK((p.values() == before) == !make);
  }
}

TEST_CASE("a scaled loss: too large a scale skips steps until it fits, and grows again") {
  // y = 8 w everywhere and d loss / dw = 2 w: times a scale of more than 2^16 it overflows in float16 where w is 1/4.
  array w = full({8, 8}, array(0.25f), float16);
  const array x = ones({8, 8}, float16);
  SGD optimizer({{"w", &w}}, {.learning_rate = 0.0625f});
  LossScale scale({.initial = 262144, .interval = 3});
  const auto slopes = value_and_grad(
      [&](const std::vector<array>& in) { return scale(mean(square(astype(matmul(x, in[0]), float32)))); });
  std::vector<array*> state = optimizer.state();
  state.push_back(&w);
  for (array* a : scale.state()) state.push_back(a);
  const auto step = compile(
      [&](const std::vector<array>&) {
        auto [scaled, gradients] = slopes({w});
        const array loss = scale.unscaled(scaled);
        return std::vector<array>{loss, scale.step(optimizer, gradients, 100.0f)};
      },
      {.state = state});
  float expected = 0.25f;
  std::vector<float> scales;
  for (int k = 0; k < 9; ++k) {
    const bool fits = 2 * expected * scale.scale.item<float>() < 65000;
    const auto out = step({});
    CHECK(out[0].item<float>() == doctest::Approx(64 * expected * expected).epsilon(4e-3));
    CHECK(out[1].item<bool>() == fits);
    if (fits) expected -= 0.0625f * 2 * expected;
    CHECK(floats(w)[5] == doctest::Approx(expected).epsilon(2e-3));
    scales.push_back(scale.scale.item<float>());
  }
  CHECK(std::vector<float>(scales.begin(), scales.begin() + 5) ==
        std::vector<float>{131072, 65536, 65536, 65536, 131072});
  CHECK(scale.skipped.item<int>() >= 2);
  CHECK(optimizer.step.item<int>() == 9 - scale.skipped.item<int>());
  std::unordered_map<std::string, array> saved;
  for (const auto& [name, handle] : scale.named_state()) saved.emplace(name, *handle);
  LossScale other;
  other.load_state(saved);
  CHECK(other.scale.item<float>() == scale.scale.item<float>());
  CHECK(other.skipped.item<int>() == scale.skipped.item<int>());
  CHECK_THROWS_AS(other.load_state({}), std::invalid_argument);
  CHECK_THROWS_AS(LossScale({.backoff = 1}), std::invalid_argument);
}
