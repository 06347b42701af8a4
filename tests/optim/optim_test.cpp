#include <doctest/doctest.h>

#include "optim/support.h"
#include "runtime/trace.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::optim;
using namespace weft::optim::test;

// Five steps at rates 0.01 … 0.05 in PyTorch 2.
TEST_CASE("AdamW gives PyTorch's numbers") {
  Pair p;
  AdamW optimizer(
      p.parameters(),
      {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .decays = is_matrix, .bias_correction = true});
  run(optimizer, 0, 5);
  check_close(p.values(),
              {0.450779676f, 0.220983252f, -0.230880708f, -0.488629043f, -0.296182692f, 0.190815046f, 0.0619964451f,
               0.183536187f, 0.311588407f},
              3e-7);
  CHECK(optimizer.step.item<int>() == 5);
  CHECK(optimizer.learning_rate.item<float>() == 0.05f);
}

TEST_CASE("Adam gives PyTorch's numbers: decay goes through the gradient") {
  Pair p;
  Adam optimizer(p.parameters(), {.eps = 1e-6, .weight_decay = 0.1, .decays = is_matrix, .bias_correction = true});
  run(optimizer, 0, 5);
  check_close(p.values(),
              {0.440120518f, 0.220894963f, -0.230516642f, -0.48688817f, -0.295007586f, 0.191155016f, 0.0621194951f,
               0.183679521f, 0.31157279f},
              1e-6);
}

TEST_CASE("SGD gives PyTorch's numbers: plain, momentum, Nesterov") {
  Pair plain, heavy, nesterov;
  SGD a(plain.parameters(), {.weight_decay = 0.1, .decays = is_matrix});
  run(a, 0, 5);
  check_close(plain.values(),
              {0.52972126f, 0.304733366f, -0.183085248f, -0.492748201f, -0.351686656f, 0.0993585289f, 0.133399382f,
               0.211074606f, 0.283541292f},
              2e-7);
  SGD b(heavy.parameters(), {.momentum = 0.9});
  run(b, 0, 5);
  check_close(heavy.values(),
              {0.436103761f, 0.211154982f, -0.234422669f, -0.476306081f, -0.271882564f, 0.207180649f, 0.0522507541f,
               0.192646027f, 0.336499989f},
              2e-7);
  SGD c(nesterov.parameters(), {.momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .decays = is_matrix});
  run(c, 0, 5);
  check_close(nesterov.values(),
              {0.453307629f, 0.242541894f, -0.196723118f, -0.455332428f, -0.290126026f, 0.149963185f, 0.0904250517f,
               0.204456031f, 0.316391289f},
              2e-7);
}

TEST_CASE("AdamW against the textbook in double precision, 300 steps") {
  Pair p;
  AdamW optimizer(p.parameters(), {.weight_decay = 0.05, .decays = is_matrix, .bias_correction = true});
  optimizer.set_learning_rate(0.003f);
  const auto start = p.values();
  std::vector<double> value(start.begin(), start.end()), m(9, 0), v(9, 0);
  for (int s = 0; s < 300; ++s) {
    optimizer.update(slopes(s));
    std::vector<array> now{p.w, p.b};  // state that is never read would grow into a long graph
    for (const array* a : optimizer.state()) now.push_back(*a);
    eval(now);
    const auto gw = slope(s, 6, 0), gb = slope(s, 3, 1);
    for (size_t i = 0; i < 9; ++i) {
      const double g = i < 6 ? gw[i] : gb[i - 6], rate = static_cast<double>(0.003f);
      if (i < 6) value[i] -= rate * 0.05 * value[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double mh = m[i] / (1 - std::pow(0.9, s + 1)), vh = v[i] / (1 - std::pow(0.999, s + 1));
      value[i] -= rate * mh / (std::sqrt(vh) + 1e-8);
    }
  }
  std::vector<float> expected(value.begin(), value.end());
  check_close(p.values(), expected, 2e-5);
}

TEST_CASE("state: names, order, and a resumed run equals an uninterrupted one") {
  Pair through, stopped, resumed;
  AdamW a(through.parameters(), {.weight_decay = 0.1}), b(stopped.parameters(), {.weight_decay = 0.1});
  run(a, 0, 6);
  run(b, 0, 3);
  std::vector<std::string> names;
  std::unordered_map<std::string, array> saved;
  for (auto& [name, handle] : b.named_state()) {
    names.push_back(name);
    saved.emplace(name, *handle);
  }
  CHECK(names == std::vector<std::string>{"learning_rate", "step", "correction1", "correction2", "exp_avg.layer.weight",
                                          "exp_avg_sq.layer.weight", "exp_avg.layer.bias", "exp_avg_sq.layer.bias"});
  CHECK(b.state().size() == names.size() + 2);  // and the two decays
  CHECK(b.state()[0] == &b.learning_rate);
  CHECK(b.state() == b.state());
  resumed.w = stopped.w;
  resumed.b = stopped.b;
  AdamW c(resumed.parameters(), {.weight_decay = 0.1});
  c.load_state(saved);
  run(c, 3, 6);
  CHECK(resumed.values() == through.values());

  auto broken = saved;
  broken.erase("step");
  CHECK_THROWS_WITH_AS(c.load_state(broken), "[Optimizer.load_state] the state lacks step", std::invalid_argument);
  broken = saved;
  broken.emplace("odd", array(1.0f));
  CHECK_THROWS_WITH_AS(c.load_state(broken), "[Optimizer.load_state] odd is not part of this optimizer's state",
                       std::invalid_argument);
  broken = saved;
  broken.at("exp_avg.layer.bias") = zeros({4});
  CHECK_THROWS_AS(c.load_state(broken), std::invalid_argument);
}

TEST_CASE("which parameters decay is a predicate") {
  Pair p;
  const auto zero = [&] { return std::vector<array>{zeros({2, 3}), zeros({3})}; };
  AdamW standard(p.parameters(), {.learning_rate = 0.1f, .weight_decay = 0.5, .decays = is_matrix});
  const auto before = p.values();
  standard.update(zero());
  auto after = p.values();
  for (size_t i = 0; i < 6; ++i) CHECK(after[i] == doctest::Approx(before[i] * 0.95));
  for (size_t i = 6; i < 9; ++i) CHECK(after[i] == before[i]);
  AdamW chosen(p.parameters(), {.learning_rate = 0.1f,
                                .weight_decay = 0.5,
                                .decays = [](const std::string& name, const array&) { return name == "layer.bias"; }});
  chosen.update(zero());
  const auto last = p.values();
  for (size_t i = 0; i < 6; ++i) CHECK(last[i] == after[i]);
  for (size_t i = 6; i < 9; ++i) CHECK(last[i] == doctest::Approx(after[i] * 0.95));
}

TEST_CASE("bfloat16 parameters have float32 masters: small steps are not lost") {
  array w = full({4}, array(1.0f), bfloat16);
  SGD optimizer({{"w", &w}}, {.learning_rate = 1e-3f});
  for (int s = 0; s < 10; ++s) optimizer.update({ones({4}, bfloat16)});
  CHECK(w.dtype() == bfloat16);
  auto state = optimizer.named_state();
  REQUIRE(state.back().first == "master.w");
  CHECK(state.back().second->dtype() == float32);
  CHECK(state.back().second->to_vector<float>()[0] == doctest::Approx(0.99).epsilon(1e-5));
  CHECK(w.to_vector<float>()[0] == doctest::Approx(0.99).epsilon(4e-3));
  CHECK(w.to_vector<float>()[0] < 1);  // one step of 0.001 alone would round back to 1
}

TEST_CASE("a compiled step: the rate is a buffer, the state is carried") {
  Pair eager, compiled;
  AdamW a(eager.parameters(), {.weight_decay = 0.1}), b(compiled.parameters(), {.weight_decay = 0.1});
  run(a, 0, 5);
  auto state = b.state();
  state.push_back(&compiled.w);
  state.push_back(&compiled.b);
  int traced = 0;
  const auto step = compile(
      [&](const std::vector<array>& in) {
        ++traced;
        b.update(in);
        return std::vector<array>{sum(compiled.b)};
      },
      {.state = state});
  for (int s = 0; s < 5; ++s) {
    b.set_learning_rate(static_cast<float>(0.01 * (s + 1)));
    step(slopes(s));
  }
  CHECK(traced == 1);
  check_close(compiled.values(), eager.values(), 1e-7);
}

TEST_CASE("AdamW over all parameters is at most two kernels, and copies nothing") {
  std::vector<array> values, gradients;
  for (const int n : {3, 8, 5, 16, 7, 2, 9, 4}) {
    values.push_back(made(slope(n, n, 0), {n}));
    values.push_back(made(slope(n, 6 * n, 1), {n, 6}));
  }
  Parameters parameters;
  for (size_t i = 0; i < values.size(); ++i) {
    parameters.emplace_back("p" + std::to_string(i), &values[i]);
    gradients.push_back(made(slope(5, static_cast<int>(values[i].size()), 2), values[i].shape()));
  }
  AdamW optimizer(parameters, {.weight_decay = 0.1});
  auto state = optimizer.state();
  for (auto& v : values) state.push_back(&v);
  const auto step = compile(
      [&](const std::vector<array>& in) {
        optimizer.update(in);
        return std::vector<array>{};
      },
      {.state = state});
  step(gradients);
  const auto& count = runtime::counters();
  const int64_t launches = count.kernel_launches, calls = count.library_calls, copies = count.copies;
  optimizer.set_learning_rate(0.5f);
  step(gradients);
  CHECK(count.kernel_launches - launches >= 1);
  CHECK(count.kernel_launches - launches <= 2);
  CHECK(count.library_calls == calls);
  CHECK(count.copies == copies);
}

TEST_CASE("mistakes are named") {
  Pair p;
  AdamW optimizer(p.parameters());
  CHECK_THROWS_WITH_AS(optimizer.update({zeros({2, 3})}), "[Optimizer.update] 1 gradients for 2 parameters",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(optimizer.update({zeros({2, 3}), zeros({2})}),
                       "[Optimizer.update] the gradient of layer.bias has shape (2), the parameter (3)",
                       std::invalid_argument);
  CHECK_THROWS_AS(AdamW(Parameters{}), std::invalid_argument);
  CHECK_THROWS_AS(AdamW(p.parameters(), {.beta1 = 1.0}), std::invalid_argument);
  CHECK_THROWS_AS(SGD(p.parameters(), {.nesterov = true}), std::invalid_argument);
  array ids = zeros({3}, int32);
  CHECK_THROWS_WITH_AS(SGD({{"ids", &ids}}),
                       "[Optimizer] parameter ids is int32; only floating parameters can be optimized",
                       std::invalid_argument);
}

TEST_CASE("clip_grad_norm gives PyTorch's numbers") {
  const auto [clipped, norm] = clip_grad_norm(slopes(0), 0.5f);
  CHECK(norm.item<float>() == doctest::Approx(2.12467551).epsilon(1e-6));
  check_close(clipped[0].to_vector<float>(),
              {0, 0.151603714f, 0.231905833f, 0.203139007f, 0.0788327381f, -0.0825497955f}, 1e-7);
  check_close(clipped[1].to_vector<float>(), {0.198023304f, 0.233368427f, 0.158956721f}, 1e-7);
  const auto [same, again] = clip_grad_norm(slopes(0), 10.0f);
  CHECK(same[0].to_vector<float>() == slope(0, 6, 0));
  CHECK(clip_grad_norm({astype(slopes(0)[0], bfloat16)}, 0.5f).first[0].dtype() == bfloat16);
  CHECK_THROWS_AS(clip_grad_norm({}, 1.0f), std::invalid_argument);
  // mlx.optimizers.clip_grad_norm(grads, 0.0)
  check_close(clip_grad_norm(slopes(0), 0.0f).first[0].to_vector<float>(), {0, 0, 0, 0, 0, 0}, 0);
  CHECK_THROWS_AS(clip_grad_norm(slopes(0), -1.0f), std::invalid_argument);
}

TEST_CASE("schedules: nanoGPT's values") {
  const auto rate = cosine_schedule(1e-3f, 1e-4f, 100, 2000);
  const std::pair<int64_t, double> expected[] = {
      {0, 9.9009901e-06}, {1, 1.98019802e-05},    {99, 0.00099009901}, {100, 0.001},   {101, 0.000999999385},
      {1050, 0.00055},    {1999, 0.000100000615}, {2000, 0.0001},      {2001, 0.0001}, {9999, 0.0001}};
  for (const auto& [step, value] : expected) {
    const auto& captured = step;  // clang 14 takes no binding of a structure into a lambda
    INFO("step ", captured);
    CHECK(static_cast<double>(rate(step)) == doctest::Approx(value).epsilon(1e-6));
  }
  CHECK(cosine_schedule(1, 0, 0, 10)(0) == 1);
  CHECK(cosine_schedule(1, 0.5f, 10, 10)(10) == 0.5f);
  CHECK(constant_schedule(0.25f)(123) == 0.25f);
  CHECK_THROWS_AS(cosine_schedule(1, 0, 11, 10), std::invalid_argument);
}
