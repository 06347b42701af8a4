// A program written for MLX, with MLX's headers alone: weft::mlx supplies them.
#include <iostream>

#include "mlx/backend/metal/metal.h"
#include "mlx/mlx.h"

namespace mx = mlx::core;

int main() {
  mx::random::seed(1);
  auto x = mx::random::normal({64, 3}), w_star = mx::array({1.0f, -2.0f, 0.5f});
  auto y = mx::matmul(x, w_star);
  mx::array w = mx::zeros({3});
  auto grad_fn = mx::grad([&](mx::array p) { return mx::mean(mx::square(mx::matmul(x, p) - y)); });
  for (int it = 0; it < 200; ++it) {
    w = w - 0.1f * grad_fn(w);
    mx::eval(w);
  }
  std::cout << w << " on " << mx::default_device() << ", MLX " << MLX_VERSION_NUMERIC << "\n";
  return mx::allclose(w, w_star, 1e-3).item<bool>() && !mx::metal::is_available() ? 0 : 1;
}
