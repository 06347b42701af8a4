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
  auto compiled =
      mx::compile([](const std::vector<mx::array>& in) { return std::vector<mx::array>{mx::exp(-in[0]) + in[1]}; });
  CHECK(compiled({mx::array(0.0f), mx::array(2.0f)})[0].item<float>() == 3.0f);
}

namespace {

template <class F, class... A>
auto handed_over(F f, A&&... args) {
  return f(std::forward<A>(args)...);
}

}  // namespace

TEST_CASE("operations are handed over as MLX's benchmarks do, shapes come from named lists") {
  const auto shape = {2, 3};
  const auto device = mx::default_device();
  auto a = mx::full(shape, 4.0f), b = mx::ones(shape, mx::float32);
  mx::eval(a, b);
  for (const auto& y :
       {handed_over(mx::add, a, b, device), handed_over(mx::subtract, a, b, device),
        handed_over(mx::multiply, a, b, device), handed_over(mx::divide, a, b, device),
        handed_over(mx::maximum, a, b, device), handed_over(mx::minimum, a, b, device),
        handed_over(mx::where, b, a, b, device), handed_over(mx::equal, a, b, device),
        handed_over(mx::greater, a, b, device), handed_over(mx::less_equal, a, b, device),
        handed_over(mlx::core::abs, a, device), handed_over(mx::negative, a, device), handed_over(mx::sign, a, device),
        handed_over(mx::square, a, device), handed_over(mlx::core::sqrt, a, device), handed_over(mx::rsqrt, a, device),
        handed_over(mlx::core::exp, a, device), handed_over(mlx::core::log, a, device)})
    CHECK(y.shape() == mx::Shape(shape));
  CHECK(handed_over(mx::matmul, a, mx::transpose(b), device).shape() == mx::Shape{2, 2});
  mx::eval({a, b});
  mx::Shape lengths = {2, 2, 3};
  for (int k = 0; k < static_cast<int>(lengths.size()); ++k) {
    lengths[static_cast<size_t>(k)] = 1;
    CHECK(mx::random::uniform(lengths).shape(k) == 1);
    lengths[static_cast<size_t>(k)] = a.shape(0);
  }
  auto updates = mx::reshape(mx::array({NAN}), {1, 1, 1});
  std::vector<int> axes{0};
  CHECK(mx::scatter(mx::zeros({2, 1, 1}), {mx::array({1})}, mx::reshape(updates, {1, 1, 1, 1}), axes).shape() ==
        mx::Shape{2, 1, 1});
}

// A line for each family of overloads: what compiles against MLX's ops.h compiles here, and means the same.
TEST_CASE("overloads as MLX's ops.h declares them") {
  auto a = mx::reshape(mx::arange(6.0, mx::float32), {2, 3});
  CHECK(mx::slice(a, {0, 1}, {2, 3}).shape() == mx::Shape{2, 2});
  CHECK(mx::slice(a, {0, 2}, {2, 0}, {1, -1}).shape() == mx::Shape{2, 2});
  CHECK(mx::slice(a, mx::array({1}), {0}, {1, 3}).size() == 3);
  CHECK(mx::transpose(a, {1, 0}).shape() == mx::Shape{3, 2});
  CHECK(mx::split(a, 3, 1).size() == 3);
  CHECK(mx::split(a, mx::Shape{1, 2}, 1).size() == 3);
  CHECK(mx::pad(a, {{1, 1}, {0, 2}}).shape() == mx::Shape{4, 5});
  CHECK(mx::roll(a, 1).shape() == a.shape());
  CHECK(mx::clip(a, mx::array(1), mx::array(4)).size() == 6);
  CHECK(mx::std(a, {0, 1}, true, 1).shape() == mx::Shape{1, 1});
  CHECK(mx::var(a, 0).shape() == mx::Shape{3});
  CHECK(mx::all(a > 2, 1).shape() == mx::Shape{2});
  CHECK(mx::softmax(a, -1).shape() == a.shape());
  CHECK(mx::array_equal(a, a).item<bool>());
  CHECK(mx::divmod(a, mx::array(2.f)).size() == 2);
  CHECK(mx::round(a / 4, 1).size() == 6);
  CHECK(mx::take(a, 1, 0).shape() == mx::Shape{3});
  CHECK(mx::tensordot(a, mx::transpose(a), 1).shape() == mx::Shape{2, 2});
  CHECK(mx::trace(a).item<float>() == 4.0f);
  CHECK(((2.0 / (a + 1.0)) * 2 - 1.0f).dtype() == mx::float32);
  CHECK(((mx::arange(4) << 1) | 1).dtype() == mx::int32);
  CHECK(mx::sum((a >= 1.f) && (a == a)).item<int>() == 5);
  CHECK(mx::gather(a, mx::array({0, 2}), 1, {2, 1}).shape() == mx::Shape{2, 2, 1});
}
