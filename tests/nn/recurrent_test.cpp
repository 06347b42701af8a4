// Recurrent layers: values of MLX 0.32.4, derivatives against central differences.
#include "weft/nn/recurrent.h"
#include "nn/support.h"

using namespace weft;
using namespace weft::nn::test;

namespace {

array input() { return waves({2, 4, 3}, 0.3); }
array start() { return waves({2, 2}, 0.6); }

nn::RNN& set(nn::RNN& layer) {
  layer.Whh = waves({2, 2}, 0.5);
  layer.Wxh = waves({2, 3}, 1.5);
  *layer.bias = waves({2}, 2.5);
  return layer;
}
nn::GRU& set(nn::GRU& layer) {
  layer.Wh = waves({6, 2}, 0.5);
  layer.Wx = waves({6, 3}, 1.5);
  *layer.b = waves({6}, 2.5);
  *layer.bhn = waves({2}, 3.5);
  return layer;
}
nn::LSTM& set(nn::LSTM& layer) {
  layer.Wh = waves({8, 2}, 0.5);
  layer.Wx = waves({8, 3}, 1.5);
  *layer.bias = waves({8}, 2.5);
  return layer;
}

}  // namespace

TEST_CASE("RNN gives MLX's values") {
  nn::RNN layer(3, 2);
  set(layer);
  check_close(
      layer(input()),
      {0.947916448f, -0.95716989f, 0.618029237f, 0.533440053f, -0.368635416f, 0.983737707f, 0.988437295f, -0.943149447f,
       0.811109483f, 0.221226573f, -0.521541119f, 0.983767867f, 0.98720485f, -0.958168983f, 0.592261851f, 0.603551626f},
      2e-6);
  check_close(
      layer(input(), start()),
      {0.994849443f, -0.70640403f, 0.752213836f, 0.646128595f, -0.214116186f, 0.988740325f, 0.990113795f, -0.92419064f,
       0.961434662f, 0.863190651f, 0.091692619f, 0.993668079f, 0.993002713f, -0.871108294f, 0.644051492f, 0.634600759f},
      2e-6);
  nn::RNN plain(3, 2, false, nn::relu);
  CHECK(min(plain(input())).item<float>() >= 0);
  check_gradient([&](const array& x) { return layer(x); }, input(), 1e-6);
}

TEST_CASE("GRU gives MLX's values") {
  nn::GRU layer(3, 2);
  set(layer);
  check_close(layer(input()),
              {-0.504832268f, 0.129898518f, -0.606686115f, -0.403109848f, 0.045355469f, -0.817299485f, -0.330660731f,
               -0.487565756f, -0.555714369f, -0.561128616f, 0.0242730081f, -0.84166503f, -0.341323644f, -0.520710468f,
               -0.605834007f, -0.705935836f},
              2e-6);
  check_close(layer(input(), start()),
              {-0.524081707f, 0.62816608f, -0.504247069f, -0.281537265f, 0.122754037f, -0.7948066f, -0.288779795f,
               -0.451272249f, -0.486258507f, -0.490794003f, 0.0755969286f, -0.828160286f, -0.312910557f, -0.497794747f,
               -0.600401282f, -0.697864532f},
              2e-6);
  check_gradient([&](const array& x) { return layer(x); }, input(), 1e-6);
  check_gradient([&](const array& h) { return layer(astype(input(), h.dtype()), h); }, start(), 1e-6);
}

TEST_CASE("LSTM gives MLX's values") {
  nn::LSTM layer(3, 2);
  set(layer);
  const auto [h, c] = layer.run(input(), start(), waves({2, 2}, 1.6));
  check_close(h,
              {-0.47268033f, 0.0372955911f, -0.285841554f, -0.132425025f, -0.0109662563f, -0.35543865f, -0.577100754f,
               -0.082702063f, -0.300640106f, 0.0216066111f, -0.00119257579f, -0.264438808f, -0.572149515f,
               -0.0520638749f, -0.28061071f, -0.376754612f},
              2e-6);
  check_close(c,
              {-0.633562684f, 0.463044375f, -0.449899256f, -0.165060982f, -0.0585236698f, -0.39449963f, -0.84459579f,
               -0.239948452f, -0.399414122f, 0.0425972193f, -0.00650461018f, -0.28961274f, -0.831149876f, -0.160959855f,
               -0.456054568f, -0.480834544f},
              2e-6);
  check_close(layer(waves({4, 3}, 0.3)),
              {-0.572560728f, 0.0137623902f, -0.30078733f, -0.282192379f, -0.0204991307f, -0.431905895f, -0.585760295f,
               -0.112802878f},
              2e-6);
  check_gradient([&](const array& x) { return layer(x); }, input(), 1e-6);
}

TEST_CASE("recurrent layers: gradients of parameters, long sequences, mistakes") {
  struct Model : nn::Module {
    nn::LSTM lstm{*this, "lstm", 3, 2};
    array loss(const array& x) { return mean(square(lstm(x))); }
  } model;
  set(model.lstm);
  const auto [loss, slopes] =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0]); })({input()});
  REQUIRE(slopes.size() == 3);
  const auto slope = slopes[1].to_vector<float>();
  auto values = wave(16, 0.5);
  for (size_t i = 0; i < values.size(); i += 5) {
    const float kept = values[i], h = 1e-2f;
    values[i] = kept + h;
    model.lstm.Wh = array::from_data(values.data(), {8, 2}, float32);
    const double up = model.loss(input()).item<float>();
    values[i] = kept - h;
    model.lstm.Wh = array::from_data(values.data(), {8, 2}, float32);
    const double down = model.loss(input()).item<float>();
    values[i] = kept;
    CHECK(std::abs((up - down) / 0.02 - slope[i]) < 1e-4);
  }
  CHECK(nn::GRU(3, 5)(waves({2, 300, 3}, 0.1)).shape() == Shape{2, 300, 5});
  CHECK(nn::RNN(3, 5)(waves({2, 4, 3}, 0.1, bfloat16)).dtype() == bfloat16);
  CHECK_THROWS_AS(nn::GRU(3, 5)(waves({2, 4, 4}, 0.1)), std::invalid_argument);
  CHECK_THROWS_AS(nn::GRU(3, 5)(waves({3}, 0.1)), std::invalid_argument);
  CHECK_THROWS_AS(model.lstm.run(input(), zeros({2, 3})), std::invalid_argument);
}
