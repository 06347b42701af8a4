#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "models/gpt.h"

using namespace weft::models;

namespace {

const std::vector<float> logits{0.5f, 2.0f, -1.0f, 1.0f, 2.0f};

std::vector<double> shares(SamplerOptions options, int draws = 20000) {
  Sampler sampler(options);
  std::vector<double> out(logits.size(), 0);
  for (int k = 0; k < draws; ++k) out[static_cast<size_t>(sampler(logits))] += 1.0 / draws;
  return out;
}

std::vector<double> softmax(double temperature, const std::vector<bool>& kept) {
  std::vector<double> out(logits.size(), 0);
  double total = 0;
  for (size_t i = 0; i < out.size(); ++i)
    total += out[i] = kept[i] ? std::exp(static_cast<double>(logits[i]) / temperature) : 0;
  for (double& v : out) v /= total;
  return out;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("token ", i);
    CHECK(std::abs(a[i] - b[i]) < 0.015);
    CHECK((a[i] == 0) == (b[i] == 0));
  }
}

}  // namespace

TEST_CASE("temperature 0 takes the first of the most likely tokens") {
  Sampler greedy({.temperature = 0});
  for (int k = 0; k < 10; ++k) CHECK(greedy(logits) == 1);
}

TEST_CASE("shares follow the softmax at the temperature") {
  check_near(shares({.seed = 1}), softmax(1, {true, true, true, true, true}));
  check_near(shares({.temperature = 2, .seed = 2}), softmax(2, {true, true, true, true, true}));
}

TEST_CASE("top-k and top-p keep the most likely tokens") {
  check_near(shares({.top_k = 3, .seed = 3}), softmax(1, {false, true, false, true, true}));
  check_near(shares({.top_k = 100, .seed = 3}), softmax(1, {true, true, true, true, true}));
  const auto one = shares({.top_k = 1, .seed = 4});
  CHECK(one[1] == doctest::Approx(1));
  // Probabilities are about 0.07 0.38 0.02 0.14 0.38: 0.7 takes the two largest, 0.8 a third.
  check_near(shares({.top_p = 0.7f, .seed = 5}), softmax(1, {false, true, false, false, true}));
  check_near(shares({.top_p = 0.8f, .seed = 6}), softmax(1, {false, true, false, true, true}));
  CHECK(shares({.top_p = 1e-6f})[1] == doctest::Approx(1));
}

TEST_CASE("draws are a function of the seed") {
  Sampler a({.seed = 9}), b({.seed = 9}), c({.seed = 10});
  bool differs = false;
  for (int k = 0; k < 100; ++k) {
    const int32_t drawn = a(logits);
    CHECK(drawn == b(logits));
    differs = differs || drawn != c(logits);
  }
  CHECK(differs);
}

TEST_CASE("odd logits and impossible options") {
  const float inf = std::numeric_limits<float>::infinity();
  Sampler sampler({});
  for (int k = 0; k < 20; ++k) CHECK(sampler(std::vector<float>{-inf, 0.0f, -inf}) == 1);
  CHECK_THROWS_AS(sampler(std::vector<float>{0.0f, std::nanf("")}), std::invalid_argument);
  CHECK_THROWS_AS(sampler(std::vector<float>{}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({.temperature = -1}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({.temperature = inf}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({.top_k = -1}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({.top_p = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({.top_p = 1.5f}), std::invalid_argument);
}
