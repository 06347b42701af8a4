#pragma once
#include <optional>
#include <unordered_map>

#include "weft/optim/optimizer.h"

namespace weft::optim {

struct LossScaleOptions {
  float initial = 65536;
  float growth = 2;      ///< the scale's factor after `interval` steps in a row whose gradients were finite
  float backoff = 0.5f;  ///< its factor after a step whose gradients were not
  int interval = 2000;
  float largest = 16777216;
};

/// A loss times a number that keeps small gradients from vanishing in float16, as large as they stay finite
/// (Micikevicius et al. 2018, §3.2). A step whose gradients overflow changes nothing but the scale. All of it is
/// arithmetic on arrays: under `compile` nothing is read on the host.
///
///     optim::LossScale scale; // list scale.state() beside the model's and the optimizer's
///     const auto slopes = nn::value_and_grad(model, [&](const std::vector<array>& in) { return scale(model.loss(in[0],
///       in[1])); });
///     auto [scaled, gradients] = slopes(batch);
///     array loss = scale.unscaled(scaled);                       // before the scale moves
///     scale.step(optimizer, gradients, 1.0f);                    // clipped to a norm of 1
class WEFT_API LossScale {
 public:
  explicit LossScale(LossScaleOptions options = {});

  /// loss · scale, in float32 at least.
  array operator()(const array& loss) const;
  array unscaled(const array& loss) const;
  /// Divides the gradients by the scale, clips them to `max_norm` where there is one, and lets the optimizer make its
  /// step unless one of them is not finite; then moves the scale. Gives whether the step was made: bool ().
  array step(Optimizer& optimizer, const std::vector<array>& scaled_gradients,
             std::optional<float> max_norm = std::nullopt);

  array scale;    ///< float32 ()
  array good;     ///< int32 (): steps since the scale changed
  array skipped;  ///< int32 (): steps that were not made

  std::vector<array*> state() { return {&scale, &good, &skipped}; }
  /// "loss_scale.scale", "loss_scale.good", "loss_scale.skipped".
  Parameters named_state();
  /// Throws std::invalid_argument where one of them is missing or of another shape.
  void load_state(const std::unordered_map<std::string, array>& arrays);

 private:
  LossScaleOptions options_;
};

}  // namespace weft::optim
