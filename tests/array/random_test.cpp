// Random numbers: the hash against Random123's known answers, the layout against a second implementation, distributions
// by their definition and by moments.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "reference.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;

namespace {

// Threefry-2x32, 20 rounds, written from the paper (Salmon et al., SC'11): the rotation schedule of length 8, a key
// injected after every fourth round.
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> key, std::array<uint32_t, 2> x) {
  const unsigned rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t ks[3] = {key[0], key[1], 0x1BD11BDAu ^ key[0] ^ key[1]};
  x[0] += ks[0];
  x[1] += ks[1];
  for (unsigned round = 0; round < 20; ++round) {
    const unsigned r = rotation[round % 8];
    x[0] += x[1];
    x[1] = (x[1] << r) | (x[1] >> (32 - r));
    x[1] ^= x[0];
    if (round % 4 == 3) {
      const unsigned injection = round / 4 + 1;
      x[0] += ks[injection % 3];
      x[1] += ks[(injection + 1) % 3] + injection;
    }
  }
  return x;
}

// JAX's counter layout: iota, padded to even length, cut into two halves that are hashed against each other.
std::vector<uint32_t> words(std::array<uint32_t, 2> key, size_t n) {
  std::vector<uint32_t> counters(n);
  for (size_t i = 0; i < n; ++i) counters[i] = static_cast<uint32_t>(i);
  if (n % 2) counters.push_back(0);
  const size_t half = counters.size() / 2;
  std::vector<uint32_t> out(counters.size());
  for (size_t i = 0; i < half; ++i) {
    const auto h = threefry(key, {counters[i], counters[i + half]});
    out[i] = h[0];
    out[i + half] = h[1];
  }
  out.resize(n);
  return out;
}

double largest_difference(const array& a, const std::vector<double>& expected) {
  const std::vector<double> values = a.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t k = 0; k < values.size(); ++k) worst = std::max(worst, std::abs(values[k] - expected[k]));
  return worst;
}

}  // namespace

TEST_CASE("the hash: Random123's known answers") {
  CHECK(threefry({0, 0}, {0, 0}) == std::array<uint32_t, 2>{0x6b200159, 0x99ba4efe});
  CHECK(threefry({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        std::array<uint32_t, 2>{0x1cb996fc, 0xbb002be7});
  CHECK(threefry({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}) ==
        std::array<uint32_t, 2>{0xc4923a9c, 0x483df7a0});
}

TEST_CASE("keys and splits") {
  CHECK(random::key(0).to_vector<uint32_t>() == std::vector<uint32_t>{0, 0});
  CHECK(random::key((uint64_t{5} << 32) + 7).to_vector<uint32_t>() == std::vector<uint32_t>{5, 7});
  // Values that JAX (non-partitionable) and MLX document for key 0.
  CHECK(random::split(random::key(0), 2).to_vector<uint32_t>() ==
        std::vector<uint32_t>{4146024105, 967050713, 2718843009, 1272950319});
  const auto [first, second] = random::split(random::key(0));
  CHECK(first.to_vector<uint32_t>() == std::vector<uint32_t>{4146024105, 967050713});
  CHECK(second.to_vector<uint32_t>() == std::vector<uint32_t>{2718843009, 1272950319});
  for (int n : {0, 1, 3, 5000}) {
    const array keys = random::split(random::key(42), n);
    CHECK(keys.shape() == Shape{n, 2});
    CHECK(keys.to_vector<uint32_t>() == words({0, 42}, 2 * static_cast<size_t>(n)));
  }
  // A key that is still pending is split in the graph, with the same bits.
  const array pending = random::key(42) + zeros({2}, uint32);
  CHECK(!pending.is_available());
  const auto lazy = random::split(pending);
  CHECK(lazy.second.to_vector<uint32_t>() == random::split(random::key(42)).second.to_vector<uint32_t>());
}

TEST_CASE("bits of every width and length") {
  for (size_t n : {0, 1, 2, 3, 4, 7, 8, 33}) {
    CAPTURE(n);
    const auto count = static_cast<int64_t>(n);
    CHECK(random::bits({count}, 4, random::key(9)).to_vector<uint32_t>() == words({0, 9}, n));
    for (int width : {1, 2}) {
      const auto w = static_cast<size_t>(width);
      const std::vector<uint32_t> source = words({0, 9}, (n * w + 3) / 4);
      std::vector<uint32_t> expected;
      for (size_t i = 0; i < n; ++i)
        expected.push_back((source[i * w / 4] >> (8 * (i * w % 4))) & ((1u << (8 * w)) - 1));
      CHECK(random::bits({count}, width, random::key(9)).to_vector<uint32_t>() == expected);
    }
  }
  CHECK(random::bits({3}, 1, random::key(1)).dtype() == uint8);
  CHECK(random::bits({3}, 2, random::key(1)).dtype() == uint16);
  CHECK(random::bits({2, 3}, 4, random::key(1)).to_vector<uint32_t>() ==
        random::bits({6}, 4, random::key(1)).to_vector<uint32_t>());
}

TEST_CASE("distributions by their definition") {
  const std::vector<uint32_t> bits = words({0, 3}, 11);
  std::vector<double> u, scaled, coin, whole;
  for (uint32_t b : bits) {
    const float unit = std::min(static_cast<float>(b) / static_cast<float>(UINT32_MAX), std::nextafter(1.0f, 0.0f));
    u.push_back(static_cast<double>(unit));
    scaled.push_back(static_cast<double>(5.0f * unit - 2.0f));
    coin.push_back(static_cast<float>(b) < 0.3f * 4294967808.0f);
    whole.push_back(std::min(std::floor(static_cast<double>(7.0f * unit - 3.0f)), 3.0));
  }
  const array key = random::key(3);
  CHECK(largest_difference(random::uniform({11}, float32, key), u) == 0);
  CHECK(largest_difference(random::uniform(array(-2.0f), array(3.0f), {11}, float32, key), scaled) <= 2.5e-7);
  CHECK(largest_difference(random::bernoulli(array(0.3f), {11}, key), coin) == 0);
  CHECK(largest_difference(random::randint(array(-3), array(4), {11}, int32, key), whole) == 0);
  const array bools = random::randint(array(0), array(2), {20}, bool_, random::key(0));  // MLX's draws
  CHECK(bools.dtype() == bool_);
  CHECK(bools.to_vector<int>() == std::vector<int>{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0});
  CHECK(sum(random::randint(array(-3), array(5), {20}, bool_, random::key(0))).item<int>() == 20);
  CHECK(sum(random::randint(array(0), array(1), {20}, bool_, random::key(0))).item<int>() == 0);
  CHECK(sum(random::randint(array(false), array(true), {20}, bool_, random::key(0))).item<int>() == 0);
  std::vector<double> g;
  for (double v : u) g.push_back(-std::log(-std::log(v)));
  CHECK(largest_difference(random::gumbel({11}, float32, key), g) < 1e-4);
  for (Dtype t : {float16, bfloat16, float32, float64})
    for (float v : random::uniform({4000}, t, key).to_vector<float>()) CHECK((v >= 0.0f && v < 1.0f));
}

TEST_CASE("normal: erfinv of a uniform in (-1, 1), and its moments") {
  const array key = random::key(17);
  const array u = random::uniform(array(std::nextafter(-1.0f, 0.0f)), array(1.0f), {9}, float32, key);
  CHECK(allclose(random::normal({9}, float32, 0, 1, key), erfinv(u) * array(static_cast<float>(std::sqrt(2.0))))
            .item<bool>());
  const array n = random::normal({20000}, float32, 2.0f, 3.0f, key);
  CHECK(mean(n).item<float>() == doctest::Approx(2.0).epsilon(0.05));
  CHECK(var(n, {0}).item<float>() == doctest::Approx(9.0).epsilon(0.05));
  CHECK(random::normal({4}, bfloat16, 0, 1, key).dtype() == bfloat16);
}

TEST_CASE("categorical draws with the logits' probabilities") {
  const array logits = log(array({0.1f, 0.2f, 0.7f}));
  const array draws = random::categorical(broadcast_to(logits, {6000, 3}), -1, random::key(5));
  CHECK(draws.dtype() == uint32);
  CHECK(draws.shape() == Shape{6000});
  std::array<double, 3> share{};
  for (uint32_t d : draws.to_vector<uint32_t>()) share.at(d) += 1.0 / 6000;
  CHECK(share[0] == doctest::Approx(0.1).epsilon(0.2));
  CHECK(share[1] == doctest::Approx(0.2).epsilon(0.15));
  CHECK(share[2] == doctest::Approx(0.7).epsilon(0.05));
}

TEST_CASE("the default sequence: seeded, split at each use, its state a handle") {
  random::seed(11);
  const auto first = random::uniform({3}).to_vector<float>(), second = random::uniform({3}).to_vector<float>();
  CHECK(first != second);
  random::seed(11);
  CHECK(random::uniform({3}).to_vector<float>() == first);
  const array saved = random::default_key();
  const auto drawn = random::bits({2}).to_vector<uint32_t>();
  random::default_key() = saved;
  CHECK(random::bits({2}).to_vector<uint32_t>() == drawn);
  // Keeps the first half of the split, draws with the second.
  random::seed(11);
  const auto [kept, used] = random::split(random::key(11));
  CHECK(random::bits({2}).to_vector<uint32_t>() == random::bits({2}, 4, used).to_vector<uint32_t>());
  CHECK(random::default_key().to_vector<uint32_t>() == kept.to_vector<uint32_t>());
}

TEST_CASE("overloads, parameters that broadcast, truncated normals, key sequences") {
  const array key = random::key(11);
  CHECK(array_equal(random::normal({5}, key), random::normal({5}, float32, 0.0f, 1.0f, key)).item<bool>());
  CHECK(array_equal(random::normal({5}, 1.0f, 2.0f, key), random::normal({5}, float32, 1.0f, 2.0f, key)).item<bool>());
  const array loc({0.0f, 10.0f}, {2, 1}), scale({1.0f, 2.0f, 3.0f});
  const array spread = random::normal({2, 3}, float32, loc, scale, key), unit = random::normal({2, 3}, key);
  CHECK(allclose(spread, loc + unit * scale).item<bool>());
  CHECK_THROWS_AS(random::normal({2}, float32, loc, std::nullopt, key), std::invalid_argument);
  CHECK_THROWS_AS(random::normal({2}, int32, key), std::invalid_argument);
  CHECK(array_equal(random::bits({4}, key), random::bits({4}, 4, key)).item<bool>());
  CHECK(random::bernoulli(0.25f).shape() == Shape{});
  CHECK(random::bernoulli(array({0.0f, 1.0f}), key).to_vector<int>() == std::vector<int>{0, 1});
  CHECK(random::uniform({3}, key).dtype() == float32);

  const array t = random::truncated_normal(array(-1.0f), array(0.5f), {20000}, float32, key);
  CHECK(min(t).item<float>() >= -1.0f);
  CHECK(max(t).item<float>() <= 0.5f);
  CHECK(mean(t).item<float>() == doctest::Approx(-0.2066).epsilon(0.03));  // (φ(-1) - φ(½)) / (Φ(½) - Φ(-1))
  CHECK(random::truncated_normal(array({0.0f, 1.0f}), array({1.0f, 2.0f})).shape() == Shape{2});

  random::KeySequence keys(3);
  const auto [kept, drawn] = random::split(random::key(3));
  CHECK(array_equal(keys.next(), drawn).item<bool>());
  CHECK(array_equal(keys.next(), random::split(kept).second).item<bool>());
}

TEST_CASE("permutations, and many draws from a distribution") {
  const array key = random::key(21);
  std::vector<int> order = random::permutation(50, key).to_vector<int>();
  const std::vector<int> drawn = order;
  std::sort(order.begin(), order.end());
  for (int k = 0; k < 50; ++k) CHECK(order[static_cast<size_t>(k)] == k);
  CHECK(drawn != order);
  const array rows = reshape(arange(20), {10, 2}), shuffled = random::permutation(rows, 0, key);
  CHECK(array_equal(shuffled, take(rows, random::permutation(10, key), 0)).item<bool>());

  const array logits = log(array({0.2f, 0.0f, 0.5f, 0.3f}));
  const std::vector<int> draws = random::categorical(logits, 0, Shape{20000}, key).to_vector<int>();
  std::array<double, 4> share{};
  for (int d : draws) share[static_cast<size_t>(d)] += 1.0 / 20000;
  CHECK(share[0] == doctest::Approx(0.2).epsilon(0.05));
  CHECK(share[1] == 0);
  CHECK(share[2] == doctest::Approx(0.5).epsilon(0.05));
  CHECK(random::categorical(zeros({3, 5}), 0, 7, key).shape() == Shape{5, 7});
  CHECK(random::categorical(zeros({3, 5}), -1, Shape{2, 3}, key).shape() == Shape{2, 3});
  CHECK_THROWS_AS(random::categorical(zeros({3, 5}), -1, Shape{2}, key), std::invalid_argument);
}

TEST_CASE("Laplace's distribution") {
  const array x = random::laplace({20000}, float32, 1.0f, 2.0f, random::key(4));
  CHECK(mean(x).item<float>() == doctest::Approx(1).epsilon(0.05));
  CHECK(weft::std(x).item<float>() == doctest::Approx(2 * std::sqrt(2.0)).epsilon(0.05));
  CHECK(random::laplace({3}, bfloat16).dtype() == bfloat16);
}
