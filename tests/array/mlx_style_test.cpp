// Code written for MLX's C++ API compiles with an alias for its namespace.
#include <doctest/doctest.h>

#include <cmath>

#include "weft/array.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace mlx {
namespace core = ::weft;
}
namespace mx = mlx::core;

TEST_CASE("linear regression as MLX's example writes it") {
  const int num_features = 4, num_examples = 64, num_iters = 60;
  const float learning_rate = 0.1f;
  mx::random::seed(7);
  auto w_star = mx::random::normal({num_features});
  auto X = mx::random::normal({num_examples, num_features});
  auto eps = 1e-2f * mx::random::normal({num_examples});
  auto y = mx::matmul(X, w_star) + eps;
  mx::array w = 1e-2f * mx::random::normal({num_features});
  auto loss_fn = [&](mx::array p) {
    auto yhat = mx::matmul(X, p);
    return (0.5f / num_examples) * mx::sum(mx::square(yhat - y));
  };
  auto grad_fn = mx::grad(loss_fn);
  for (int it = 0; it < num_iters; ++it) {
    auto g = grad_fn(w);
    w = w - learning_rate * g;
    mx::eval(w);
  }
  auto loss = loss_fn(w);
  auto error_norm = std::sqrt(mx::sum(mx::square(w - w_star)).item<float>());
  CHECK(loss.item<float>() < 0.05f);
  CHECK(error_norm < 0.3f);
}

TEST_CASE("the tutorial's lines") {
  mx::array x({1, 2, 3, 4}, {2, 2});
  CHECK(x.shape(0) == 2);
  CHECK(x.dtype() == mx::int32);
  auto y = mx::ones({2, 2});
  auto z = mx::add(x, y);
  mx::eval(z);
  CHECK(z.dtype() == mx::float32);
  CHECK(mx::array_equal(z, mx::array({2.f, 3.f, 4.f, 5.f}, {2, 2}), false).item<bool>());
  auto fn = [](mx::array a) { return mx::square(a); };
  auto df_dx = mx::grad(fn)(mx::array(1.5f));
  CHECK(df_dx.item<float>() == 3.0f);
  auto d2f_dx2 = mx::grad(mx::grad(fn))(mx::array(1.5f));
  CHECK(d2f_dx2.item<float>() == 2.0f);
  auto compiled = mx::compile([](const std::vector<mx::array>& in) { return std::vector<mx::array>{mx::exp(-in[0]) + in[1]}; });
  CHECK(compiled({mx::array(0.0f), mx::array(2.0f)})[0].item<float>() == 3.0f);
}
