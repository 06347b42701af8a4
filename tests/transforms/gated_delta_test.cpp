// The gated delta rule: chunks against the recurrence in float64.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

struct Sizes {
  int64_t batch, times, shared, heads, depth, width;
};

std::vector<float> draw(int64_t count, float low, float high, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> in(low, high);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = in(random);
  return out;
}

/// Inputs of a call, with what the recurrence makes of them.
struct Case {
  Sizes n;
  std::vector<float> q, k, v, gamma, beta, state;
  std::vector<bool> mask;

  Case(const Sizes& sizes, float lowest_gamma)
      : n(sizes), q(draw(n.batch * n.times * n.shared * n.depth, -0.5f, 0.5f, 1)),
        k(draw(n.batch * n.times * n.shared * n.depth, -0.5f, 0.5f, 2)),
        v(draw(n.batch * n.times * n.heads * n.width, -1, 1, 3)),
        gamma(draw(n.batch * n.times * n.heads, lowest_gamma, 1, 4)), beta(draw(n.batch * n.times * n.heads, 0, 1, 5)),
        state(draw(n.batch * n.heads * n.width * n.depth, -1, 1, 6)) {
    for (int64_t i = 0; i < n.batch * n.times; ++i) mask.push_back(i % 3 != 1);
    if (lowest_gamma == 0) gamma[gamma.size() / 2] = 0;
  }

  std::vector<array> arrays() const {
    const Shape keys{n.batch, n.times, n.shared, n.depth}, gates{n.batch, n.times, n.heads};
    return {array(q.begin(), keys), array(k.begin(), keys), array(v.begin(), {n.batch, n.times, n.heads, n.width}),
            array(gamma.begin(), gates), array(beta.begin(), gates)};
  }
  array state_array() const { return array(state.begin(), {n.batch, n.heads, n.width, n.depth}); }
  array mask_array() const {
    const std::vector<uint8_t> bytes(mask.begin(), mask.end());
    return astype(array(bytes.begin(), {n.batch, n.times}), bool_);
  }

  /// Returns outputs, then the last state, row-major.
  std::vector<double> recurrence(bool with_state, bool with_mask) const {
    std::vector<double> out(v.size()), s(state.size());
    if (with_state) s.assign(state.begin(), state.end());
    for (int64_t b = 0; b < n.batch; ++b)
      for (int64_t h = 0; h < n.heads; ++h)
        for (int64_t t = 0; t < n.times; ++t)
          if (!with_mask || mask[static_cast<size_t>(b * n.times + t)]) step(out, s, b, h, t);
    out.insert(out.end(), s.begin(), s.end());
    return out;
  }

  void step(std::vector<double>& out, std::vector<double>& all, int64_t b, int64_t h, int64_t t) const {
    double* const s = all.data() + (b * n.heads + h) * n.width * n.depth;
    const int64_t g = h / (n.heads / n.shared), at = (b * n.times + t) * n.heads + h;
    const float* const key = k.data() + ((b * n.times + t) * n.shared + g) * n.depth;
    const float* const query = q.data() + ((b * n.times + t) * n.shared + g) * n.depth;
    const double forget = gamma[static_cast<size_t>(at)], rate = beta[static_cast<size_t>(at)];
    for (int64_t i = 0; i < n.width; ++i) {
      double seen = 0, sum = 0;
      for (int64_t j = 0; j < n.depth; ++j) seen += (s[i * n.depth + j] *= forget) * key[j];
      const double correction = rate * (v[static_cast<size_t>(at * n.width + i)] - seen);
      for (int64_t j = 0; j < n.depth; ++j) sum += (s[i * n.depth + j] += correction * key[j]) * query[j];
      out[static_cast<size_t>(at * n.width + i)] = sum;
    }
  }
};

double largest_error(const std::vector<array>& got, const std::vector<double>& wanted) {
  double largest = 0;
  size_t at = 0;
  for (const array& a : got)
    for (const float x : astype(a, float32).to_vector<float>()) largest = std::max(largest, std::abs(x - wanted[at++]));
  CHECK(at == wanted.size());
  return largest;
}

std::vector<array> update(const std::vector<array>& x, const std::optional<array>& state = std::nullopt,
                          const std::optional<array>& mask = std::nullopt) {
  return fast::gated_delta_update(x[0], x[1], x[2], x[3], x[4], state, mask);
}

}  // namespace

TEST_CASE("gated_delta_update: chunks compute the recurrence") {
  for (const Sizes& n : std::vector<Sizes>{
           {2, 5, 2, 4, 8, 6}, {1, 1, 1, 1, 4, 4}, {1, 64, 1, 2, 8, 8}, {2, 130, 1, 2, 8, 4}, {1, 65, 2, 2, 16, 3}}) {
    CAPTURE(n.times);
    for (const float lowest : {0.9f, 0.0f}) {
      const Case c(n, lowest);
      CHECK(largest_error(update(c.arrays()), c.recurrence(false, false)) < 2e-5);
      CHECK(largest_error(update(c.arrays(), c.state_array()), c.recurrence(true, false)) < 2e-5);
      CHECK(largest_error(update(c.arrays(), c.state_array(), c.mask_array()), c.recurrence(true, true)) < 2e-5);
    }
  }
}

TEST_CASE("gated_delta_update: one call is two with the state between, and compiled as eager") {
  const Case c({1, 100, 1, 2, 8, 8}, 0.9f);
  const std::vector<array> x = c.arrays();
  const auto part = [&](int from, int to) {
    std::vector<array> out;
    for (const array& a : x) out.push_back(take(a, arange(from, to), 1));
    return out;
  };
  const std::vector<array> first = update(part(0, 37)), second = update(part(37, 100), first[1]);
  const std::vector<double> wanted = c.recurrence(false, false);
  CHECK(largest_error({concatenate({first[0], second[0]}, 1), second[1]}, wanted) < 2e-5);
  const auto compiled = compile([](const std::vector<array>& in) { return update(in); });
  CHECK(largest_error(compiled(x), wanted) < 2e-5);
}

TEST_CASE("gated_delta_update: gradients are those of the recurrence") {
  const Case c({1, 7, 1, 2, 4, 3}, 0.8f);
  const auto loss = [&](const std::vector<array>& x) {
    const std::vector<array> out = update(x, x[5]);
    return sum(square(out[0])) + sum(out[1] * out[1] * out[1]);
  };
  std::vector<array> x = c.arrays();
  x.push_back(c.state_array());
  const std::vector<array> gradients = grad(ScalarFunction(loss), {0, 1, 2, 3, 4, 5})(x);
  const auto reference = [](const Case& of) {
    const std::vector<double> all = of.recurrence(true, false);
    double total = 0;
    for (size_t i = 0; i < all.size(); ++i) total += i < of.v.size() ? all[i] * all[i] : all[i] * all[i] * all[i];
    return total;
  };
  std::vector<float> Case::*const parts[] = {&Case::q, &Case::k, &Case::v, &Case::gamma, &Case::beta, &Case::state};
  for (size_t p = 0; p < 6; ++p) {
    CAPTURE(p);
    const std::vector<float> got = gradients[p].to_vector<float>();
    for (size_t i = 0; i < got.size(); i += 3) {
      Case up = c, down = c;
      (up.*parts[p])[i] += 1e-3f, (down.*parts[p])[i] -= 1e-3f;
      const double width = double{(up.*parts[p])[i]} - double{(down.*parts[p])[i]};
      CHECK(got[i] == doctest::Approx((reference(up) - reference(down)) / width).epsilon(5e-3).scale(1));
    }
  }
}

TEST_CASE("gated_delta_update: dtypes, empty sequences and mistakes") {
  const Case c({1, 4, 1, 2, 4, 3}, 0.8f);
  std::vector<array> x = c.arrays();
  for (array& a : x) a = astype(a, bfloat16);
  const std::vector<array> out = update(x);
  CHECK(out[0].dtype() == bfloat16);
  CHECK(out[1].dtype() == float32);
  const std::vector<array> none =
      update({zeros({1, 0, 1, 4}), zeros({1, 0, 1, 4}), zeros({1, 0, 2, 3}), zeros({1, 0, 2}), zeros({1, 0, 2})});
  CHECK(none[0].shape() == Shape{1, 0, 2, 3});
  CHECK(none[1].shape() == Shape{1, 2, 3, 4});
  x = c.arrays();
  CHECK_THROWS_WITH_AS(update({x[0], x[1], x[2], x[3], x[3] + zeros({1, 1, 1, 1})}),
                       doctest::Contains("[gated_delta_update] gamma and beta"), std::invalid_argument);
  CHECK_THROWS_AS(update({x[0], x[2], x[2], x[3], x[4]}), std::invalid_argument);
  CHECK_THROWS_AS(update(x, zeros({1})), std::invalid_argument);
  CHECK_THROWS_AS(update(x, std::nullopt, ones({4})), std::invalid_argument);
  CHECK_THROWS_AS(update({ones({1, 4, 3, 4}), ones({1, 4, 3, 4}), x[2], x[3], x[4]}), std::invalid_argument);
}
