// Rows that are too long for registers: a GPU brings them into the memory of a block whole.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

TEST_CASE("softmax and layer norm of rows too long for registers") {
  const auto both = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{softmax(in[0], -1), fast::layer_norm(in[0], std::nullopt, std::nullopt, 1e-5f)};
      },
      CompileOptions{});
  for (const Dtype dtype : {float32, bfloat16})
    for (const auto& shape : {std::pair{3, 8200},
                              {3, 20000},
                              {3, 20004},
                              {3, 50257},
                              {3, 50304},
                              {17, 20004},
                              {16, 50257},
                              {9, 131072}}) {  // the last ones are shared by blocks
      const int rows = shape.first, columns = shape.second;
      const auto size = dtype.size();
      CAPTURE(size);
      CAPTURE(columns);
      const array x = astype(sin(astype(arange(rows * columns), float32) * array(0.37f)) * array(3.0f), dtype);
      const std::vector<double> values = astype(reshape(x, {-1}), float64).to_vector<double>();
      const std::vector<array> results = both({reshape(x, {rows, columns})});
      const std::vector<double> soft = astype(results[0], float64).to_vector<double>(),
                                normed = astype(results[1], float64).to_vector<double>();
      double worst_soft = 0, worst_normed = 0;
      for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
        const double* row = values.data() + r * static_cast<size_t>(columns);
        double total = 0, mean = 0, square = 0;
        for (int k = 0; k < columns; ++k) total += std::exp(row[k]), mean += row[k] / columns;
        for (int k = 0; k < columns; ++k) square += (row[k] - mean) * (row[k] - mean) / columns;
        for (int k = 0; k < columns; ++k) {
          const size_t at = r * static_cast<size_t>(columns) + static_cast<size_t>(k);
          const double p = std::exp(row[k]) / total;
          worst_soft = std::max(worst_soft, std::abs(soft[at] - p) / p);
          worst_normed = std::max(worst_normed, std::abs(normed[at] - (row[k] - mean) / std::sqrt(square + 1e-5)));
        }
      }
      CHECK(worst_soft < (dtype == float32 ? 1e-5 : 5e-3));
      CHECK(worst_normed < (dtype == float32 ? 1e-5 : 8e-3));
    }
}

TEST_CASE("the derivative of a norm over rows longer than a warp's, with its sums along the rows") {
  const auto norm = [](const std::vector<array>& in) {
    return std::vector<array>{in[0], fast::layer_norm(in[0], in[1], in[2], 1e-5f)};
  };
  const auto derivative = compile(
      [norm](const std::vector<array>& in) {
        return vjp(norm, {in[0], in[1], in[2]}, {in[3], in[4]}).second;
      },
      CompileOptions{});
  const auto wave = [](const Shape& shape, float phase) {
    return reshape(sin(astype(arange(static_cast<int>(num_elements(shape))), float32) * array(0.7f) + array(phase)),
                   shape);
  };
  for (const int width : {1280, 1600}) {
    CAPTURE(width);
    const std::vector<array> in = {wave({512, width}, 0.3f), wave({width}, 0.1f), wave({width}, 0.2f),
                                   wave({512, width}, 0.5f), wave({512, width}, 0.9f)};
    std::vector<array> wide;
    for (const array& a : in) wide.push_back(astype(a, float64));
    const std::vector<array> got = derivative(in), expected = derivative(wide);
    for (size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      const double worst = max(abs(astype(got[k], float64) - expected[k])).item<double>(),
                   scale = max(abs(expected[k])).item<double>();
      CHECK(worst <= 2e-6 * scale + 1e-4);
    }
  }
}

TEST_CASE("sums down columns of many rows") {
  const auto sums = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{sum(in[0], 0), max(in[0], 0)};
      },
      CompileOptions{});
  for (const Dtype dtype : {float32, bfloat16})
    for (const auto& shape :
         {std::pair{4096, 1024}, {5003, 200}, {1300, 3104}}) {  // in even parts; with rows, with columns left over
      const int rows = shape.first, columns = shape.second;
      const auto size = dtype.size();
      CAPTURE(size);
      CAPTURE(columns);
      const array x = astype(sin(astype(arange(rows * columns), float32) * array(0.37f)) * array(3.0f), dtype);
      const std::vector<double> values = astype(x, float64).to_vector<double>();
      const std::vector<array> results = sums({reshape(x, {rows, columns})});
      const std::vector<double> total = astype(results[0], float64).to_vector<double>(),
                                most = astype(results[1], float64).to_vector<double>();
      std::vector<double> exact(static_cast<size_t>(columns), 0), largest(static_cast<size_t>(columns), -4);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t c = i % static_cast<size_t>(columns);
        exact[c] += values[i], largest[c] = std::max(largest[c], values[i]);
      }
      double worst = 0;
      for (size_t c = 0; c < exact.size(); ++c)
        worst = std::max(worst, std::abs(total[c] - exact[c]) / (1 + std::abs(exact[c])));
      CHECK(worst < (dtype == float32 ? 2e-4 : 8e-3));
      CHECK(most == largest);
    }
}
