// Where a function has a kink, its gradient is MLX 0.32.4's: mx.grad(lambda x: mlx.nn.f(x).sum()) at the kinks and
// beside them.
#include "nn/support.h"

using namespace weft;
using namespace weft::nn::test;

namespace {

void check_slopes(const std::function<array(const array&)>& f, const std::vector<float>& at,
                  const std::vector<float>& expected) {
  const auto total = [&](const array& x) { return sum(f(x)); };
  check_close(grad(total)(array::from_data(at.data(), {static_cast<int64_t>(at.size())}, float32)), expected, 2e-6);
}

}  // namespace

TEST_CASE("activations: gradients at kinks are MLX's") {
  // relu
  check_slopes(nn::relu, {-1, 0, 1}, {0, 0, 1});
  // relu2
  check_slopes(nn::relu2, {-1, 0, 1}, {0, 0, 2});
  // relu6
  check_slopes(nn::relu6, {-1, 0, 1, 6, 7}, {0, 0, 1, 0, 0});
  // leaky_relu
  check_slopes([](const array& x) { return nn::leaky_relu(x); }, {-1, 0, 1}, {0.00999999978f, 1, 1});
  // celu
  check_slopes([](const array& x) { return nn::celu(x); }, {-1, 0, 1}, {0.36787945f, 0, 1});
  // elu
  check_slopes([](const array& x) { return nn::elu(x); }, {-1, 0, 1}, {0.36787945f, 1, 1});
  // selu
  check_slopes(nn::selu, {-1, 0, 1}, {0.646766722f, 1.75809419f, 1.05069995f});
  // hard_tanh
  check_slopes([](const array& x) { return nn::hard_tanh(x); }, {-2, -1, 0, 1, 2}, {0, 0, 1, 0, 0});
  // hard_shrink
  check_slopes([](const array& x) { return nn::hard_shrink(x); }, {-1, -0.5f, 0, 0.5f, 1}, {1, 0, 0, 0, 1});
  // softshrink
  check_slopes([](const array& x) { return nn::softshrink(x); }, {-1, -0.5f, 0, 0.5f, 1}, {1, 0, 0, 0, 1});
  // hardswish
  check_slopes(nn::hardswish, {-4, -3, 0, 3, 4}, {0, 0, 0.5f, 1, 1});
  // softsign
  check_slopes(nn::softsign, {-1, 0, 1}, {0.25f, 1, 0.25f});
  // prelu(x, 0.25)
  check_slopes([](const array& x) { return nn::prelu(x, array(0.25f)); }, {-1, 0, 1}, {0.25f, 1.25f, 1});
}

TEST_CASE("losses: gradients at kinks are MLX's") {
  using namespace nn::losses;
  const auto filled = [](const array& x, float value) { return full(x.shape(), array(value), float32); };
  // l1_loss(x, 0, "sum")
  check_slopes([&](const array& x) { return l1_loss(x, filled(x, 0), Reduction::sum); }, {-1, 0, 1}, {-1, 0, 1});
  // smooth_l1_loss(x, 0, 1, "sum")
  check_slopes([&](const array& x) { return smooth_l1_loss(x, filled(x, 0), 1, Reduction::sum); }, {-2, -1, 0, 1, 2},
               {-1, -1, 0, 1, 1});
  // huber_loss(x, 0)
  check_slopes([&](const array& x) { return huber_loss(x, filled(x, 0)); }, {-2, -1, 0, 1, 2}, {-1, -1, 0, 1, 1});
  // log_cosh_loss(x, 0)
  check_slopes([&](const array& x) { return log_cosh_loss(x, filled(x, 0)); }, {-1, 0, 1},
               {-0.761594176f, 0, 0.761594176f});
  // hinge_loss(x, 1)
  check_slopes([&](const array& x) { return hinge_loss(x, filled(x, 1)); }, {0, 1, 2}, {-1, -0, -0});
  // margin_ranking_loss(x, 0, 1)
  check_slopes([&](const array& x) { return margin_ranking_loss(x, filled(x, 0), filled(x, 1)); }, {-1, 0, 1},
               {-1, -1, -0});
  // binary_cross_entropy(x, 1, reduction="sum")
  check_slopes([&](const array& x) { return binary_cross_entropy(x, filled(x, 1), {.reduction = Reduction::sum}); },
               {-1, 0, 1}, {-0.731058598f, -0.5f, -0.268941402f});
}
