// Activations and losses: values of MLX 0.32.4 (mlx.nn, mlx.nn.losses), derivatives against central differences in
// float64.
#include "nn/support.h"

using namespace weft;
using namespace weft::nn::test;

TEST_CASE("activations give MLX's values") {
  const array x = array({-4.0f, -2.5f, -0.8f, -0.3f, 0.0f, 0.2f, 0.9f, 3.5f});
  check_close(nn::celu(x, 1.5f),
              {-1.39577484f, -1.21668661f, -0.620030701f, -0.271903843f, 0, 0.200000003f, 0.899999976f, 3.5f}, 2e-6);
  check_close(nn::elu(x, 0.7f),
              {-0.687179089f, -0.642540455f, -0.385469735f, -0.181427255f, 0, 0.200000003f, 0.899999976f, 3.5f}, 2e-6);
  check_close(nn::gelu_fast_approx(x),
              {-0.00441472372f, -0.0349861607f, -0.1631843f, -0.112515867f, 0, 0.116857544f, 0.740042508f, 3.49096656f},
              2e-6);
  check_close(nn::glu(x), {-2, -1.37458503f, -0.56875962f, -0.29120633f}, 2e-6);
  check_close(nn::hard_shrink(x), {-4, -2.5f, -0.800000012f, 0, 0, 0, 0.899999976f, 3.5f}, 2e-6);
  check_close(nn::hard_tanh(x, -1, 0.5f), {-1, -1, -0.800000012f, -0.300000012f, 0, 0.200000003f, 0.5f, 0.5f}, 2e-6);
  check_close(nn::hardswish(x), {0, -0.208333328f, -0.293333352f, -0.135000005f, 0, 0.106666677f, 0.584999979f, 3.5f},
              2e-6);
  check_close(nn::leaky_relu(x, 0.1f),
              {-0.400000006f, -0.25f, -0.0800000057f, -0.0300000012f, 0, 0.200000003f, 0.899999976f, 3.5f}, 2e-6);
  check_close(nn::log_sigmoid(x),
              {-4.01814985f, -2.57888985f, -1.17110062f, -0.854355276f, -0.693147182f, -0.598138869f, -0.34115389f,
               -0.0297504161f},
              2e-6);
  check_close(
      nn::log_softmax(x),
      {-7.66579008f, -6.16579008f, -4.46579027f, -3.96579003f, -3.66579008f, -3.46579003f, -2.76578999f, -0.165790051f},
      2e-6);
  check_close(nn::mish(x),
              {-0.0725917518f, -0.196816191f, -0.283963263f, -0.15113318f, 0, 0.132598981f, 0.761205912f, 3.4939909f},
              2e-6);
  check_close(nn::prelu(x, array(0.25f)),
              {-1, -0.625f, -0.200000003f, -0.075000003f, 0, 0.200000003f, 0.899999976f, 3.5f}, 2e-6);
  check_close(nn::relu2(x), {0, 0, 0, 0, 0, 0.0400000028f, 0.809999943f, 12.25f}, 2e-6);
  check_close(nn::relu6(x + x), {0, 0, 0, 0, 0, 0.400000006f, 1.79999995f, 6}, 2e-6);
  check_close(nn::selu(x),
              {-1.72589362f, -1.61378098f, -0.968131542f, -0.455666006f, 0, 0.21013999f, 0.945629954f, 3.6774497f},
              2e-6);
  check_close(
      nn::sigmoid(x),
      {0.0179862101f, 0.0758581758f, 0.310025513f, 0.425557494f, 0.5f, 0.549834013f, 0.710949481f, 0.970687747f}, 2e-6);
  check_close(nn::silu(x),
              {-0.0719448403f, -0.189645439f, -0.248020411f, -0.127667248f, 0, 0.109966807f, 0.639854491f, 3.39740705f},
              2e-6);
  check_close(nn::softmin(x),
              {0.751921058f, 0.167776287f, 0.0306499545f, 0.0185901392f, 0.0137719149f, 0.0112754917f, 0.00559924264f,
               0.000415875897f},
              2e-6);
  check_close(
      nn::softplus(x),
      {0.0181499291f, 0.078889735f, 0.371100664f, 0.554355264f, 0.693147182f, 0.798138857f, 1.24115384f, 3.52975035f},
      2e-6);
  check_close(nn::softshrink(x), {-3.5f, -2, -0.300000012f, 0, 0, 0, 0.399999976f, 3}, 2e-6);
  check_close(nn::softsign(x),
              {-0.800000012f, -0.714285731f, -0.444444478f, -0.230769247f, 0, 0.166666657f, 0.473684192f, 0.777777791f},
              2e-6);
  check_close(nn::step(x, 0.2f), {0, 0, 0, 0, 0, 1, 1, 1}, 0);  // mlx.nn.step: 1 at the threshold too, int32
  CHECK(nn::step(x).dtype() == int32);
  check_close(nn::tanh(x),
              {-0.999329329f, -0.986614287f, -0.664036751f, -0.291312605f, 0, 0.197375327f, 0.716297865f, 0.998177886f},
              2e-6);
}

TEST_CASE("activations: derivatives, dtypes, and no overflow far out") {
  const std::vector<std::function<array(const array&)>> all{[](const array& x) { return nn::celu(x, 1.5f); },
                                                            [](const array& x) { return nn::elu(x, 0.7f); },
                                                            nn::gelu,
                                                            nn::gelu_approx,
                                                            nn::gelu_fast_approx,
                                                            [](const array& x) { return nn::glu(x); },
                                                            [](const array& x) { return nn::hard_shrink(x); },
                                                            [](const array& x) { return nn::hard_tanh(x); },
                                                            nn::hardswish,
                                                            [](const array& x) { return nn::leaky_relu(x); },
                                                            nn::log_sigmoid,
                                                            [](const array& x) { return nn::log_softmax(x); },
                                                            nn::mish,
                                                            [](const array& x) { return nn::prelu(x, array(0.25f)); },
                                                            nn::relu,
                                                            nn::relu2,
                                                            nn::relu6,
                                                            nn::selu,
                                                            nn::sigmoid,
                                                            nn::silu,
                                                            [](const array& x) { return nn::softmax(x); },
                                                            [](const array& x) { return nn::softmin(x); },
                                                            nn::softplus,
                                                            [](const array& x) { return nn::softshrink(x); },
                                                            nn::softsign,
                                                            [](const array& x) { return nn::step(x); },
                                                            nn::tanh};
  REQUIRE(all.size() == 27);
  const array far = array({-200.0f, -90.0f, 90.0f, 200.0f});
  for (size_t k = 0; k < all.size(); ++k) {
    CAPTURE(k);
    check_gradient(all[k], array({-4.0f, -2.45f, -0.8f, -0.3f, 0.2f, 0.9f}), 1e-6);
    const bool is_step = k == 25;
    CHECK(all[k](astype(far, bfloat16)).dtype() == (is_step ? int32 : bfloat16));
    for (const float v : all[k](far).to_vector<float>()) CHECK(std::isfinite(v));
    for (const float v :
         grad([&](const array& x) { return sum(astype(all[k](x), x.dtype())); })(far).to_vector<float>())
      CHECK(std::isfinite(v));
  }
}

TEST_CASE("cross-entropy with weights, smoothing, other axes, and targets that are probabilities") {
  using nn::losses::cross_entropy;
  using nn::losses::Reduction;
  const array logits = waves({4, 3}, 0.6), targets = array({0, 2, 1, 2});
  check_close(cross_entropy(logits, targets, {.label_smoothing = 0.1f, .reduction = Reduction::none}),
              {1.33662939f, 1.76920676f, 1.27300298f, 1.03514326f});
  check_close(
      cross_entropy(logits, targets, {.weights = array({1.0f, 0.5f, 2.0f, 0.25f}), .reduction = Reduction::none}),
      {1.36141515f, 0.914743185f, 2.56812787f, 0.256635964f});
  const array probabilities = softmax(waves({4, 3}, 0.2), -1);
  check_close(cross_entropy(logits, probabilities, {.reduction = Reduction::none}),
              {1.06600237f, 0.978754282f, 1.08634686f, 1.06806064f});
  check_close(cross_entropy(logits, probabilities, {.label_smoothing = 0.2f, .reduction = Reduction::none}),
              {1.07551348f, 1.02834117f, 1.10376847f, 1.07695627f});
  check_close(cross_entropy(logits, array({0, 3, 1}), {.axis = 0, .reduction = Reduction::none}),
              {1.12998199f, 0.907231867f, 2.66025257f});
  check_gradient(
      [&](const array& x) {
        return cross_entropy(x, targets, {.label_smoothing = 0.3f, .reduction = Reduction::none});
      },
      logits);
  CHECK_THROWS_AS(cross_entropy(logits, targets, {.label_smoothing = 1.0f}), std::invalid_argument);
  CHECK_THROWS_AS(cross_entropy(logits, targets, {.weights = array({1.0f, 2.0f})}), std::invalid_argument);
  CHECK_THROWS_AS(cross_entropy(logits, transpose(probabilities), {}), std::invalid_argument);
}

TEST_CASE("binary cross-entropy: of logits, of probabilities, weighted, at the edges") {
  using nn::losses::binary_cross_entropy;
  using nn::losses::Reduction;
  const array x = waves({6}, 0.3) * array(2.0f), t = array({0.0f, 1.0f, 1.0f, 0.0f, 1.0f, 0.0f});
  check_close(binary_cross_entropy(x, t, {.reduction = Reduction::none}),
              {1.03171229f, 0.170439959f, 0.128929734f, 1.58124435f, 0.652430654f, 0.25784266f});
  check_close(binary_cross_entropy(sigmoid(x), t, {.with_logits = false, .reduction = Reduction::none}),
              {1.03171229f, 0.170440018f, 0.128929824f, 1.58124447f, 0.652430773f, 0.25784263f});
  check_close(binary_cross_entropy(x, t, {.weights = array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f})}), {2.14892817f});
  check_close(binary_cross_entropy(array({0.0f, 1.0f, 0.0f, 1.0f}), array({0.0f, 1.0f, 1.0f, 0.0f}),
                                   {.with_logits = false, .reduction = Reduction::none}),
              {0.0f, 0.0f, 100.0f, 100.0f});
  check_gradient([&](const array& v) { return binary_cross_entropy(v, t, {.reduction = Reduction::none}); }, x);
}

TEST_CASE("losses of differences give MLX's values") {
  using namespace nn::losses;
  const Reduction none = Reduction::none;
  const array a = waves({6}, 0.3) * array(2.0f), b = waves({6}, 1.1);
  check_close(l1_loss(a, b, none), {0.300166905f, 0.709094286f, 1.38485754f, 1.40930057f, 0.770927429f, 0.230024755f});
  check_close(l1_loss(a, b), {0.800728559f});
  check_close(mse_loss(a, b, none),
              {0.0901001692f, 0.50281471f, 1.91783035f, 1.98612809f, 0.594329119f, 0.0529113896f});
  check_close(mse_loss(a, b), {0.857352376f});
  check_close(huber_loss(a, b, 0.8f, none),
              {0.0450500846f, 0.251407355f, 0.787886024f, 0.80744046f, 0.297164559f, 0.0264556948f});
  check_close(huber_loss(a, b, 0.8f, Reduction::mean), {0.369234055f});
  check_close(log_cosh_loss(a, b, none),
              {0.0443893671f, 0.232792675f, 0.75250423f, 0.774129152f, 0.271687627f, 0.0262256265f});
  check_close(smooth_l1_loss(a, b, 0.7f, none),
              {0.0643572658f, 0.359094292f, 1.03485751f, 1.05930054f, 0.420927435f, 0.0377938487f});
  check_close(mse_loss(a, b, Reduction::sum), {6 * 0.857352376f});
  const array var = abs(waves({6}, 2.0)) + array(0.1f);
  check_close(gaussian_nll_loss(a, b, var, false, 1e-6f, none),
              {0.0492623039f, 0.156793088f, 2.18000126f, 1.03881454f, 0.317003489f, -0.0752788335f});
  check_close(gaussian_nll_loss(a, b, var, true, 1e-6f, none),
              {0.968200803f, 1.07573164f, 3.0989399f, 1.95775306f, 1.23594201f, 0.843659699f});
  const array sign = array({1.0f, -1.0f, 1.0f, 1.0f, -1.0f, -1.0f});
  check_close(hinge_loss(a, sign, none), {0.408959568f, 2.68294191f, 0, 0, 1.08316135f, 0});
  check_close(margin_ranking_loss(a, b, sign, 0.3f, none),
              {0.600166917f, 1.00909424f, 0, 0, 1.07092738f, 0.0699752569f});
  for (const auto& loss : {l1_loss, mse_loss, log_cosh_loss, hinge_loss})
    check_gradient([&](const array& x) { return loss(x, astype(b, float64), none); }, a);
  check_gradient([&](const array& x) { return huber_loss(x, b, 0.8f, none); }, a);
  check_gradient([&](const array& x) { return smooth_l1_loss(x, b, 0.7f, none); }, a);
  check_gradient([&](const array& x) { return gaussian_nll_loss(x, b, var, true, 1e-6f, none); }, a);
  CHECK(mse_loss(astype(a, bfloat16), b).dtype() == float32);
  CHECK_THROWS_WITH_AS(mse_loss(a, zeros({5})), "[losses.mse_loss] shapes must be the same; they are (6) and (5)",
                       std::invalid_argument);
  CHECK_THROWS_AS(huber_loss(a, b, 0), std::invalid_argument);
}

TEST_CASE("losses along an axis give MLX's values") {
  using namespace nn::losses;
  const Reduction none = Reduction::none;
  const array logits = waves({4, 3}, 0.6);
  check_close(nll_loss(logits, array({0, 2, 1, 2}), -1, none),
              {-0.564642489f, 0.818277121f, 0.705540299f, -0.90217185f});
  check_gradient([&](const array& x) { return nll_loss(x, array({0, 3, 1}), 0, none); }, logits);
  check_close(kl_div_loss(nn::log_softmax(logits), nn::log_softmax(waves({4, 3}, 2.2)), -1, none),
              {0.202648133f, 0.223748595f, 0.0130234472f, 0.199252665f});
  const array anchors = waves({3, 4}, 0.1), near = waves({3, 4}, 0.9), far = waves({3, 4}, 1.4);
  check_close(triplet_loss(anchors, near, far, -1, 2, 1, 1e-6f, none), {0.418562889f, 0.446881294f, 0.447939157f});
  check_gradient(
      [&](const array& x) {
        return triplet_loss(x, astype(near, float64), astype(far, float64), 0, 3, 1, 1e-6f, none);
      },
      anchors, 1e-6);
  check_close(cosine_similarity_loss(anchors, near, 1, 1e-8f, none), {0.758004129f, 0.744858265f, 0.710321844f});
  check_close(cosine_similarity_loss(anchors, near, 0, 1e-8f, none),
              {-0.282946587f, 0.908468306f, 0.971494257f, 0.916022182f});
  check_gradient([&](const array& x) { return cosine_similarity_loss(x, near, 1, 1e-8f, none); }, anchors);
  CHECK_THROWS_AS(nll_loss(logits, array({0, 2, 1})), std::invalid_argument);
  CHECK_THROWS_AS(triplet_loss(anchors, near, far, -1, 0), std::invalid_argument);
}
