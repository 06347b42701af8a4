// What losses and norms do without being told: defaults and values of MLX 0.32.4 (mlx.nn), written above each check.
#include "nn/support.h"
#include "runtime/trace.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::nn::test;
using namespace weft::nn::losses;

namespace {

array a() { return waves({4, 3}, 0.3) * array(2.0f); }
array b() { return waves({4, 3}, 1.1); }
array signs() { return sign(waves({4, 3}, 2)); }
array variances() { return abs(waves({4, 3}, 2)) + array(0.1f); }

/// Values and shape of a loss that nothing was said about the reduction of.
void check_loss(const array& loss, const Shape& shape, const std::vector<float>& expected) {
  CHECK(loss.shape() == shape);
  CHECK(loss.dtype() == float32);
  check_close(loss, expected, 3e-6);
}

}  // namespace

TEST_CASE("losses without a reduction: each one's default is MLX's") {
  const array classes = array({0, 2, 1, 2});
  // With a = 2 * waves(0.3), b = waves(1.1), signs = sign(waves(2)), variances = abs(waves(2)) + 0.1, all of shape (4,
  // 3): cross_entropy(a, [0, 2, 1, 2])
  check_loss(cross_entropy(a(), classes), {4}, {2.0799396f, 2.88039088f, 1.52591395f, 0.700718164f});
  // the same
  check_loss(cross_entropy(a(), classes, CrossEntropyOptions{}), {4},
             {2.0799396f, 2.88039088f, 1.52591395f, 0.700718164f});
  // nll_loss(a, [0, 2, 1, 2])
  check_loss(nll_loss(a(), classes), {4}, {-0.591040432f, 1.22371578f, 1.76690936f, -1.97871649f});
  // kl_div_loss(a, b)
  check_loss(kl_div_loss(a(), b()), {4}, {-3.66545653f, -1.63177562f, 3.34120703f, -3.7526772f});
  // triplet_loss(a, b, variances)
  check_loss(triplet_loss(a(), b(), variances()), {4}, {0.544935703f, 0.313817739f, 0, 0.563314676f});
  // hinge_loss(a, signs)
  check_loss(hinge_loss(a(), signs()), {4, 3},
             {0.408959568f, 0, 2.98332977f, 2.3509264f, 1.08316135f, 0, 0, 2.76690936f, 1.74775338f, 0.376917303f, 0,
              2.97871637f});
  // huber_loss(a, b)
  check_loss(huber_loss(a(), b()), {4, 3},
             {0.0450500846f, 0.251407355f, 0.884857535f, 0.909300566f, 0.297164559f, 0.0264556948f, 0.622792721f,
              0.987493873f, 0.652603269f, 0.0379846841f, 0.267168403f, 0.893799305f});
  // log_cosh_loss(a, b)
  check_loss(log_cosh_loss(a(), b()), {4, 3},
             {0.0443893671f, 0.232792675f, 0.75250423f, 0.774129152f, 0.271687627f, 0.0262256265f, 0.530273914f,
              0.844134569f, 0.554528236f, 0.0375132561f, 0.246296525f, 0.760400057f});
  // cosine_similarity_loss(a, b)
  check_loss(cosine_similarity_loss(a(), b()), {4}, {0.867161572f, 0.48917976f, 0.686543286f, 0.868079662f});
  // margin_ranking_loss(a, b, signs)
  check_loss(margin_ranking_loss(a(), b(), signs()), {4, 3},
             {0.300166905f, 0, 1.38485754f, 1.40930057f, 0.770927429f, 0, 0, 1.48749387f, 1.15260327f, 0.275625408f, 0,
              1.3937993f});
  // binary_cross_entropy(a, maximum(signs, 0))
  check_loss(binary_cross_entropy(a(), maximum(signs(), array(0.0f))), {}, {0.932971895f});
  // l1_loss(a, b)
  check_loss(l1_loss(a(), b()), {}, {0.913972557f});
  // mse_loss(a, b)
  check_loss(mse_loss(a(), b()), {}, {1.04157448f});
  // smooth_l1_loss(a, b)
  check_loss(smooth_l1_loss(a(), b()), {}, {0.489673197f});
  // gaussian_nll_loss(a, b, variances)
  check_loss(gaussian_nll_loss(a(), b(), variances()), {}, {0.891345978f});
}

TEST_CASE("losses that MLX broadcasts are broadcast, the others want one shape") {
  const array row = waves({3}, 1.9);
  // kl_div_loss(a, row) with row = waves(1.9) of shape (3)
  check_loss(kl_div_loss(a(), row), {4}, {-2.86826944f, 0.591971457f, 11.8001223f, -2.97690105f});
  // huber_loss(a, row)
  check_loss(huber_loss(a(), row), {4, 3},
             {0.0631047115f, 0.667440534f, 1.64107537f, 0.0818612278f, 0.0934589654f, 0.565970063f, 2.40136027f,
              1.78241062f, 0.174054518f, 0.0522347428f, 0.685371876f, 1.63646221f});
  // hinge_loss(a, row)
  check_loss(hinge_loss(a(), row), {4, 3},
             {0.440698385f, 0.132441103f, 1.31286168f, 0, 0.957130194f, 0.806964099f, 2.85007381f, 1.91084421f,
              0.88204515f, 0.410376787f, 0.123197496f, 1.31213403f});
  // log_cosh_loss(a, row)
  check_loss(log_cosh_loss(a(), row), {4, 3},
             {0.0618203282f, 0.566710234f, 1.46164656f, 0.0797203779f, 0.0906847715f, 0.484907031f, 2.21122789f,
              1.5996213f, 0.164804578f, 0.0513497591f, 0.581527114f, 1.45715976f});
  // triplet_loss(a, row, b)
  check_loss(triplet_loss(a(), row, b()), {4}, {1.87987947f, 0.596632838f, 2.54706812f, 1.86675239f});
  // cosine_similarity_loss(a, row.reshape(1, 3))
  check_loss(cosine_similarity_loss(a(), reshape(row, {1, 3})), {4},
             {0.383467257f, 0.762014329f, -0.885932744f, 0.395086229f});
  CHECK_THROWS_AS(l1_loss(a(), row), std::invalid_argument);
  CHECK_THROWS_AS(smooth_l1_loss(a(), row), std::invalid_argument);
  CHECK_THROWS_AS(gaussian_nll_loss(a(), b(), row), std::invalid_argument);
  CHECK_THROWS_AS(margin_ranking_loss(a(), b(), row), std::invalid_argument);
  // mse_loss([1, 2, 4], [0, 2, 2]) of integers
  check_loss(mse_loss(array({1, 2, 4}), array({0, 2, 2})), {}, {1.66666663f});
}

TEST_CASE("cross-entropy of targets that are probabilities, weighted and smoothed as MLX") {
  const array logits = waves({4, 3}, 0.6) * array(3.0f), shares = abs(waves({4, 3}, 0.9));  // which do not sum to 1
  // cross_entropy(logits, shares)
  check_loss(cross_entropy(logits, shares), {4}, {1.825207f, 4.7837429f, 3.60174751f, 1.82919455f});
  // cross_entropy(logits, shares, axis=0)
  check_loss(cross_entropy(logits, shares, {.axis = 0}), {3}, {5.42677641f, 4.99289608f, 6.29872847f});
  // cross_entropy(logits, shares, weights=[1, 0.5, 2, 0.25])
  check_loss(cross_entropy(logits, shares, {.weights = array({1.0f, 0.5f, 2.0f, 0.25f})}), {4},
             {1.825207f, 2.39187145f, 7.20349503f, 0.457298636f});
  // cross_entropy(logits, shares, label_smoothing=0.2)
  check_loss(cross_entropy(logits, shares, {.label_smoothing = 0.2f}), {4},
             {1.70407605f, 4.24113512f, 3.22813439f, 1.70579839f});
  // cross_entropy(logits, shares, weights=[1, 0.5, 2, 0.25], label_smoothing=0.2, reduction="mean")
  check_loss(cross_entropy(
                 logits, shares,
                 {.weights = array({1.0f, 0.5f, 2.0f, 0.25f}), .label_smoothing = 0.2f, .reduction = Reduction::mean}),
             {}, {2.67684054f});
  // cross_entropy(logits, [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]): rows of integers are one-hot
  check_loss(cross_entropy(logits, array({1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1}, {4, 3})), {4},
             {1.96312213f, 3.87909555f, 2.06550884f, 0.954230011f});
  // cross_entropy(logits + 1000, shares)
  check_loss(cross_entropy(logits + array(1000.0f), shares), {4}, {1.82522595f, 4.78377104f, 3.60172844f, 1.82919216f});
  // grad of sum(cross_entropy(x, shares, label_smoothing=0.2) * [1, 2, 3, 4])
  const auto weighted = [&](const array& x) {
    return sum(cross_entropy(x, shares, {.label_smoothing = 0.2f}) * array({1.0f, 2.0f, 3.0f, 4.0f}));
  };
  check_close(grad(weighted)(logits),
              {-0.552908897f, -0.401631087f, -0.268344581f, 1.37590086f, -0.757436216f, -1.61455762f, -2.26294231f,
               -0.934784055f, 1.74443758f, -2.22314954f, -1.58696771f, -1.07630312f},
              3e-6);
  CHECK_THROWS_AS(cross_entropy(logits, zeros({3, 4})), std::invalid_argument);
  CHECK_THROWS_AS(cross_entropy(logits, zeros({4})), std::invalid_argument);  // classes are integers
}

TEST_CASE("GroupNorm: MLX's groups by default, neighbours where PyTorch's are asked for") {
  const array x = waves({2, 3, 6}, 0.3) * array(2.0f) + array(1.0f);
  const auto normed = [&](nn::GroupNormOptions options) {
    nn::GroupNorm norm(2, 6, options);
    *norm.weight = waves({6}, 0.5);
    *norm.bias = waves({6}, 0.9);
    return norm(x);
  };
  // mlx.nn.GroupNorm(2, 6) with weight waves(0.5) and bias waves(0.9)
  check_close(normed({}), {0.984702587f, 2.10922194f,   2.07608819f,    0.633645773f,  -0.53936708f,  -0.294772625f,
                           0.120381653f, -0.167883754f, 0.246126026f,   0.367930353f,  -0.720058262f, -2.01114368f,
                           1.23417735f,  1.0310874f,    -0.0904990435f, -0.575764418f, -0.334510148f, -0.56664145f,
                           1.00635481f,  2.13236475f,   2.0695219f,     0.615159392f,  -0.531837046f, -0.26659143f,
                           0.11582619f,  -0.146459579f, 0.28803888f,    0.39104259f,   -0.72389847f,  -2.00511837f,
                           1.21680796f,  0.986575484f,  -0.125392616f,  -0.580140412f, -0.338214159f, -0.600436807f},
              3e-6);
  // mlx.nn.GroupNorm(2, 6, pytorch_compatible=True) with weight waves(0.5) and bias waves(0.9)
  check_close(normed({.pytorch_compatible = true}),
              {0.987305164f, 2.11691856f,   2.0814755f,    0.630795479f,  -0.538084209f, -0.29089886f,
               0.12275219f,  -0.160429239f, 0.25102216f,   0.365139931f,  -0.718764007f, -2.00688362f,
               1.23684692f,  1.03866947f,   -0.085693121f, -0.578342319f, -0.333240181f, -0.56270653f,
               1.00890839f,  2.13996983f,   2.07457852f,   0.612429976f,  -0.530553937f, -0.262549877f,
               0.11836338f,  -0.138901472f, 0.293062598f,  0.388307601f,  -0.722619712f, -2.00112009f,
               1.21936536f,  0.994156837f,  -0.120376527f, -0.58289969f,  -0.336926639f, -0.596403599f},
              3e-6);
  // mlx.nn.GroupNorm(3, 6, eps=0.1, affine=False) of x[:, 0]
  check_close(nn::GroupNorm(3, 6, {.eps = 0.1f, .affine = false})(reshape(slice(x, {0, 0, 0}, {2, 1, 6}), {2, 6})),
              {-0.768610597f, 0.929963887f, 0.981103897f, 0.768610597f, -0.929963887f, -0.981103897f, -0.714355886f,
               0.937400758f, 0.981583834f, 0.714355886f, -0.937400758f, -0.981583834f},
              3e-6);
  check_gradient([](const array& v) { return nn::GroupNorm(2, 6)(v); }, x, 1e-6);
  CHECK(nn::GroupNorm(2, 6).describe() == "GroupNorm(2, 6, affine=true)");
  CHECK(nn::GroupNorm(2, 6, {.pytorch_compatible = true}).describe() ==
        "GroupNorm(2, 6, affine=true, pytorch_compatible=true)");
}

TEST_CASE("LayerNorm and InstanceNorm: with and without weight and bias") {
  const array x = waves({2, 3, 6}, 0.3) * array(2.0f) + array(1.0f);
  // mlx.nn.LayerNorm(6, eps=0.1, affine=False)(x[0])
  check_close(nn::LayerNorm(6, {.eps = 0.1f, .affine = false})(slice(x, {0, 0, 0}, {1, 3, 6})),
              {-0.135407344f, 0.827332675f, 1.09218752f, 0.534591436f, -0.583209157f, -1.73549521f, -1.20705914f,
               -1.08921611f, -0.450896382f, 0.407688141f, 1.08273196f, 1.25675106f, 1.74100447f, 0.653426766f,
               -0.454008251f, -1.06045651f, -0.880695939f, 0.000729361025f},
              3e-6);
  // mlx.nn.InstanceNorm(6, eps=0.1)(x): no weight unless it is asked for
  check_close(nn::InstanceNorm(6, {.eps = 0.1f})(x),
              {0.418976367f, 1.17333126f,     1.36597252f,   0.924886882f, 0.0499040894f,  -0.858392298f,
               -1.34795368f, -1.21558785f,    -0.510404646f, 0.425085336f, 1.16932869f,    1.36465871f,
               0.928977251f, 0.0422566906f,   -0.855567813f, -1.34997213f, -1.21923292f,   -0.506266594f,
               0.463460058f, 1.19726431f,     1.35859716f,   0.890253723f, 0.00322540081f, -0.894665897f,
               -1.35718119f, -1.19280541f,    -0.46741581f,  0.468557656f, 1.19342446f,    1.35695755f,
               0.893721044f, -0.00445904117f, -0.891181409f, -1.3588115f,  -1.19665015f,   -0.462291718f},
              3e-6);
  CHECK(nn::LayerNorm(6).parameters().size() == 2);
  CHECK(nn::LayerNorm(6, {.bias = false}).parameters().size() == 1);
  CHECK(nn::LayerNorm(6, {.affine = false}).parameters().empty());
  CHECK(nn::InstanceNorm(6).parameters().empty());
  CHECK(nn::LayerNorm(6, {.affine = false}).describe() == "LayerNorm(6, affine=false)");
  CHECK_THROWS_AS(nn::LayerNorm(6, {.affine = false})(zeros({5})), std::invalid_argument);
  // MLX refuses an eps that is not positive, and batches without a variance.
  CHECK_THROWS_AS(nn::LayerNorm(6, {.eps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(nn::RMSNorm(6, -1), std::invalid_argument);
  CHECK_THROWS_AS(nn::InstanceNorm(6, {.eps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(nn::GroupNorm(2, 6, {.eps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(nn::BatchNorm(6, {.eps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(nn::BatchNorm(6)(zeros({1, 6})), std::invalid_argument);
}

TEST_CASE("losses of classes and of probabilities, and their gradients, are a kernel a row") {
  const array logits = waves({64, 100}, 0.6), classes = astype(argmax(waves({64, 100}, 1.6), -1), int32);
  const array shares = softmax(waves({64, 100}, 2.6), -1);
  eval(logits, classes, shares);
  const auto launches = [&](const array& targets, const ArrayFunction& f) {
    const auto compiled = compile(f);
    eval(compiled({logits, targets}));
    const int64_t before = runtime::counters().kernel_launches;
    eval(compiled({logits, targets}));
    return runtime::counters().kernel_launches - before;
  };
  const auto training = [](const std::vector<array>& in) {
    const auto loss = [&](const array& x) { return cross_entropy(x, in[1], Reduction::mean); };
    const auto [value, slope] = value_and_grad(loss)(in[0]);
    return std::vector<array>{value, slope};
  };
  // The rows, and the mean of their losses.
  CHECK(launches(classes, training) <= 2);
  CHECK(launches(shares, training) <= 2);
  CHECK(launches(shares, [](const std::vector<array>& in) { return std::vector<array>{nn::log_softmax(in[0])}; }) == 1);
}
