// What the tests of optimizers share: two parameters, their gradients at each step, five steps with a changing rate.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim::test {

template <class F>
inline std::vector<float> filled(int n, F f) {
  std::vector<float> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<float>(f(i)));
  return out;
}

inline std::vector<float> slope(int step, int n, int k) {
  return filled(n, [=](int i) { return std::sin(1.3 * step + 0.7 * i + k); });
}

inline array made(const std::vector<float>& values, Shape shape) {
  return array::from_data(values.data(), std::move(shape), float32);
}

// A matrix (which decays) and a bias (which does not).
struct Pair {
  array w = made(filled(6, [](int i) { return 0.5 * std::cos(i); }), {2, 3});
  array b = made(filled(3, [](int i) { return 0.1 * (i + 1); }), {3});
  Parameters parameters() { return {{"layer.weight", &w}, {"layer.bias", &b}}; }
  std::vector<float> values() const {
    auto out = w.to_vector<float>();
    for (const float v : b.to_vector<float>()) out.push_back(v);
    return out;
  }
};

inline std::vector<array> slopes(int step) { return {made(slope(step, 6, 0), {2, 3}), made(slope(step, 3, 1), {3})}; }

inline void run(Optimizer& optimizer, int first, int last) {
  for (int s = first; s < last; ++s) {
    optimizer.set_learning_rate(static_cast<float>(0.01 * (s + 1)));
    optimizer.update(slopes(s));
  }
}

inline void check_close(const std::vector<float>& got, const std::vector<float>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element ", i);
    CHECK(std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) <= tolerance);
  }
}

}  // namespace weft::optim::test
