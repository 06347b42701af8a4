#include <doctest/doctest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "nn/support.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::nn::test;

TEST_CASE("Linear is x Wᵀ + b") {
  nn::Linear layer(3, 2);
  layer.weight = waves({2, 3}, 0.1);
  *layer.bias = waves({2}, 0.5);
  const auto w = wave(6, 0.1), b = wave(2, 0.5), x = wave(12, 1.0);
  std::vector<float> expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t o = 0; o < 2; ++o) {
      double sum = b[o];
      for (size_t i = 0; i < 3; ++i) sum += static_cast<double>(x[r * 3 + i]) * static_cast<double>(w[o * 3 + i]);
      expected.push_back(static_cast<float>(sum));
    }
  const array y = layer(waves({2, 2, 3}, 1.0));
  CHECK(y.shape() == Shape{2, 2, 2});
  check_close(y, expected);
  CHECK(layer(astype(waves({2, 3}, 1.0), bfloat16)).dtype() == bfloat16);
  CHECK(layer.weight.value().dtype() == float32);
}

TEST_CASE("starting values: ranges and deviations") {
  random::seed(7);
  nn::Linear layer(256, 128);
  const auto w = layer.weight.value().to_vector<float>();
  double sum = 0, square_sum = 0, top = 0;
  for (const float v : w) {
    sum += v;
    square_sum += static_cast<double>(v) * v;
    top = std::max(top, std::abs(static_cast<double>(v)));
  }
  const double bound = 1.0 / 16, n = static_cast<double>(w.size());
  CHECK(top <= bound);
  CHECK(top > 0.99 * bound);
  CHECK(std::abs(sum / n) < 0.01 * bound);
  CHECK(std::abs(square_sum / n - bound * bound / 3) < 0.02 * bound * bound);
  const auto e = nn::Embedding(100, 64).weight.value().to_vector<float>();
  double variance = 0;
  for (const float v : e) variance += static_cast<double>(v) * v / static_cast<double>(e.size());
  CHECK(std::abs(variance - 1.0 / 64) < 0.06 / 64);
}

TEST_CASE("Embedding takes rows, and as_linear scores them") {
  nn::Embedding table(5, 3);
  table.weight = waves({5, 3}, 0.2);
  const auto w = wave(15, 0.2);
  const array rows = table(array({4, 0, 0}, {3, 1}, int32));
  CHECK(rows.shape() == Shape{3, 1, 3});
  check_close(rows, {w[12], w[13], w[14], w[0], w[1], w[2], w[0], w[1], w[2]}, 0);
  const array scores = table.as_linear(array({1.0f, 0.0f, 2.0f}, {1, 3}));
  std::vector<float> expected;
  for (size_t r = 0; r < 5; ++r) expected.push_back(w[r * 3] + 2 * w[r * 3 + 2]);
  check_close(scores, expected);
}

TEST_CASE("LayerNorm") {
  nn::LayerNorm norm(4);
  *norm.weight = waves({4}, 0.3);
  *norm.bias = waves({4}, 0.9);
  const auto x = wave(8, 2), w = wave(4, 0.3), b = wave(4, 0.9);
  std::vector<float> expected;
  for (size_t r = 0; r < 2; ++r) {
    double mean_value = 0, variance = 0;
    for (size_t i = 0; i < 4; ++i) mean_value += x[r * 4 + i] / 4.0;
    for (size_t i = 0; i < 4; ++i) variance += (x[r * 4 + i] - mean_value) * (x[r * 4 + i] - mean_value) / 4.0;
    for (size_t i = 0; i < 4; ++i)
      expected.push_back(static_cast<float>((x[r * 4 + i] - mean_value) / std::sqrt(variance + 1e-5) * w[i] + b[i]));
  }
  check_close(norm(waves({2, 4}, 2)), expected);
}

TEST_CASE("Dropout: identity in eval; in training zeroes a share p and keeps the mean") {
  random::seed(11);
  nn::Dropout drop(0.25f);
  const array x = ones({100, 100});
  auto count_zeros = [&](const std::vector<float>& v) {
    int64_t zeros_found = 0;
    for (const float e : v) {
      if (e == 0) ++zeros_found;
      else CHECK(e == doctest::Approx(1 / 0.75));
    }
    return zeros_found;
  };
  const auto once = drop(x).to_vector<float>(), again = drop(x).to_vector<float>();
  CHECK(std::abs(static_cast<double>(count_zeros(once)) - 2500) < 5 * std::sqrt(10000 * 0.25 * 0.75));
  CHECK(once != again);
  CHECK(drop(astype(x, bfloat16)).dtype() == bfloat16);
  drop.eval();
  check_close(drop(x), std::vector<float>(10000, 1.0f), 0);
}

TEST_CASE("attention: against loops, causal and not") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    nn::SelfAttention attention(4, 2, {.bias = false, .causal = causal});
    attention.c_attn.weight = waves({12, 4}, 0.4);
    attention.c_proj.weight = eye(4, 4, 0, float32);
    const auto w = wave(48, 0.4), x = wave(12, 1.5);
    double qkv[3][12];
    for (size_t t = 0; t < 3; ++t)
      for (size_t o = 0; o < 12; ++o) {
        qkv[t][o] = 0;
        for (size_t i = 0; i < 4; ++i) qkv[t][o] += static_cast<double>(x[t * 4 + i]) * w[o * 4 + i];
      }
    std::vector<float> expected;
    for (size_t t = 0; t < 3; ++t)
      for (size_t o = 0; o < 4; ++o) {
        const size_t head = o / 2;
        double total = 0, value = 0;
        for (size_t s = 0; s < (causal ? t + 1 : 3); ++s) {
          double score = 0;
          for (size_t d = 0; d < 2; ++d) score += qkv[t][head * 2 + d] * qkv[s][4 + head * 2 + d];
          const double weight = std::exp(score / std::sqrt(2.0));
          total += weight;
          value += weight * qkv[s][8 + o];
        }
        expected.push_back(static_cast<float>(value / total));
      }
    check_close(attention(waves({1, 3, 4}, 1.5)), expected);
  }
}

TEST_CASE("attention whose weights are not dropped is the plain one while training, bit by bit") {
  nn::CausalSelfAttention attention(64, 2, true, 0.5f);
  const array x = waves({2, 40, 64}, 0.8);
  attention.attn_dropout.p = 0;
  attention.resid_dropout.p = 0;
  const auto trained = attention(x).to_vector<float>();
  attention.eval();
  CHECK(attention(x).to_vector<float>() == trained);
}

TEST_CASE("attention with dropout: eval gives the plain result, training varies around it") {
  random::seed(3);
  nn::CausalSelfAttention attention(8, 2, true, 0.1f);
  const array x = waves({2, 5, 8}, 0.8);
  const auto trained = attention(x).to_vector<float>(), again = attention(x).to_vector<float>();
  CHECK(trained != again);
  attention.eval();
  const auto plain = attention(x).to_vector<float>();
  check_close(attention(x), plain, 0);
  // The mean over many draws approaches the plain result; the first position sees itself only.
  attention.train();
  std::vector<double> mean_value(plain.size(), 0);
  const int draws = 400;
  for (int k = 0; k < draws; ++k) {
    const auto drawn = attention(x).to_vector<float>();
    for (size_t i = 0; i < drawn.size(); ++i) mean_value[i] += drawn[i] / static_cast<double>(draws);
  }
  double error = 0, size = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    error += std::abs(mean_value[i] - plain[i]);
    size += std::abs(static_cast<double>(plain[i]));
  }
  CHECK(error < 0.1 * size);
}

TEST_CASE("activations: values from PyTorch") {
  const array x = array({-0.8f, -0.5f, -0.2f, 0.1f, 0.4f, 0.7f});
  check_close(nn::gelu(x), {-0.169484332f, -0.154268771f, -0.0841480643f, 0.0539827831f, 0.262168705f, 0.530625463f},
              2e-6);
  check_close(nn::gelu_approx(x),
              {-0.1695683f, -0.154285997f, -0.0841485709f, 0.0539827533f, 0.262161165f, 0.530570149f}, 2e-6);
  check_close(nn::silu(x), {-0.248020425f, -0.188770339f, -0.0900332034f, 0.0524979196f, 0.239475071f, 0.467731416f},
              2e-6);
  check_close(nn::relu(x), {0, 0, 0, 0.1f, 0.4f, 0.7f}, 0);
  const auto p = nn::softmax(x).to_vector<float>();
  double total = 0;
  for (const float v : p) total += v;
  CHECK(total == doctest::Approx(1));
  CHECK(nn::relu(astype(x, bfloat16)).dtype() == bfloat16);
}

TEST_CASE("cross-entropy and its reductions") {
  const array logits = waves({4, 3}, 0.6), targets = array({0, 2, 1, 2});
  const auto l = wave(12, 0.6);
  const int chosen[] = {0, 2, 1, 2};
  std::vector<float> each;
  double total = 0;
  for (size_t r = 0; r < 4; ++r) {
    double sum_exp = 0;
    for (size_t c = 0; c < 3; ++c) sum_exp += std::exp(static_cast<double>(l[r * 3 + c]));
    each.push_back(static_cast<float>(std::log(sum_exp) - l[r * 3 + static_cast<size_t>(chosen[r])]));
    total += each.back();
  }
  using nn::losses::Reduction;
  check_close(nn::losses::cross_entropy(logits, targets), each);
  check_close(nn::losses::cross_entropy(logits, targets, Reduction::sum), {static_cast<float>(total)});
  check_close(nn::losses::cross_entropy(logits, targets, Reduction::mean), {static_cast<float>(total / 4)});
  CHECK(nn::losses::cross_entropy(astype(logits, bfloat16), targets).dtype() == float32);
}

TEST_CASE("value_and_grad: against finite differences, for trainable parameters only") {
  struct Model : nn::Module {
    nn::Linear a{*this, "a", 3, 4};
    nn::Linear b{*this, "b", 4, 2};
    array loss(const array& x, const array& y) {
      return nn::losses::cross_entropy(b(nn::gelu(a(x))), y, nn::losses::Reduction::mean);
    }
  } model;
  model.a.weight = waves({4, 3}, 0.1);
  model.b.weight = waves({2, 4}, 0.2);
  model.b.freeze();
  model.b.weight.trainable = true;
  const array x = waves({5, 3}, 0.9), y = array({0, 1, 1, 0, 1});
  auto [loss, slopes] =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); })({x, y});
  REQUIRE(slopes.size() == 3);  // a.weight, a.bias, b.weight
  CHECK(slopes[2].shape() == Shape{2, 4});
  const auto slope = slopes[0].to_vector<float>();
  auto values = wave(12, 0.1);
  for (size_t i = 0; i < values.size(); ++i) {
    const float h = 1e-2f, kept = values[i];
    values[i] = kept + h;
    model.a.weight = array::from_data(values.data(), {4, 3}, float32);
    const double up = model.loss(x, y).item<float>();
    values[i] = kept - h;
    model.a.weight = array::from_data(values.data(), {4, 3}, float32);
    const double down = model.loss(x, y).item<float>();
    values[i] = kept;
    CHECK(std::abs((up - down) / 0.02 - slope[i]) < 2e-4);
  }
}

TEST_CASE("weights: saved and loaded; files that do not fit are refused") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("weft_nn_" + std::to_string(::getpid()) + ".safetensors")).string();
  nn::Linear a(3, 2), b(3, 2);
  a.weight = waves({2, 3}, 0.1);
  a.save_weights(file, {{"step", "7"}});
  b.load_weights(file);
  CHECK(b.weight.value().to_vector<float>() == a.weight.value().to_vector<float>());
  CHECK(b.bias->value().to_vector<float>() == a.bias->value().to_vector<float>());
  nn::Linear without(3, 2, false), wide(4, 2);
  CHECK_THROWS_AS(without.load_weights(file), std::invalid_argument);
  without.load_weights(file, false);
  CHECK(without.weight.value().to_vector<float>() == a.weight.value().to_vector<float>());
  CHECK_THROWS_AS(wide.load_weights(file, false), std::invalid_argument);
  std::filesystem::remove(file);
  CHECK_THROWS_AS(b.load_weights(file), std::runtime_error);
}
