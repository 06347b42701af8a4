// Optimizers and schedules: the second half of tests/mlx/generate/networks.py.
#include <doctest/doctest.h>

#include <memory>

#include "mlx/assertions.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::test {
namespace {

// Four steps of a matrix and a vector; inputs are both, then the matrix's gradients and the vector's.
template <class Make>
Assertion rule(const std::string& name, Make make) {
  return {"optimizer " + name,
          [make](const Arrays& in) {
            array w = in[0], b = in[1];
            auto optimizer = make(optim::Parameters{{"b", &b}, {"w", &w}});
            for (size_t k = 0; k < 4; ++k) optimizer->update({in[6 + k], in[2 + k]});
            return Arrays{w, b};
          },
          {64, 1, false},
          false};
}

template <class T, class Options>
auto maker(Options options) {
  return [options](optim::Parameters p) { return std::make_unique<T>(std::move(p), options); };
}

Assertion schedule(const std::string& name, const optim::Schedule& rate) {
  return {"schedule " + name,
          [rate](const Arrays&) {
            std::vector<float> rates;
            for (int64_t k = 0; k < 12; ++k) rates.push_back(rate(k));
            return Arrays{array(rates.begin(), {12})};
          },
          {16, 0.1, false},
          false};
}

}  // namespace

TEST_CASE("optimizers and schedules as in MLX") {
  using namespace optim;
  check_assertions(
      "optimizers",
      {
          rule("SGD", maker<SGD>(SgdOptions{.learning_rate = 0.1f})),
          rule("SGD with momentum",
               maker<SGD>(SgdOptions{.learning_rate = 0.1f, .momentum = 0.9, .weight_decay = 0.01, .dampening = 0.1})),
          rule("SGD with nesterov", maker<SGD>(SgdOptions{.learning_rate = 0.1f, .momentum = 0.9, .nesterov = true})),
          rule("Adam", maker<Adam>(AdamOptions{.learning_rate = 0.01f})),
          rule("Adam with correction",
               maker<Adam>(AdamOptions{.learning_rate = 0.01f, .beta1 = 0.8, .beta2 = 0.99, .bias_correction = true})),
          rule("AdamW", maker<AdamW>(AdamWOptions{.learning_rate = 0.01f, .weight_decay = 0.1})),
          rule("Adamax", maker<Adamax>(AdamaxOptions{.learning_rate = 0.01f})),
          rule("RMSprop", maker<RMSprop>(RmspropOptions{.learning_rate = 0.01f})),
          rule("Adagrad", maker<Adagrad>(AdagradOptions{.learning_rate = 0.1f})),
          rule("AdaDelta", maker<AdaDelta>(AdadeltaOptions{.learning_rate = 0.5f})),
          rule("Adafactor", maker<Adafactor>(AdafactorOptions{})),
          rule("Adafactor with momentum",
               maker<Adafactor>(AdafactorOptions{
                   .learning_rate = 0.01f, .beta1 = 0.9, .weight_decay = 0.01, .relative_step = false})),
          rule("Lion", maker<Lion>(LionOptions{.learning_rate = 0.01f, .weight_decay = 0.1})),
          rule("Muon", maker<Muon>(MuonOptions{.learning_rate = 0.02f})),
          {"clip_grad_norm",
           [](const Arrays& in) {
             auto [clipped, norm] = clip_grad_norm(in, 0.5f);
             return Arrays{clipped[0], clipped[1], norm};
           }},
          schedule("exponential_decay", exponential_decay(0.1f, 0.9f)),
          schedule("step_decay", step_decay(0.1f, 0.5f, 4)),
          schedule("cosine_decay", cosine_decay(0.1f, 8, 0.01f)),
          schedule("linear_schedule", linear_schedule(0.0f, 0.1f, 6)),
          schedule("join_schedules", join_schedules({linear_schedule(0.0f, 0.1f, 4), cosine_decay(0.1f, 6)}, {4})),
      });
}

}  // namespace weft::test
