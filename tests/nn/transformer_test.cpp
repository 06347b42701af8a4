// Attention between sequences, transformers, positional encodings, activations as layers: values of PyTorch in float64,
// and the formulas.
#include "nn/support.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::nn::test;

namespace {

/// Parameter k becomes half of a wave that begins at 0.1 k.
void set_waves(nn::Module& module) {
  double phase = 0;
  for (const auto& [name, handle] : module.parameters()) {
    *handle = waves(handle->shape(), phase) * 0.5f;
    phase += 0.1;
  }
}

std::vector<std::string> names(nn::Module& module) {
  std::vector<std::string> out;
  for (const auto& [name, handle] : module.parameters()) out.push_back(name);
  return out;
}

const array x = waves({1, 3, 4}, 0.3), memory = waves({1, 5, 4}, 1.1);

array causal() { return nn::MultiHeadAttention::create_additive_causal_mask(3); }

}  // namespace

TEST_CASE("MultiHeadAttention: widths of its own, biases, masks") {
  nn::MultiHeadAttention attention(
      4, 2, {.query_input_dims = 6, .key_input_dims = 5, .value_dims = 8, .value_output_dims = 3, .bias = true});
  CHECK(names(attention) == std::vector<std::string>{"query_proj.weight", "query_proj.bias", "key_proj.weight",
                                                     "key_proj.bias", "value_proj.weight", "value_proj.bias",
                                                     "out_proj.weight", "out_proj.bias"});
  set_waves(attention);
  const array q = waves({1, 2, 6}, 0.2), k = waves({1, 3, 5}, 0.7);
  check_close(attention(q, k, k), {1.49361706f, 1.08260894f, 0.175084308f, 1.43204987f, 1.65366876f, 1.12244058f});
  CHECK(attention.describe() == "MultiHeadAttention(3, heads=2)");

  nn::MultiHeadAttention plain(4, 2);
  set_waves(plain);
  CHECK(plain.num_parameters() == 4 * 16);
  const array hidden = causal(), seen = tri(3, 3, 0, bool_);
  CHECK(hidden.to_vector<float>()[1] == std::numeric_limits<float>::lowest());
  CHECK(hidden.to_vector<float>()[3] == 0);
  CHECK(allclose(plain(x, x, x, hidden), plain(x, x, x, seen), 1e-6, 1e-7).item<bool>());
  const array first = slice(x, {0, 0, 0}, {1, 1, 4});
  CHECK(
      allclose(slice(plain(x, x, x, seen), {0, 0, 0}, {1, 1, 4}), plain(first, first, first), 1e-6, 1e-6).item<bool>());
  check_gradient([&](const array& v) { return plain(v, v, v, seen); }, x, 1e-6);
  CHECK_THROWS_AS(nn::MultiHeadAttention(5, 2), std::invalid_argument);
  CHECK_THROWS_AS(nn::MultiHeadAttention(4, 2, {.value_dims = 3}), std::invalid_argument);
  CHECK_THROWS_AS(plain(reshape(x, {3, 4}), x, x), std::invalid_argument);
}

TEST_CASE("layers of encoders and decoders give PyTorch's values, norms first or last") {
  for (const bool first : {true, false}) {
    CAPTURE(first);
    nn::TransformerEncoderLayer encoder(4, 2, {.norm_first = first});
    CHECK(names(encoder) == std::vector<std::string>{"attention.query_proj.weight", "attention.key_proj.weight",
                                                     "attention.value_proj.weight", "attention.out_proj.weight",
                                                     "ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias",
                                                     "linear1.weight", "linear1.bias", "linear2.weight",
                                                     "linear2.bias"});
    set_waves(encoder);
    check_close(
        encoder(x, causal()),
        first ? std::vector<float>{2.16193843f, 2.14138222f, -0.0772750229f, -0.251643121f, 1.69553459f, 0.0372803397f,
                                   -1.94745195f, -1.35911226f, 1.28862762f, 1.61307895f, 0.0305578727f, 0.0748896897f}
              : std::vector<float>{0.572974741f, 1.020877f, 0.0437556915f, -0.074352257f, 0.731222689f, 0.682555318f,
                                   0.0817541853f, -0.0619300567f, 0.586500883f, 0.992894232f, 0.0820599422f,
                                   -0.090182066f},
        2e-5);
    nn::TransformerDecoderLayer decoder(4, 2, {.norm_first = first});
    set_waves(decoder);
    check_close(
        decoder(x, memory, causal()),
        first ? std::vector<float>{1.76262355f, 1.95440316f, -0.0382813476f, -0.106939845f, 1.91185617f, 0.575139284f,
                                   -2.33883262f, -2.12620068f, 1.10451722f, 1.3115778f, -0.0964437872f, 0.139898121f}
              : std::vector<float>{0.783279777f, 1.04817307f, 0.0502066314f, -0.027829878f, 1.10165572f, 0.733604789f,
                                   0.00292763836f, -0.0408506766f, 0.770959496f, 1.04937029f, 0.0668823123f,
                                   -0.0246126577f},
        2e-5);
  }
}

TEST_CASE("Transformer: an encoder and a decoder, with gradients, checkpoints and dropout") {
  nn::Transformer model(4, 2, 2, 1);
  set_waves(model);
  check_close(model(memory, x, std::nullopt, causal()),
              {-1.16638243f, 0.134812996f, -0.0617961735f, 0.194494665f, -1.2319448f, -0.520449758f, 0.0433394164f,
               0.0760982409f, -0.7712515f, 0.108245775f, -0.0202661324f, 0.296874434f},
              5e-5);
  nn::Transformer again(4, 2, 2, 1, {.checkpoint = true});
  set_waves(again);
  const auto loss = [&](nn::Transformer& m) {
    return nn::value_and_grad(m, [&](const std::vector<array>& in) {
      return sum(square(m(in[0], in[1], std::nullopt, causal())));
    })({memory, x});
  };
  const auto [value, gradients] = loss(model);
  const auto [same, recomputed] = loss(again);
  CHECK(value.item<float>() == same.item<float>());
  REQUIRE(gradients.size() == model.parameters().size());
  for (size_t k = 0; k < gradients.size(); ++k) CHECK(allclose(gradients[k], recomputed[k], 1e-5, 1e-5).item<bool>());
  check_gradient([&](const array& v) { return model(v, astype(x, float64), std::nullopt, causal()); }, memory, 1e-6);
  // GELU in the middle, a narrow product, dropout: different in training, the same in eval mode.
  nn::TransformerEncoder wide(1, 4, 1, {.mlp_dims = 6, .dropout = 0.5f, .activation = nn::gelu});
  CHECK(wide.layers[0].linear1.weight.value().shape() == Shape{6, 4});
  random::seed(3);
  CHECK_FALSE(array_equal(wide(x), wide(x)).item<bool>());
  wide.eval();
  CHECK(array_equal(wide(x), wide(x)).item<bool>());
  CHECK(wide(astype(x, bfloat16)).dtype() == bfloat16);
}

TEST_CASE("Transformer: an encoder and a decoder of one's own") {
  struct Twice : nn::Encoder {
    using Encoder::Encoder;
    array operator()(const array& v, const std::optional<array>&) const override { return v * array(2.0f); }
  };
  struct Shifted : nn::Decoder {
    Shifted(nn::Module& parent, std::string name) : Decoder(parent, std::move(name)) {}
    array operator()(const array& v, const array& seen, const std::optional<array>&,
                     const std::optional<array>&) const override {
      return shift(v) + mean(seen, 1, true);
    }
    nn::Linear shift{*this, "shift", 4, 4};
  };
  nn::Transformer model(
      4, 2, 1, 1,
      {.custom_encoder = [](nn::Module& parent,
                            std::string name) { return std::make_unique<Twice>(parent, std::move(name)); },
       .custom_decoder = [](nn::Module& parent,
                            std::string name) { return std::make_unique<Shifted>(parent, std::move(name)); }});
  CHECK(names(model) == std::vector<std::string>{"decoder.shift.weight", "decoder.shift.bias"});
  set_waves(model);
  const auto& decoder = dynamic_cast<const Shifted&>(*model.decoder);
  CHECK(allclose(model(memory, x), decoder.shift(x) + mean(memory, 1, true) * 2.0f, 1e-6, 1e-6).item<bool>());
  // One half alone: the other is the standard one.
  nn::Transformer half(4, 2, 1, 1, {.custom_encoder = [](nn::Module& parent, std::string name) {
                         return std::make_unique<Twice>(parent, std::move(name));
                       }});
  CHECK(dynamic_cast<const nn::TransformerDecoder*>(half.decoder.get()) != nullptr);
  CHECK(allclose(half(memory, x), (*half.decoder)(x, memory * 2.0f), 1e-6, 1e-6).item<bool>());
  // A part that stands elsewhere would be missing from the parameters.
  CHECK_THROWS_AS(
      nn::Transformer(4, 2, 1, 1,
                      {.custom_encoder = [](nn::Module&, const std::string&) { return std::make_unique<Twice>(); }}),
      std::invalid_argument);
}

TEST_CASE("RoPE rotates by the place, in both orders, and back in its derivative") {
  const array r = waves({1, 2, 3, 6}, 0.3);
  check_close(nn::RoPE(6)(r),
              {0.295520216f,  0.841470957f,  0.991664827f,  0.6754632f,    0.0415806621f,  -0.611857891f,
               -0.790314794f, -0.921962798f, -0.376007289f, -0.654236734f, 0.808529079f,   0.988550484f,
               0.616070211f,  0.105821848f,  -0.623521268f, 1.01104975f,   -0.869386017f,  -0.360919297f,
               0.327474445f,  0.859161794f,  0.986771941f,  0.650287867f,  0.00796318334f, -0.638106704f,
               -0.820582151f, -0.906526148f, -0.344599605f, -0.64256829f,  0.826472104f,   0.983166575f,
               0.632138371f,  0.0707876533f, -0.649548829f, 0.990308523f,  -0.855830133f,  -0.329436988f},
              2e-6);
  const nn::RoPE traditional(4, {.traditional = true, .base = 100, .scale = 0.5f});
  check_close(traditional(r, 3),
              {-0.818458796f, 0.354303241f,  0.879589558f,  0.816071033f, 0.0415806621f,  -0.611857891f,
               1.21011913f,   -0.521218777f, -0.428317726f, 0.231053442f, 0.850436628f,   0.989358246f,
               -0.545960963f, 0.376919955f,  -0.362951189f, -1.10508621f, -0.875452161f,  -0.35822928f,
               -0.83384496f,  0.38742882f,   0.878513753f,  0.790447176f, 0.00796318334f, -0.638106704f,
               1.19806027f,   -0.533924341f, -0.403859973f, 0.268431067f, 0.867644072f,   0.983906686f,
               -0.505369782f, 0.388570845f,  -0.386558652f, -1.11728537f, -0.858707011f,  -0.326635122f},
              2e-6);
  check_close(traditional(r, array(3)),
              {-0.818458796f, 0.354303241f,  0.879589558f,  0.816071033f, 0.0415806621f,  -0.611857891f,
               1.21011913f,   -0.521218777f, -0.428317726f, 0.231053442f, 0.850436628f,   0.989358246f,
               -0.545960963f, 0.376919955f,  -0.362951189f, -1.10508621f, -0.875452161f,  -0.35822928f,
               -0.83384496f,  0.38742882f,   0.878513753f,  0.790447176f, 0.00796318334f, -0.638106704f,
               1.19806027f,   -0.533924341f, -0.403859973f, 0.268431067f, 0.867644072f,   0.983906686f,
               -0.505369782f, 0.388570845f,  -0.386558652f, -1.11728537f, -0.858707011f,  -0.326635122f},
              2e-6);
  CHECK(traditional.describe() == "RoPE(4, traditional=true)");
  // Two examples, each from a position of its own.
  const array two = concatenate({r, r * 2.0f}, 0);
  const array each = traditional(two, array({3, 7}));
  CHECK(allclose(each, concatenate({traditional(r, 3), traditional(r * 2.0f, 7)}, 0), 1e-6, 1e-6).item<bool>());
  const array freqs({1.0f, 10.0f});
  CHECK(allclose(fast::rope(r, 4, true, std::nullopt, 0.5f, 3, freqs), traditional(r, 3), 1e-6, 1e-6).item<bool>());
  check_gradient([&](const array& v) { return traditional(v, 3); }, r);
  check_gradient([&](const array& v) { return nn::RoPE(6)(v, 5); }, r);
  // Products of rotated rows depend on the distance alone.
  const array q = waves({1, 1, 6}, 0.1), k = waves({1, 1, 6}, 0.9);
  const auto product = [&](int i, int j) { return sum(nn::RoPE(6)(q, i) * nn::RoPE(6)(k, j)).item<float>(); };
  CHECK(product(11, 4) == doctest::Approx(product(107, 100)).epsilon(1e-4));
  CHECK(nn::RoPE(6)(astype(r, bfloat16)).dtype() == bfloat16);
  CHECK(allclose(astype(nn::RoPE(6)(astype(r, bfloat16)), float32), nn::RoPE(6)(r), 0.02, 0.02).item<bool>());
  // One program for all lengths.
  const auto any = compile([](const std::vector<array>& in) { return std::vector<array>{nn::RoPE(4)(in[0], 2)}; },
                           {.dynamic = {{0, 1, "n", 9}}});
  for (const int n : {1, 5, 9})
    CHECK(allclose(any({waves({2, n, 4}, 0.2)})[0], nn::RoPE(4)(waves({2, n, 4}, 0.2), 2), 1e-6, 1e-6).item<bool>());
  CHECK_THROWS_AS(nn::RoPE(3)(r), std::invalid_argument);
  CHECK_THROWS_AS(nn::RoPE(8)(r), std::invalid_argument);
  CHECK_THROWS_AS(traditional(two, array({1, 2, 3})), std::invalid_argument);
  CHECK_THROWS_AS(fast::rope(r, 4, true, 100.0f, 1, 0, freqs), std::invalid_argument);
}

TEST_CASE("sinusoidal encodings and ALiBi") {
  const array positions({0.0f, 1.0f, 2.5f});
  check_close(nn::SinusoidalPositionalEncoding(8)(positions),
              {0,
               0,
               0,
               0,
               0.5f,
               0.5f,
               0.5f,
               0.5f,
               0.420735478f,
               0.0231996123f,
               0.00107721647f,
               4.99999987e-05f,
               0.270151138f,
               0.499461502f,
               0.499998838f,
               0.5f,
               0.299236059f,
               0.0578897409f,
               0.00269303028f,
               0.000125000006f,
               -0.400571793f,
               0.496637464f,
               0.499992758f,
               0.49999997f},
              2e-6);
  check_close(
      nn::SinusoidalPositionalEncoding(
          8, {.min_freq = 0.01f, .max_freq = 2, .scale = 1.0f, .cos_first = true, .full_turns = true})(positions),
      {1,
       1,
       1,
       1,
       0,
       0,
       0,
       0,
       1,
       -0.546369016f,
       0.933248997f,
       0.998026729f,
       0,
       0.83754456f,
       0.359230191f,
       0.0627905205f,
       1,
       0.612847328f,
       0.606927633f,
       0.987688363f,
       0,
       -0.790201306f,
       0.794757128f,
       0.156434461f},
      1e-5);
  CHECK(nn::SinusoidalPositionalEncoding(4)(arange(6)).shape() == Shape{6, 4});
  CHECK(nn::SinusoidalPositionalEncoding(2)(positions).shape() == Shape{3, 2});
  CHECK_THROWS_AS(nn::SinusoidalPositionalEncoding(5), std::invalid_argument);

  using Slopes = std::vector<double>;
  CHECK(nn::ALiBi::alibi_get_slopes(4) == Slopes{0.25, 0.0625, 0.015625, 0.00390625});
  CHECK(nn::ALiBi::alibi_get_slopes(3) == Slopes{0.0625, 0.00390625, 0.25});
  const array scores = waves({1, 2, 2, 4}, 0.3), penalised = nn::ALiBi()(scores, 1) - scores;
  // Queries have positions 1 and 2; slopes 1/16 and 1/256.
  check_close(penalised,
              {-0.0625f, 0, -0.0625f, -0.125f, -0.125f, -0.0625f, 0, -0.0625f, -0.00390625f, 0, -0.00390625f,
               -0.0078125f, -0.0078125f, -0.00390625f, 0, -0.00390625f},
              1e-6);
  CHECK(
      allclose(nn::ALiBi()(scores, 1, full({2, 4}, array(3.0f))) - scores, penalised + 3.0f, 1e-5, 1e-5).item<bool>());
  CHECK_THROWS_AS(nn::ALiBi()(x), std::invalid_argument);
}

TEST_CASE("activations are layers too") {
  const array v = waves({2, 4}, 0.3) * 3.0f;
  nn::Sequential all;
  all.add<nn::Sigmoid>(), all.add<nn::Mish>(), all.add<nn::ReLU>(), all.add<nn::ReLU2>(), all.add<nn::ReLU6>(),
      all.add<nn::Softmax>(), all.add<nn::Softplus>(), all.add<nn::Softsign>();
  all.add<nn::SiLU>(), all.add<nn::LogSoftmax>(), all.add<nn::LogSigmoid>(), all.add<nn::Tanh>(),
      all.add<nn::Hardswish>(), all.add<nn::SELU>(), all.add<nn::HardTanh>(), all.add<nn::Softmin>();
  all.add<nn::LeakyReLU>(0.2f), all.add<nn::ELU>(1.5f), all.add<nn::CELU>(), all.add<nn::Softshrink>(),
      all.add<nn::HardShrink>(), all.add<nn::Step>(1.0f), all.add<nn::GLU>(), all.add<nn::GELU>();
  all.add<nn::GELU>("tanh"), all.add<nn::GELU>("fast");
  const std::vector<array> expected{nn::sigmoid(v),
                                    nn::mish(v),
                                    nn::relu(v),
                                    nn::relu2(v),
                                    nn::relu6(v),
                                    nn::softmax(v),
                                    nn::softplus(v),
                                    nn::softsign(v),
                                    nn::silu(v),
                                    nn::log_softmax(v),
                                    nn::log_sigmoid(v),
                                    nn::tanh(v),
                                    nn::hardswish(v),
                                    nn::selu(v),
                                    nn::hard_tanh(v),
                                    nn::softmin(v),
                                    nn::leaky_relu(v, 0.2f),
                                    nn::elu(v, 1.5f),
                                    nn::celu(v),
                                    nn::softshrink(v),
                                    nn::hard_shrink(v),
                                    nn::step(v, 1),
                                    nn::glu(v),
                                    nn::gelu(v),
                                    nn::gelu_approx(v),
                                    nn::gelu_fast_approx(v)};
  REQUIRE(all.size() == expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(all[k].describe());
    CHECK(array_equal(all[k](v), expected[k]).item<bool>());
  }
  CHECK(all[2].describe() == "ReLU");
  CHECK(all[16].describe() == "LeakyReLU(0.2)");
  CHECK(nn::ELU().describe() == "ELU(1)");
  CHECK_THROWS_AS(nn::GELU("slow"), std::invalid_argument);
  // PReLU learns.
  nn::PReLU prelu(3);
  check_close(prelu(waves({2, 3}, 0.3) - 0.5f),
              {-0.0511199459f, 0.341470957f, 0.491664827f, 0.1754632f, -0.114604831f, -0.277964473f}, 1e-6);
  const auto [value, gradients] = nn::value_and_grad(prelu, [&](const std::vector<array>& in) {
    return sum(prelu(in[0]));
  })({array({-1, 2, -3, -4, 5, 6}, {2, 3}, float32)});
  check_close(gradients[0], {-5, 0, -3}, 1e-6);
  check_close(nn::PReLU()(array({-4.0f, 4.0f})), {-1, 4}, 1e-6);
  CHECK_THROWS_AS(prelu(v), std::invalid_argument);
}
