// The rules against five steps at rates 0.01 … 0.05 (times `scale`) with slopes(): "PyTorch" is torch.optim 2.15 with
// weight_decay on the matrix alone, "MLX" is mlx.optimizers 0.32.4, whose decay takes every parameter.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "optim/support.h"
#include "runtime/trace.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::optim;
using namespace weft::optim::test;

namespace {

void run_scaled(Optimizer& optimizer, float scale) {
  for (int s = 0; s < 5; ++s) {
    optimizer.set_learning_rate(scale * 0.01f * static_cast<float>(s + 1));
    optimizer.update(slopes(s));
  }
}

template <class O, class Options>
std::vector<float> after(Options options, float scale = 1) {
  Pair p;
  O optimizer(p.parameters(), std::move(options));
  run_scaled(optimizer, scale);
  return p.values();
}

// The rate is the rule's own.
std::vector<float> after_adafactor(AdafactorOptions options) {
  Pair p;
  Adafactor optimizer(p.parameters(), std::move(options));
  for (int s = 0; s < 5; ++s) optimizer.update(slopes(s));
  return p.values();
}

}  // namespace

TEST_CASE("RMSprop gives PyTorch's and MLX's numbers") {
  check_close(after<RMSprop>(RmspropOptions{.alpha = 0.9, .eps = 1e-6, .weight_decay = 0.1, .decays = is_matrix}),
              {0.51633656f, 0.325027227f, -0.163820505f, -0.483118594f, -0.377834111f, 0.0845961049f, 0.157570601f,
               0.220561951f, 0.276626945f},
              1e-6);
  check_close(after<RMSprop>(RmspropOptions{.alpha = 0.9, .eps = 1e-6, .momentum = 0.5, .centered = true}),
              {0.437226444f, 0.221989319f, -0.19417432f, -0.455297023f, -0.32874608f, 0.251915693f, 0.0873637125f,
               0.227736861f, 0.334593356f},
              1e-6);
  check_close(after<RMSprop>(RmspropOptions{}),
              {0.656888127f, 0.437606573f, -0.0978140905f, -0.497766495f, -0.488753259f, 0.00714506209f, 0.258698344f,
               0.263024807f, 0.239748299f},
              1e-6);
}

TEST_CASE("Adagrad gives PyTorch's numbers") {
  check_close(after<Adagrad>(AdagradOptions{.weight_decay = 0.1, .initial_accumulator = 0.25, .decays = is_matrix}),
              {0.511181474f, 0.285375237f, -0.19518131f, -0.490696311f, -0.336872816f, 0.12319456f, 0.115998529f,
               0.20634228f, 0.294277221f},
              3e-7);
}

TEST_CASE("AdaDelta gives PyTorch's numbers") {
  check_close(after<AdaDelta>(AdadeltaOptions{.rho = 0.8, .eps = 1e-4, .weight_decay = 0.1, .decays = is_matrix}, 100),
              {0.605672777f, 0.383815825f, -0.146219432f, -0.488240212f, -0.440307289f, 0.00402737409f, 0.206847996f,
               0.220892817f, 0.256986618f},
              3e-6);
}

TEST_CASE("Adamax gives PyTorch's numbers") {
  check_close(after<Adamax>(AdamaxOptions{
                  .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .decays = is_matrix, .bias_correction = true}),
              {0.461075723f, 0.237504095f, -0.217792854f, -0.488660097f, -0.30423817f, 0.17018953f, 0.0717595294f,
               0.193789616f, 0.307332247f},
              5e-7);
}

TEST_CASE("Adam gives MLX's numbers: no bias correction by default") {
  check_close(after<Adam>(AdamOptions{.eps = 1e-6}),
              {0.300790936f, 0.0800874978f, -0.302140683f, -0.472638011f, -0.184142739f, 0.364766836f, -0.0510804467f,
               0.152267575f, 0.379290074f},
              2e-6);
}

TEST_CASE("Lamb gives the paper's steps, computed in double") {
  Pair p;
  std::vector<std::vector<double>> expected{std::vector<double>(6), std::vector<double>(3)};
  const std::vector<float> start = p.values();
  for (size_t k = 0; k < start.size(); ++k) expected[k / 6][k % 6] = static_cast<double>(start[k]);
  std::vector<std::vector<double>> m{std::vector<double>(6), std::vector<double>(3)}, v = m;
  for (int s = 0; s < 5; ++s) {
    const std::vector<array> gradients = slopes(s);
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<float> g = gradients[i].to_vector<float>();
      std::vector<double> u(g.size());
      double size = 0, step_size = 0;
      for (size_t k = 0; k < g.size(); ++k) {
        const double slope = static_cast<double>(g[k]);
        m[i][k] = 0.8 * m[i][k] + 0.2 * slope;
        v[i][k] = 0.95 * v[i][k] + 0.05 * slope * slope;
        const double c1 = 1 - std::pow(0.8, s + 1), c2 = 1 - std::pow(0.95, s + 1);
        u[k] = m[i][k] / c1 / (std::sqrt(v[i][k] / c2) + 1e-6) + (i == 0 ? 0.1 : 0) * expected[i][k];
        size += expected[i][k] * expected[i][k];
        step_size += u[k] * u[k];
      }
      for (size_t k = 0; k < g.size(); ++k) expected[i][k] -= 0.01 * (s + 1) * std::sqrt(size / step_size) * u[k];
    }
  }
  std::vector<float> all(expected[0].begin(), expected[0].end());
  all.insert(all.end(), expected[1].begin(), expected[1].end());
  check_close(after<Lamb>(LambOptions{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .decays = is_matrix}), all,
              1e-6);

  array zeros = array({0.0f, 0.0f});  // a norm of 0: the ratio is 1
  Lamb optimizer({{"w", &zeros}}, {.learning_rate = 0.5f});
  optimizer.update({array({1.0f, -2.0f})});
  check_close(zeros.to_vector<float>(), {-0.5f, 0.5f}, 1e-5);
}

TEST_CASE("SGD with dampening gives MLX's numbers") {
  check_close(after<SGD>(SgdOptions{.momentum = 0.9, .weight_decay = 0.1, .dampening = 0.3}),
              {0.439397216f, 0.220681131f, -0.219157144f, -0.465551585f, -0.278002381f, 0.182241455f, 0.063955389f,
               0.188638806f, 0.315574408f},
              3e-7);
}

TEST_CASE("Lion gives MLX's numbers") {
  check_close(after<Lion>(LionOptions{.weight_decay = 0.1}),
              {0.532850862f, 0.356030732f, -0.215061024f, -0.458182484f, -0.372116327f, 0.109267905f, 0.188417435f,
               0.186925918f, 0.324956298f},
              3e-7);
}

TEST_CASE("Muon gives MLX's numbers: wide and tall matrices, vectors as momentum") {
  check_close(after<Muon>(MuonOptions{.weight_decay = 0.1}),
              {0.498009264f, 0.272470683f, -0.197803587f, -0.483257413f, -0.321549416f, 0.134614885f, 0.0982627943f,
               0.199065715f, 0.300010175f},
              2e-6);
  Pair p;
  p.w = reshape(p.w, {3, 2});
  Muon optimizer(p.parameters(), {.weight_decay = 0, .nesterov = false});
  for (int s = 0; s < 5; ++s) {
    optimizer.set_learning_rate(0.01f * static_cast<float>(s + 1));
    const auto g = slopes(s);
    optimizer.update({reshape(g[0], {3, 2}), g[1]});
  }
  check_close(p.values(),
              {0.48542282f, 0.255514443f, -0.249992803f, -0.467770398f, -0.326494396f, 0.165722787f, 0.0967406109f,
               0.199098215f, 0.301879972f},
              2e-6);
}

TEST_CASE("Adafactor gives MLX's numbers") {
  check_close(after_adafactor({}),
              {0.50064081f, 0.269645125f, -0.20802398f, -0.496836782f, -0.328361958f, 0.141472921f, 0.100132272f,
               0.199815154f, 0.299347132f},
              5e-7);
  check_close(after_adafactor({.eps2 = 1e-2, .beta1 = 0.9, .weight_decay = 0.1, .warmup_init = true}),
              {0.499999702f, 0.270151079f, -0.208073094f, -0.494995832f, -0.326821536f, 0.141830981f, 0.100000069f,
               0.200000077f, 0.300000042f},
              2e-7);
  check_close(after<Adafactor>(AdafactorOptions{
                  .learning_rate = 0.1f, .clip_threshold = 0.5, .scale_parameter = false, .relative_step = false}),
              {0.525685608f, 0.297615081f, -0.190753505f, -0.496774167f, -0.346939534f, 0.113145813f, 0.123844981f,
               0.205311552f, 0.287288487f},
              1e-6);
}

TEST_CASE("Adafactor keeps a row and a column of each matrix, for any number of axes") {
  array w = made(slope(0, 24, 0), {2, 3, 4});
  Adafactor optimizer({{"w", &w}}, {});
  const auto names = optimizer.named_state();
  REQUIRE(names.size() == 5);
  CHECK(names[3].first == "exp_avg_sq_row.w");
  CHECK(names[3].second->shape() == Shape{2, 3});
  CHECK(names[4].first == "exp_avg_sq_col.w");
  CHECK(names[4].second->shape() == Shape{2, 4});
  // Each of the leading matrices is scaled by itself.
  array first = slice(w, {0, 0, 0}, {1, 3, 4});
  Adafactor alone({{"w", &first}}, {.clip_threshold = 1e9, .scale_parameter = false});
  array all = w;
  Adafactor together({{"w", &all}}, {.clip_threshold = 1e9, .scale_parameter = false});
  const array g = made(slope(1, 24, 3), {2, 3, 4});
  alone.update({slice(g, {0, 0, 0}, {1, 3, 4})});
  together.update({g});
  check_close(slice(all, {0, 0, 0}, {1, 3, 4}).to_vector<float>(), first.to_vector<float>(), 1e-7);
}

TEST_CASE("MultiOptimizer: each share as if it were alone") {
  Pair mixed, alone;
  MultiOptimizer optimizer(mixed.parameters(),
                           {{is_matrix, [](Parameters p) { return std::make_unique<Lion>(std::move(p)); }},
                            {every, [](Parameters p) { return std::make_unique<AdamW>(std::move(p)); }}});
  Lion lion({{"layer.weight", &alone.w}});
  AdamW adam({{"layer.bias", &alone.b}});
  for (int s = 0; s < 3; ++s) {
    for (Optimizer* o : std::vector<Optimizer*>{&optimizer, &lion, &adam})
      o->set_learning_rate(0.01f * static_cast<float>(s + 1));
    const auto g = slopes(s);
    optimizer.update(g);
    lion.update({g[0]});
    adam.update({g[1]});
  }
  CHECK(mixed.values() == alone.values());
  CHECK(optimizer.step.item<int>() == 3);

  std::unordered_map<std::string, array> saved;
  for (const auto& [name, handle] : optimizer.named_state()) saved.emplace(name, *handle);
  CHECK(saved.count("0.exp_avg.layer.weight") == 1);
  CHECK(saved.count("1.exp_avg_sq.layer.bias") == 1);
  Pair resumed;
  resumed.w = mixed.w;
  resumed.b = mixed.b;
  MultiOptimizer again(resumed.parameters(),
                       {{is_matrix, [](Parameters p) { return std::make_unique<Lion>(std::move(p)); }},
                        {every, [](Parameters p) { return std::make_unique<AdamW>(std::move(p)); }}});
  again.load_state(saved);
  optimizer.update(slopes(3));
  again.update(slopes(3));
  CHECK(resumed.values() == mixed.values());

  const auto sgd = [](Parameters p) { return std::make_unique<SGD>(std::move(p)); };
  CHECK_THROWS_WITH_AS(MultiOptimizer(mixed.parameters(), {{is_matrix, sgd}}),
                       "[MultiOptimizer] no share takes the parameter layer.bias; end with a share of optim::every",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(MultiOptimizer(mixed.parameters(), {{every, sgd}, {is_matrix, sgd}}),
                       "[MultiOptimizer] share 1 takes no parameter", std::invalid_argument);
}

TEST_CASE("the elementwise rules update all parameters in at most two kernels") {
  const std::vector<std::function<std::unique_ptr<Optimizer>(Parameters)>> makers{
      [](Parameters p) { return std::make_unique<SGD>(std::move(p), SgdOptions{.momentum = 0.9}); },
      [](Parameters p) { return std::make_unique<Lion>(std::move(p)); },
      [](Parameters p) {
        return std::make_unique<RMSprop>(std::move(p), RmspropOptions{.momentum = 0.5, .centered = true});
      },
      [](Parameters p) { return std::make_unique<Adagrad>(std::move(p)); },
      [](Parameters p) { return std::make_unique<AdaDelta>(std::move(p)); },
      [](Parameters p) { return std::make_unique<Adamax>(std::move(p)); }};
  for (size_t k = 0; k < makers.size(); ++k) {
    CAPTURE(k);
    std::vector<array> values, gradients;
    Parameters parameters;
    for (const int n : {3, 8, 5, 16}) values.push_back(made(slope(n, 6 * n, 1), {n, 6}));
    for (size_t i = 0; i < values.size(); ++i) {
      parameters.emplace_back("p" + std::to_string(i), &values[i]);
      gradients.push_back(made(slope(5, static_cast<int>(values[i].size()), 2), values[i].shape()));
    }
    const auto optimizer = makers[k](parameters);
    auto state = optimizer->state();
    for (auto& v : values) state.push_back(&v);
    const auto step = compile(
        [&](const std::vector<array>& in) {
          optimizer->update(in);
          return std::vector<array>{};
        },
        {.state = state});
    step(gradients);
    const int64_t launches = runtime::counters().kernel_launches, copies = runtime::counters().copies;
    step(gradients);
    CHECK(runtime::counters().kernel_launches - launches <= 2);
    CHECK(runtime::counters().copies == copies);
  }
}

TEST_CASE("options out of range are named") {
  Pair p;
  CHECK_THROWS_WITH_AS(RMSprop(p.parameters(), {.alpha = 1}),
                       "[RMSprop] alpha must be at least 0 and less than 1; got 1.000000", std::invalid_argument);
  CHECK_THROWS_AS(Adagrad(p.parameters(), {.eps = -1}), std::invalid_argument);
  CHECK_THROWS_AS(AdaDelta(p.parameters(), {.rho = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(Lion(p.parameters(), {.beta2 = 1}), std::invalid_argument);
  CHECK_THROWS_AS(Muon(p.parameters(), {.ns_steps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Adamax(p.parameters(), {.beta1 = 1}), std::invalid_argument);
  CHECK_THROWS_AS(Adafactor(p.parameters(), {.clip_threshold = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Adafactor(p.parameters(), {.relative_step = false}), std::invalid_argument);
  CHECK_THROWS_AS(SGD(p.parameters(), {.momentum = 0.9, .nesterov = true, .dampening = 0.1}), std::invalid_argument);
}

// MLX's values at these steps.
TEST_CASE("MLX's schedules") {
  const std::vector<int64_t> steps{0, 1, 5, 9, 10, 11, 37, 99, 100, 101, 250};
  const auto check = [&](const Schedule& schedule, const std::vector<double>& expected) {
    for (size_t i = 0; i < steps.size(); ++i) {
      INFO("step ", steps[i]);
      CHECK(std::abs(static_cast<double>(schedule(steps[i])) - expected[i]) <= 1e-7);
    }
  };
  check(exponential_decay(0.1f, 0.9f), {0.1, 0.0899999961, 0.0590489917, 0.0387420394, 0.0348678343, 0.031381052,
                                        0.00202755397, 2.95125892e-06, 2.65613289e-06, 2.39051951e-06, 3.63600507e-13});
  check(step_decay(0.1f, 0.9f, 10), {0.1, 0.1, 0.1, 0.1, 0.0899999961, 0.0899999961, 0.0728999898, 0.0387420394,
                                     0.0348678343, 0.0348678343, 0.0071789748});
  check(cosine_decay(0.1f, 100, 0.01f), {0.1, 0.0999777913, 0.0994459763, 0.0982132182, 0.0977975428, 0.0973396376,
                                         0.0728716478, 0.0100222062, 0.01, 0.01, 0.01});
  check(linear_schedule(0, 0.1f, 100), {0, 0.001, 0.005, 0.009, 0.01, 0.011, 0.037, 0.099, 0.1, 0.1, 0.1});
  check(join_schedules({linear_schedule(0, 0.1f, 10), cosine_decay(0.1f, 200)}, {10}),
        {0, 0.01, 0.05, 0.09, 0.1, 0.0999938324, 0.0955701694, 0.0585964508, 0.0578217208, 0.0570450537, 0});
  CHECK_THROWS_AS(linear_schedule(0, 1, 0), std::invalid_argument);
  CHECK_THROWS_AS(step_decay(1, 0.5f, 0), std::invalid_argument);
  CHECK_THROWS_AS(cosine_decay(1, 0), std::invalid_argument);
  CHECK_THROWS_AS(join_schedules({constant_schedule(1)}, {10}), std::invalid_argument);
  CHECK_THROWS_AS(join_schedules({constant_schedule(1), constant_schedule(2), constant_schedule(3)}, {10, 5}),
                  std::invalid_argument);
}
