// Norms and small layers: values of MLX 0.32.4, and batch norm's derivatives of PyTorch 2.15.
#include <algorithm>

#include "nn/support.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;
using namespace weft::nn::test;

namespace {

array input() { return waves({2, 3, 4}, 0.3) * array(2.0f) + array(1.0f); }

template <class Norm>
void set_affine(Norm& norm) {
  *norm.weight = waves({4}, 0.5);
  *norm.bias = waves({4}, 0.9);
}

}  // namespace

TEST_CASE("BatchNorm: training, running statistics, eval") {
  nn::BatchNorm norm(4);
  set_affine(norm);
  check_close(norm(input()), {0.916463137f,  2.25684643f,   1.92411065f,   0.54915905f,   0.720586538f,  -0.359190583f,
                              -0.666202009f, -0.397583246f, 0.400122881f,  1.30295658f,   1.7383368f,    0.739789784f,
                              1.1998955f,    0.786769152f,  -0.202570856f, -0.456784546f, 0.0132318139f, 0.0973487496f,
                              1.05042326f,   0.660720587f,  1.44966125f,   1.91271091f,   0.630132675f,  -0.248581663f},
              2e-6);
  check_close(norm.running_mean->value(), {0.124583796f, 0.128599629f, 0.119164638f, 0.100716196f}, 1e-6);
  check_close(norm.running_var->value(), {1.08542836f, 1.0286901f, 1.14841044f, 1.24584568f}, 1e-6);
  norm.eval();
  check_close(norm(input()), {1.45814657f,   3.34687471f,   3.27486587f,  1.18036759f,   1.22443581f,  0.675814927f,
                              -0.202874064f, -0.259588242f, 0.84207356f,  2.37292194f,   3.02544689f,  1.47030902f,
                              1.79632497f,   1.84587765f,   0.419594765f, -0.349630952f, 0.380453348f, 1.14195669f,
                              2.10185814f,   1.35004807f,   2.09433365f,  2.99550128f,   1.53757811f,  -0.0329629332f},
              2e-6);
  check_close(norm.running_mean->value(), {0.124583796f, 0.128599629f, 0.119164638f, 0.100716196f}, 1e-6);
  nn::BatchNorm plain(4, {.affine = false, .track_running_stats = false});
  plain.eval();
  CHECK(plain.parameters().empty());
  for (const float v : mean(plain(input()), {0, 1}).to_vector<float>()) CHECK(std::abs(v) < 1e-6);
  CHECK_THROWS_AS(norm(zeros({2, 3})), std::invalid_argument);
  CHECK_THROWS_AS(nn::BatchNorm(0), std::invalid_argument);
}

TEST_CASE("BatchNorm: PyTorch's derivatives") {
  nn::BatchNorm norm(4);
  set_affine(norm);
  const array x = reshape(input(), {6, 4});
  const array loss = sum(norm(x) * waves({6, 4}, 1.7));
  const auto slopes = gradients(loss, {x, *norm.weight, *norm.bias});
  check_close(slopes[0], {0.369325906f,  0.344029278f,  -0.27090916f,  -0.180613428f,  -0.425192147f,  -0.516628027f,
                          0.242071122f,  0.187653527f,  0.222471192f,  0.824313402f,   0.194170848f,   -0.00499107689f,
                          -0.203496486f, -0.841959298f, -0.228544042f, -0.0102299312f, -0.0484472811f, 0.957097888f,
                          0.615939081f,  0.192287028f,  0.0853387639f, -0.766853213f,  -0.552727759f,  -0.184106097f},
              5e-6);
  check_close(slopes[1], {-1.33451116f, 1.28826606f, 2.62025833f, 0.945427179f}, 5e-6);
  check_close(slopes[2], {0.574938297f, 0.0214856267f, -0.542071998f, -0.850684702f}, 5e-6);
}

TEST_CASE("BatchNorm: derivatives by differences, and a mean far from 0") {
  check_gradient(
      [](const array& x) {
        nn::BatchNorm norm(4);
        set_affine(norm);
        return norm(x);
      },
      input(), 1e-6);
  nn::BatchNorm norm(4);
  norm(input() + array(10000.0f));
  const auto var = norm.running_var->value().to_vector<float>();
  const std::vector<float> expected{1.08542836f, 1.0286901f, 1.14841044f, 1.24584568f};
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(var[i] - expected[i]) < 1e-3);
}

TEST_CASE("BatchNorm: running statistics are state that is not learned") {
  struct Model : nn::Module {
    nn::Linear a{*this, "a", 4, 3};
    nn::BatchNorm norm{*this, "norm", 3};
    array loss(const array& x) { return mean(square(norm(a(x)))); }
  } model;
  std::vector<std::string> all, learned;
  for (auto& p : model.parameters()) all.push_back(p.first);
  model.freeze();
  model.unfreeze();
  for (auto& p : model.trainable_parameters()) learned.push_back(p.first);
  CHECK(all == std::vector<std::string>{"a.weight", "a.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                        "norm.running_var"});
  CHECK(learned == std::vector<std::string>{"a.weight", "a.bias", "norm.weight", "norm.bias"});

  const auto loss_and_grads =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0]); });
  const array x = waves({5, 4}, 0.2);
  const auto plain = loss_and_grads({x});
  const auto moved = model.norm.running_mean->value().to_vector<float>();
  *model.norm.running_mean = zeros({3});
  *model.norm.running_var = ones({3});
  const auto step = compile(
      [&](const std::vector<array>& in) {
        auto [loss, slopes] = loss_and_grads(in);
        slopes.insert(slopes.begin(), loss);
        return slopes;
      },
      {.state = model.state()});
  const auto first = step({x});
  check_close(first[0], plain.first.to_vector<float>(), 1e-6);
  check_close(model.norm.running_mean->value(), moved, 1e-6);
  step({x});
  std::vector<float> twice;
  for (const float m : moved) twice.push_back(1.9f * m);
  check_close(model.norm.running_mean->value(), twice, 1e-6);
}

TEST_CASE("standardize: values, statistics and derivatives of its formula, and what it refuses") {
  const array x = input(), weight = waves({4}, 0.5), bias = waves({3, 1}, 0.9);
  const auto formula = [&](const array& v) {
    const array m = mean(v, {0}, true), variance = var(v, {0}, true);
    return std::vector<array>{(v - m) * rsqrt(variance + 1e-3f) * weight + bias, m, variance};
  };
  const auto result = [&](const array& v) { return fast::standardize(v, {-3}, weight, bias, 1e-3f); };
  const std::vector<array> got = result(x), expected = formula(x);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(got[k].shape() == expected[k].shape());
    CHECK(allclose(got[k], expected[k], 1e-5, 1e-6).item<bool>());
  }
  const auto loss = [&](const auto& f) {
    return grad([&](const array& v) {
      const std::vector<array> y = f(v);
      return sum(y[0] * y[0] * y[0]) + sum(y[1] * y[2]);
    })(x);
  };
  CHECK(allclose(loss(result), loss(formula), 1e-4, 1e-4).item<bool>());
  const std::vector<array> half = fast::standardize(astype(x, bfloat16), {0, 1}, std::nullopt, std::nullopt, 1e-5f);
  CHECK(half[0].dtype() == bfloat16);
  CHECK(half[1].dtype() == float32);
  CHECK_THROWS_AS(fast::standardize(astype(x, int32), {0}, std::nullopt, std::nullopt, 1e-5f), std::invalid_argument);
  CHECK_THROWS_AS(fast::standardize(zeros({0, 3}), {0}, std::nullopt, std::nullopt, 1e-5f), std::invalid_argument);
  CHECK_THROWS_AS(fast::standardize(x, {0}, ones({5}), std::nullopt, 1e-5f), std::invalid_argument);
}

TEST_CASE("InstanceNorm, GroupNorm, RMSNorm give MLX's values") {
  check_close(nn::InstanceNorm(4)(input()),
              {1.11544907f, 1.10084581f,   0.784378111f, 0.506751776f,  0.195123792f, -1.3192488f,
               -1.411286f,  -1.39679027f,  -1.31057298f, 0.218402848f,  0.626907825f, 0.890038311f,
               0.4983854f,  -0.194467917f, -1.33521116f, -0.910713673f, -1.39536166f, -1.11586726f,
               1.07119489f, 1.39234376f,   0.896976113f, 1.3103354f,    0.26401636f,  -0.481629997f},
              3e-6);
  nn::InstanceNorm instance(4, {.affine = true});
  set_affine(instance);
  check_close(instance(input()),
              {1.31810164f,   2.02560496f,   1.48796225f,   0.40235126f,  0.876874268f, -0.2300179f,
               -0.589794934f, -0.578927279f, 0.15500474f,   1.20313358f,  1.33894813f,  0.599936008f,
               1.02226567f,   0.818321884f,  -0.517805278f, -0.32835418f, 0.114354908f, -0.0404583216f,
               1.759377f,     0.858875155f,  1.21336019f,   2.22085738f,  0.995543897f, -0.107160926f},
              3e-6);
  nn::GroupNorm group(2, 4, {.pytorch_compatible = true});
  set_affine(group);
  check_close(group(input()),
              {0.995797992f,  2.47909164f,   1.53604066f,   0.381878942f,  0.740640759f,   -0.359836221f,
               -0.633531034f, -0.553762555f, 0.323191285f,  1.44392872f,   1.38044167f,    0.570274472f,
               1.13832211f,   0.774252176f,  0.0752437115f, -0.512853682f, 0.00318449736f, 0.224850118f,
               1.49397635f,   0.980136454f,  1.3772428f,    1.67151999f,   1.01809216f,    -0.234694049f},
              3e-6);
  nn::RMSNorm rms(4);
  rms.weight = waves({4}, 0.5);
  check_close(rms(input()), {0.310393929f, 1.01755118f,   1.14879096f,   0.493150771f,  0.629319668f,  -0.252689809f,
                             -1.09525847f, -0.479105145f, 0.0556854941f, 0.696578741f,  1.17687023f,   0.707057059f,
                             0.814399302f, 0.714423358f,  -0.172875017f, -0.362130672f, -0.219370842f, 0.161036298f,
                             0.954303682f, 0.853894353f,  0.73028028f,   1.09841061f,   0.492476106f,  -0.0729404837f},
              3e-6);
  check_gradient([](const array& x) { return nn::InstanceNorm(4)(x); }, input(), 1e-5);
  check_gradient([](const array& x) { return nn::GroupNorm(2, 4)(x); }, input(), 1e-6);
  check_gradient([&](const array& x) { return rms(x); }, input(), 1e-6);
  CHECK(group(astype(input(), bfloat16)).dtype() == bfloat16);
  CHECK_THROWS_AS(nn::GroupNorm(3, 4), std::invalid_argument);
  CHECK_THROWS_AS(instance(zeros({2, 4})), std::invalid_argument);
}

TEST_CASE("Bilinear gives MLX's values") {
  nn::Bilinear layer(3, 2, 2);
  layer.weight = waves({2, 2, 3}, 0.1);
  *layer.bias = waves({2}, 0.5);
  check_close(layer(waves({2, 3}, 1.0), waves({2, 2}, 2.0)), {2.07973337f, -0.332748711f, 0.578008413f, 1.81401277f},
              2e-6);
  CHECK_THROWS_AS(layer(waves({2, 3}, 1.0), waves({3, 2}, 2.0)), std::invalid_argument);
}

TEST_CASE("Dropout2d and 3d drop whole channels") {
  random::seed(5);
  for (const int space : {2, 3}) {
    nn::Dropout2d drop(nn::Scope{}, 0.25f, space);
    Shape shape{20, 4, 4, 50};
    if (space == 3) shape.insert(shape.begin() + 1, 2);
    const array y = drop(ones(shape));
    const array channels = reshape(y, {20, -1, 50});
    CHECK(array_equal(channels, broadcast_to(slice(channels, {0, 0, 0}, {20, 1, 50}), channels.shape()), false)
              .item<bool>());
    const double kept = mean(astype(y > array(0.0f), float32)).item<float>();
    CHECK(std::abs(kept - 0.75) < 5 * std::sqrt(0.25 * 0.75 / 1000));
    drop.eval();
    CHECK(min(drop(ones(shape))).item<float>() == 1);
  }
  CHECK_THROWS_AS(nn::Dropout2d()(ones({2, 3})), std::invalid_argument);
}

TEST_CASE("Sequential: names, order, printing") {
  nn::Sequential net;
  net.add<nn::Linear>(3, 4);
  net.add<nn::Identity>();
  net.add<nn::Linear>(4, 2, false);
  CHECK(net.size() == 3);
  std::vector<std::string> names;
  for (auto& p : net.parameters()) names.push_back(p.first);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "2.weight"});
  const array x = waves({5, 3}, 0.2);
  check_close(net(x), net[2](net[0](x)).to_vector<float>(), 1e-6);
}

TEST_CASE("starting values: spreads by fan, zeros of sparse, orthonormal rows") {
  random::seed(9);
  const auto spread = [](const array& a) { return std::sqrt(static_cast<double>(mean(square(a)).item<float>())); };
  const auto top = [](const array& a) { return static_cast<double>(max(abs(a)).item<float>()); };
  const Shape shape{64, 3, 5, 32};  // fan in 480, fan out 960
  CHECK(spread(nn::init::glorot_normal(shape)) == doctest::Approx(std::sqrt(2.0 / 1440)).epsilon(0.02));
  CHECK(spread(nn::init::he_normal(shape, nn::init::Fan::out, 2)) ==
        doctest::Approx(2 / std::sqrt(960.0)).epsilon(0.02));
  CHECK(top(nn::init::glorot_uniform(shape)) == doctest::Approx(std::sqrt(6.0 / 1440)).epsilon(0.01));
  CHECK(top(nn::init::he_uniform(shape)) == doctest::Approx(std::sqrt(3.0 / 480)).epsilon(0.01));
  const auto sparse = nn::init::sparse({20, 30}, 0.34f).to_vector<float>();
  for (size_t r = 0; r < 20; ++r)
    CHECK(std::count(sparse.begin() + static_cast<int>(r * 30), sparse.begin() + static_cast<int>(r * 30 + 30), 0.0f) ==
          11);
  for (const Shape& s : {Shape{6, 9}, Shape{9, 6}, Shape{4, 3, 5}}) {
    const array q = reshape(nn::init::orthogonal(s, 2), {s[0], -1});
    const bool wide = q.shape(0).bound() <= q.shape(1).bound();
    const array gram = wide ? matmul(q, transpose(q)) : matmul(transpose(q), q);
    check_close(gram, (eye(static_cast<int>(gram.shape(0).bound())) * array(4.0f)).to_vector<float>(), 1e-5);
  }
  check_close(nn::init::identity({2, 2}), {1.0f, 0.0f, 0.0f, 1.0f}, 0);
  CHECK_THROWS_AS(nn::init::identity({2, 3}), std::invalid_argument);
  CHECK_THROWS_AS(nn::init::he_normal({3}), std::invalid_argument);
  CHECK_THROWS_AS(nn::init::sparse({3, 3}, 1.5f), std::invalid_argument);
}
