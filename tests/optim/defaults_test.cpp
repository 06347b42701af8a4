// Optimizers that are told nothing but a learning rate: five steps of mlx.optimizers 0.32.4 at rates 0.01 … 0.05 with
// slopes(), the expression above each. Decay takes every parameter, Adam and AdamW correct no bias.
#include "optim/support.h"

using namespace weft;
using namespace weft::optim;
using namespace weft::optim::test;

namespace {

template <class O, class... Options>
std::vector<float> after(Options... options) {
  Pair p;
  O optimizer(p.parameters(), std::move(options)...);
  run(optimizer, 0, 5);
  return p.values();
}

}  // namespace

TEST_CASE("optimizers have MLX's defaults") {
  // SGD(0.01)
  check_close(after<SGD>(),
              {0.536947131f, 0.308696836f, -0.186057806f, -0.499865055f, -0.356285125f, 0.101630315f, 0.133399382f,
               0.21107462f, 0.283541292f},
              1e-6);
  // SGD(0.01, weight_decay=0.3)
  check_close(after<SGD>(SgdOptions{.weight_decay = 0.3}),
              {0.515514374f, 0.296935469f, -0.17724897f, -0.478762835f, -0.342648745f, 0.0948942825f, 0.12890844f,
               0.201621115f, 0.269409865f},
              1e-6);
  // SGD(0.01, momentum=0.9, weight_decay=0.3, nesterov=True)
  check_close(after<SGD>(SgdOptions{.momentum = 0.9, .weight_decay = 0.3, .nesterov = true}),
              {0.402870148f, 0.21734865f, -0.171501517f, -0.401818722f, -0.257897943f, 0.129631907f, 0.0795022473f,
               0.172739968f, 0.263126522f},
              1e-6);
  // Adam(0.01)
  check_close(after<Adam>(),
              {0.300784916f, 0.0800813138f, -0.302143812f, -0.472638249f, -0.184140563f, 0.36477536f, -0.0510850847f,
               0.152265564f, 0.379291326f},
              2e-6);
  // Adam(0.01, bias_correction=True)
  check_close(after<Adam>(AdamOptions{.bias_correction = true}),
              {0.457504064f, 0.224499419f, -0.234205306f, -0.496095568f, -0.300665617f, 0.193665385f, 0.0621196963f,
               0.183679625f, 0.311572731f},
              2e-6);
  // AdamW(0.01)
  check_close(after<AdamW>(),
              {0.300246507f, 0.0799146742f, -0.301685333f, -0.471876472f, -0.183776841f, 0.364300787f, -0.0510315895f,
               0.152063042f, 0.378795266f},
              2e-6);
  // AdamW(0.1): the decay stays 0.01 (run sets the rate)
  check_close(after<AdamW>(AdamWOptions{.learning_rate = 0.1f}),
              {0.300246507f, 0.0799146742f, -0.301685333f, -0.471876472f, -0.183776841f, 0.364300787f, -0.0510315895f,
               0.152063042f, 0.378795266f},
              2e-6);
  // AdamW(0.01, weight_decay=0.3, bias_correction=True)
  check_close(after<AdamW>(AdamWOptions{.weight_decay = 0.3, .bias_correction = true}),
              {0.436714053f, 0.214225724f, -0.223872051f, -0.473871052f, -0.286843777f, 0.185583472f, 0.0591681376f,
               0.175652876f, 0.298194945f},
              2e-6);
  // Adamax(0.01)
  check_close(after<Adamax>(),
              {0.493365735f, 0.26325056f, -0.210745171f, -0.493428826f, -0.320315987f, 0.149040282f, 0.0940090865f,
               0.199263319f, 0.303458214f},
              2e-6);
  // Adamax(0.01, eps=0.01): eps is added to the largest gradient
  check_close(after<Adamax>(AdamaxOptions{.eps = 0.01}),
              {0.493433923f, 0.263331205f, -0.210718349f, -0.493440926f, -0.320381463f, 0.14895083f, 0.0940826237f,
               0.199270606f, 0.303427637f},
              1e-6);
  // RMSprop(0.01)
  check_close(after<RMSprop>(),
              {0.656888127f, 0.437606573f, -0.0978140905f, -0.497766495f, -0.488753259f, 0.00714506209f, 0.258698344f,
               0.263024807f, 0.239748299f},
              2e-6);
  // Adagrad(0.01)
  check_close(after<Adagrad>(),
              {0.515388429f, 0.286592692f, -0.197168365f, -0.495202631f, -0.34275943f, 0.128676832f, 0.115621053f,
               0.206275821f, 0.294122189f},
              1e-6);
  // AdaDelta(0.01)
  check_close(after<AdaDelta>(),
              {0.50014925f, 0.270318955f, -0.207997248f, -0.495007962f, -0.326990813f, 0.141652584f, 0.100140087f,
               0.200031593f, 0.299939424f},
              1e-6);
  // Lion(0.01)
  check_close(after<Lion>(),
              {0.539999962f, 0.360151142f, -0.218073413f, -0.464996248f, -0.376821786f, 0.111831114f, 0.190000013f,
               0.190000013f, 0.330000013f},
              1e-6);
  // Lion(0.01, weight_decay=0.3)
  check_close(after<Lion>(LionOptions{.weight_decay = 0.3}),
              {0.518795609f, 0.34792003f, -0.209147394f, -0.444799632f, -0.362865359f, 0.104226515f, 0.185296521f,
               0.180872411f, 0.315025181f},
              1e-6);
  // Muon(0.01)
  check_close(after<Muon>(),
              {0.500725269f, 0.276620805f, -0.198495597f, -0.489756435f, -0.327251464f, 0.135563329f, 0.0985424519f,
               0.199633852f, 0.300867677f},
              3e-6);
  // Adafactor(weight_decay=0.3)
  check_close(after<Adafactor>(AdafactorOptions{.weight_decay = 0.3}),
              {0.498023421f, 0.268234432f, -0.206936225f, -0.494240731f, -0.326646417f, 0.140732959f, 0.099809207f,
               0.199170098f, 0.298380524f},
              1e-6);
  // Adafactor(learning_rate=0.3): relative_step wins
  check_close(after<Adafactor>(AdafactorOptions{.learning_rate = 0.3f}),
              {0.50064081f, 0.269645125f, -0.20802398f, -0.496836782f, -0.328361958f, 0.141472921f, 0.100132272f,
               0.199815154f, 0.299347132f},
              1e-6);
  // Adafactor(learning_rate=0.3, relative_step=False)
  check_close(after<Adafactor>(AdafactorOptions{.learning_rate = 0.3f, .relative_step = false}),
              {0.517885208f, 0.288428277f, -0.197328418f, -0.49733749f, -0.341307074f, 0.122308142f, 0.110283025f,
               0.202315912f, 0.294203758f},
              1e-6);
}

TEST_CASE("Muon scales by the last two axes, whatever it orthogonalised") {
  array w = made(filled(24, [](int i) { return 0.5 * std::cos(i); }), {2, 4, 3}),
        b = made(filled(3, [](int i) { return 0.1 * (i + 1); }), {3});
  Muon optimizer({{"w", &w}, {"b", &b}});
  for (int s = 0; s < 5; ++s) {
    optimizer.set_learning_rate(static_cast<float>(0.01 * (s + 1)));
    optimizer.update({made(slope(s, 24, 0), {2, 4, 3}), made(slope(s, 3, 1), {3})});
  }
  // Muon(0.01) of a parameter of shape (2, 4, 3)
  check_close(w.to_vector<float>(),
              {0.496760994f, 0.269169599f, -0.205913872f,  -0.490904391f, -0.323352814f, 0.142557308f,
               0.477829933f, 0.37337485f,  -0.0754204243f, -0.456084341f, -0.418216169f, 0.00415986963f,
               0.422235161f, 0.449713886f, 0.0624443144f,  -0.384897292f, -0.481153309f, -0.136641622f,
               0.333833754f, 0.499500245f, 0.208829895f,   -0.271515876f, -0.501580894f, -0.271821886f},
              5e-6);
}
