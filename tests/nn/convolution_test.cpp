// Convolution layers, pooling, upsampling: values of MLX 0.32.4.
#include "nn/support.h"

using namespace weft;
using namespace weft::nn::test;

TEST_CASE("Conv and ConvTranspose give MLX's values") {
  const array x = waves({1, 7, 2}, 0.3);
  nn::Conv1d conv(2, 3, 3, {.stride = {2}, .padding = {1}});
  conv.weight = waves({3, 3, 2}, 0.5);
  *conv.bias = waves({3}, 0.9);
  check_close(conv(x), {0.829134107f, 2.92713356f, -1.19011617f, 2.43505049f, -2.57190657f, 2.59589529f, -1.58484125f,
                        4.61020327f, -0.426426947f, 2.75330806f, -0.723865032f, 0.465592772f});
  nn::ConvTranspose1d back(2, 3, 3, {.stride = {2}, .padding = {1}, .output_padding = {1}});
  back.weight = waves({3, 3, 2}, 0.5);
  *back.bias = waves({3}, 0.9);
  check_close(back(x),
              {1.49675727f,   1.36152291f,    -0.322624266f, 1.20486999f,  0.554806292f,   0.760265946f, 2.06994152f,
               1.15268481f,   -0.69103843f,   -0.434636772f, 2.99642849f,  0.00570940971f, 0.507261097f, 0.689671993f,
               1.32563615f,   -0.0522437692f, 2.12314034f,   0.479594499f, -0.597132027f,  0.741116166f, 2.37958717f,
               1.71725154f,   -0.615342617f,  1.39524078f,   0.590127409f, 1.22161663f,    0.721186697f, 1.93637085f,
               -0.672958493f, 1.23261535f,    2.09811068f,   1.33351111f,  -0.896511495f,  0.241361499f, 2.04593897f,
               0.261686981f,  1.42346656f,    0.891047299f,  0.211977899f, 0.659996271f,   1.64474571f,  0.236430645f});
  check_gradient([&](const array& v) { return conv(v); }, x, 1e-6);
  check_gradient([&](const array& v) { return back(v); }, x, 1e-6);
}

TEST_CASE("convolution layers: shapes, starting values, dtypes, mistakes") {
  const nn::Conv2d conv(4, 8, {3, 5}, {.stride = {1, 2}, .padding = {1, 2}, .groups = 2, .bias = false});
  CHECK(conv.weight.value().shape() == Shape{8, 3, 5, 2});
  CHECK(!conv.bias);
  CHECK(conv(waves({2, 6, 7, 4}, 0.1)).shape() == Shape{2, 6, 4, 8});
  CHECK(conv(waves({2, 6, 7, 4}, 0.1, bfloat16)).dtype() == bfloat16);
  const double bound = 1 / std::sqrt(30.0), top = max(abs(conv.weight)).item<float>();
  CHECK(top <= bound);
  CHECK(top > 0.9 * bound);
  CHECK(nn::Conv3d(2, 3, {2})(waves({1, 3, 4, 5, 2}, 0.1)).shape() == Shape{1, 2, 3, 4, 3});
  CHECK(nn::ConvTranspose2d(3, 2, {3}, {.stride = {2}})(waves({1, 3, 4, 3}, 0.1)).shape() == Shape{1, 7, 9, 2});
  CHECK(nn::ConvTranspose3d(3, 2, {2})(waves({1, 3, 4, 2, 3}, 0.1)).shape() == Shape{1, 4, 5, 3, 2});
  CHECK(conv.describe() == "Conv2d(4, 8, kernel=(3, 5), stride=(1, 2), padding=(1, 2), groups=2, bias=false)");
  CHECK_THROWS_AS(conv(waves({6, 7, 4}, 0.1)), std::invalid_argument);
  CHECK_THROWS_AS(nn::Conv2d(4, 8, {3}, {.groups = 3}), std::invalid_argument);
  CHECK_THROWS_AS(nn::Conv2d(4, 8, {3, 3, 3}), std::invalid_argument);
}

TEST_CASE("pooling gives MLX's values") {
  const array x = waves({1, 7, 2}, 0.3), image = waves({1, 5, 4, 2}, 0.3);
  check_close(
      nn::MaxPool1d({.kernel = {3}, .stride = {2}, .padding = {1}})(x),
      {0.991664827f, 0.841470957f, 0.991664827f, 0.6754632f, 0.850436628f, 0.989358246f, 0.850436628f, 0.989358246f},
      1e-6);
  check_close(nn::AvgPool1d({.kernel = {3}, .stride = {2}, .padding = {1}})(x),
              {0.429061711f, 0.505644739f, 0.0185717754f, -0.273283124f, -0.166990072f, 0.139148295f, 0.50446862f,
               0.338044584f},
              1e-6);
  check_close(nn::MaxPool1d()(x),
              {0.991664827f, 0.841470957f, 0.0415806621f, -0.611857891f, 0.850436628f, 0.989358246f}, 1e-6);
  check_close(
      nn::MaxPool2d()(image),
      {0.991664827f, 0.989358246f, 0.662969232f, 0.024775425f, 0.327474445f, 0.859161794f, 0.986771941f, 0.983906686f},
      1e-6);
  const nn::AvgPool2d mean({.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}});
  check_close(mean(image),
              {0.293957531f,  0.469638944f,  -0.149675146f, -0.408578932f, 0.202627897f,   0.553127706f,  0.0161140468f,
               -0.406548738f, -0.232993901f, 0.21299082f,   0.422950089f,  0.00517929299f, -0.564032137f, -0.222750902f,
               0.639937282f,  0.414582491f,  -0.472702473f, -0.306239665f, 0.474148035f,   0.412552297f},
              1e-6);
  CHECK(nn::MaxPool3d()(waves({1, 4, 5, 6, 2}, 0.1)).shape() == Shape{1, 2, 2, 3, 2});
  check_gradient([](const array& v) { return nn::MaxPool1d({.kernel = {3}, .stride = {2}, .padding = {1}})(v); }, x);
  check_gradient([](const array& v) { return nn::MaxPool2d()(v); }, image);
  check_gradient([&](const array& v) { return mean(v); }, image);
  CHECK_THROWS_AS(nn::MaxPool2d()(x), std::invalid_argument);
  CHECK_THROWS_AS(nn::max_pool(x, {3}, {1}, {2}), std::invalid_argument);
  CHECK_THROWS_AS(nn::max_pool(x, {9}), std::invalid_argument);
}

TEST_CASE("equal elements of a window share the gradient of its maximum, as in MLX") {
  const array tied({1, 1, 0, 1, 2, 2, 2, 0}, {1, 8, 1}, float32);
  const auto slope = [&](const nn::PoolOptions& options) {
    return grad([&](const array& x) {
      return sum(nn::MaxPool1d(options)(x) * array({1, 10, 100, 1000}, {1, 4, 1}));
    })(tied);
  };
  check_close(slope({.kernel = {2}}), {0.5f, 0.5f, 0, 10, 50, 50, 1000, 0}, 1e-6);
  // Windows that overlap: {-, 1, 1}, {1, 0, 1}, {1, 2, 2}, {2, 2, 0}.
  check_close(slope({.kernel = {3}, .stride = {2}, .padding = {1}}), {0.5f, 5.5f, 0, 5, 50, 550, 500, 0}, 1e-6);
}

TEST_CASE("Upsample gives MLX's values") {
  using Mode = nn::UpsampleOptions::Mode;
  const array x = waves({1, 7, 2}, 0.3);
  check_close(nn::Upsample()(x),
              {0.295520216f,  0.841470957f,  0.295520216f,  0.841470957f,  0.991664827f,  0.6754632f,    0.991664827f,
               0.6754632f,    0.0415806621f, -0.611857891f, 0.0415806621f, -0.611857891f, -0.977530122f, -0.88345468f,
               -0.977530122f, -0.88345468f,  -0.373876661f, 0.311541349f,  -0.373876661f, 0.311541349f,  0.850436628f,
               0.989358246f,  0.850436628f,  0.989358246f,  0.662969232f,  0.024775425f,  0.662969232f,  0.024775425f},
              1e-6);
  check_close(nn::Upsample({.scale = {1.5f}, .mode = Mode::linear})(x),
              {0.295520216f,  0.841470957f,  0.759616673f,  0.730799079f,  0.67497009f,   0.246356115f,  0.0415806621f,
               -0.611857891f, -0.637826622f, -0.792922497f, -0.776312232f, -0.485122472f, -0.373876661f, 0.311541349f,
               0.442332566f,  0.763419509f,  0.787947416f,  0.667830467f,  0.662969232f,  0.024775425f},
              2e-6);
  check_close(nn::Upsample({.scale = {1.5f}, .mode = Mode::linear, .align_corners = true})(x),
              {0.295520216f,  0.841470957f,  0.759616673f,  0.730799079f,  0.67497009f,   0.246356115f,  0.0415806621f,
               -0.611857891f, -0.637826622f, -0.792922497f, -0.776312232f, -0.485122472f, -0.373876661f, 0.311541349f,
               0.442332566f,  0.763419509f,  0.787947416f,  0.667830467f,  0.662969232f,  0.024775425f},
              2e-6);
  check_close(
      nn::Upsample({.mode = Mode::cubic})(x),
      {0.222098708f,  0.858979583f,  0.486641854f,  0.849117219f,   0.934148729f,   0.848846436f,  0.885661006f,
       0.37584424f,   0.388792276f,  -0.297390431f, -0.310737997f,  -0.851175308f,  -0.843705833f, -0.993213117f,
       -0.991291523f, -0.665187836f, -0.675596774f, -0.0402367711f, -0.0262359399f, 0.625055075f,  0.614047289f,
       0.979535341f,  0.937090337f,  0.842308462f,  0.748484612f,   0.26714322f,    0.643197238f,  -0.0769579187f},
      5e-6);
  check_close(nn::Upsample({.mode = Mode::cubic, .align_corners = true})(x),
              {0.295520216f,  0.841470957f,  0.695223093f,  0.876389563f,  0.995275795f,  0.749021471f,  0.784847856f,
               0.198326752f,  0.260989487f,  -0.42286849f,  -0.385876417f, -0.890990973f, -0.857715487f, -0.989202321f,
               -0.994635642f, -0.684882283f, -0.732764542f, -0.119994298f, -0.160420105f, 0.513759613f,  0.457958251f,
               0.924874306f,  0.899016619f,  0.962968171f,  0.853919983f,  0.523667514f,  0.662969232f,  0.024775425f},
              5e-6);
  check_close(nn::Upsample({.scale = {2, 1.5f}, .mode = Mode::linear})(waves({1, 2, 2, 1}, 0.3)),
              {0.295520216f, 0.568495572f, 0.841470957f, 0.469556391f, 0.634762704f, 0.799969018f, 0.817628682f,
               0.76729691f, 0.716965139f, 0.991664827f, 0.833564043f, 0.6754632f},
              2e-6);
  check_gradient([](const array& v) { return nn::Upsample({.mode = Mode::cubic})(v); }, x, 1e-6);
  CHECK_THROWS_AS(nn::Upsample({.scale = {0}}), std::invalid_argument);
  CHECK_THROWS_AS(nn::Upsample({.scale = {2, 2}})(x), std::invalid_argument);
}

// mlx.nn.Upsample of x = waves(0.3) of shape (1, 7, 2) and of waves(0.3) of shape (1, 5, 6, 1).
TEST_CASE("Upsample shrinks as MLX's, with and without antialias") {
  using Mode = nn::UpsampleOptions::Mode;
  const array x = waves({1, 7, 2}, 0.3), image = waves({1, 5, 6, 1}, 0.3);
  // Upsample(0.6): elements 0, 1, 3, 5
  check_close(
      nn::Upsample({.scale = {0.6}})(x),
      {0.295520216f, 0.841470957f, 0.991664827f, 0.6754632f, -0.977530122f, -0.88345468f, 0.850436628f, 0.989358246f},
      3e-6);
  // Upsample(0.4, "linear")
  check_close(nn::Upsample({.scale = {0.4}, .mode = Mode::linear})(x),
              {0.2791017f, -0.290027618f, -0.0677983314f, 0.480995595f}, 3e-6);
  // Upsample(0.4, "linear", antialias=True)
  check_close(nn::Upsample({.scale = {0.4}, .mode = Mode::linear, .antialias = true})(x),
              {0.117636546f, -0.0943919048f, -0.0107598379f, 0.190982968f}, 3e-6);
  // Upsample(0.4, "cubic", antialias=True)
  check_close(nn::Upsample({.scale = {0.4}, .mode = Mode::cubic, .antialias = true})(x),
              {0.105847597f, -0.135046571f, -0.0417405218f, 0.192984089f}, 3e-6);
  // Upsample(1.5, "cubic", antialias=True): another kernel than without
  check_close(nn::Upsample({.scale = {1.5}, .mode = Mode::cubic, .antialias = true})(x),
              {0.295520216f,  0.841470957f,  0.83576715f,   0.820774198f,  0.799468875f,  0.291796356f,  0.0415806621f,
               -0.611857891f, -0.755474627f, -0.939178109f, -0.919504404f, -0.574604213f, -0.373876661f, 0.311541349f,
               0.523921371f,  0.904233217f,  0.877629995f,  0.727729023f,  0.662969232f,  0.024775425f},
              3e-6);
  // Upsample((0.5, 0.34), "linear", antialias=True)
  check_close(nn::Upsample({.scale = {0.5, 0.34}, .mode = Mode::linear, .antialias = true})(image),
              {-0.160037205f, 0.151605755f, 0.187209517f, 0.0342183523f}, 3e-6);
  // Upsample((1.4, 0.7))
  check_close(
      nn::Upsample({.scale = {1.4, 0.7}})(image),
      {0.295520216f,  0.841470957f,  0.6754632f,     0.0415806621f, -0.977530122f, -0.88345468f,   0.311541349f,
       0.850436628f,  -0.977530122f, -0.88345468f,   0.311541349f,  0.850436628f,  0.662969232f,   0.024775425f,
       -0.980936229f, -0.875452161f, 0.327474445f,   0.859161794f,  0.650287867f,  0.00796318334f, 0.327474445f,
       0.859161794f,  0.650287867f,  0.00796318334f, -0.984064996f, -0.867202163f, 0.343314916f,   0.867644072f},
      3e-6);
  // 0.7 · 10 are 7, as in Python; integers stay integers where nothing is weighted.
  CHECK(nn::Upsample({.scale = {0.7}})(waves({1, 10, 1}, 0.1)).shape() == Shape{1, 7, 1});
  CHECK(nn::Upsample()(reshape(arange(4), {1, 4, 1})).dtype() == int32);
  CHECK(nn::Upsample({.mode = Mode::linear})(reshape(arange(4), {1, 4, 1})).dtype() == float32);
  check_gradient(
      [](const array& v) { return nn::Upsample({.scale = {0.4}, .mode = Mode::cubic, .antialias = true})(v); }, x,
      1e-6);
  CHECK(nn::Upsample({.mode = Mode::linear, .antialias = true}).describe() == "Upsample(2, linear, antialias=true)");
  CHECK_THROWS_AS(nn::Upsample({.antialias = true}), std::invalid_argument);
  CHECK_THROWS_AS(nn::Upsample({.mode = Mode::linear, .align_corners = true, .antialias = true}),
                  std::invalid_argument);
}
