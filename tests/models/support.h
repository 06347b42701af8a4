#pragma once
// What the tests of language models share: weights that a script in another language makes as well, a small batch, and
// how far apart numbers are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/nn/module.h"
#include "weft/ops.h"

namespace weft::models::testing {

inline array ints(const std::vector<int32_t>& v, Shape shape) {
  return array::from_data(v.data(), std::move(shape), int32);
}

/// Weights by formula, as the scripts that made the expected numbers had them; those of norms, which `norms` in their
/// names tells, are about 1.
inline void set_weights(nn::Module& model, const std::string& norms) {
  int k = 0;
  std::unordered_map<std::string, array> values;
  for (auto& [name, handle] : model.parameters()) {
    const bool gain = name.find(norms) != std::string::npos && name.ends_with("weight");
    std::vector<float> v(static_cast<size_t>(num_elements(handle->shape())));
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<float>((gain ? 1.0 : 0.0) + 0.2 * std::sin(0.37 * static_cast<double>(i) + k));
    values.emplace(name, array::from_data(v.data(), handle->shape(), float32));
    ++k;
  }
  model.update(values);
}

inline std::pair<array, array> golden_batch() {
  std::vector<int32_t> x, y;
  for (int b = 0; b < 3; ++b)
    for (int t = 0; t < 8; ++t) {
      x.push_back((3 * b + 5 * t) % 11);
      y.push_back((3 * b + 5 * (t + 1) + t * t) % 11);
    }
  return {ints(x, {3, 8}), ints(y, {3, 8})};
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

}  // namespace weft::models::testing
