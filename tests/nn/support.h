// What the tests of nn share: values that are neither symmetric nor small integers, and comparison.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "weft/nn.h"

namespace weft::nn::test {

/// sin(0.7 i + phase).
inline std::vector<float> wave(int64_t n, double phase) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase)));
  return out;
}

inline array waves(const Shape& shape, double phase, Dtype dtype = float32) {
  const auto values = wave(num_elements(shape), phase);
  return astype(array::from_data(values.data(), shape, float32), dtype);
}

inline void check_close(const array& a, const std::vector<float>& expected, double tolerance = 1e-5) {
  const auto got = a.to_vector<float>();
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element ", i, ": ", got[i], " and ", expected[i]);
    CHECK(std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) <=
          tolerance * (1 + std::abs(static_cast<double>(expected[i]))));
  }
}

/// The gradient of Σ f(x) · waves against central differences, in float64.
inline void check_gradient(const std::function<array(const array&)>& f, const array& at, double tolerance = 1e-7) {
  const array x = astype(at, float64);
  const auto scalar = [&](const array& v) {
    const array y = f(v);
    return sum(y * waves(y.shape(), 0.4, float64));
  };
  const std::vector<double> slope = grad(scalar)(x).to_vector<double>();
  std::vector<double> values = x.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double h = 1e-5, kept = values[i];
    values[i] = kept + h;
    const double up = scalar(array::from_data(values.data(), x.shape(), float64)).item<double>();
    values[i] = kept - h;
    const double down = scalar(array::from_data(values.data(), x.shape(), float64)).item<double>();
    values[i] = kept;
    INFO("element ", i);
    CHECK(std::abs((up - down) / (2 * h) - slope[i]) <= tolerance * (1 + std::abs(slope[i])));
  }
}

}  // namespace weft::nn::test
