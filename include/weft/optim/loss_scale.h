#pragma once
#include <optional>
#include <unordered_map>

#include "weft/optim/optimizer.h"

namespace weft::optim {

/// Options of LossScale.
struct LossScaleOptions {
  float initial = 65536;     ///< the scale to begin with
  float growth = 2;          ///< factor of the scale after `interval` steps in a row whose gradients were finite
  float backoff = 0.5f;      ///< factor after a step whose gradients were not
  int interval = 2000;       ///< steps without an overflow before the scale grows
  float largest = 16777216;  ///< the scale does not grow beyond it
};

/// Scales a loss so that small gradients do not vanish in float16, as far as they stay finite (Micikevicius et al.
/// 2018, §3.2). A step whose gradients overflow changes nothing but the scale. All of it is arithmetic on arrays: under
/// `compile` nothing is read on the host.
///
///     optim::LossScale scale;  // list scale.state() with the model's and the optimizer's
///     const auto loss_and_grads =
///         nn::value_and_grad(model, [&](const std::vector<array>& in) { return scale(model.loss(in[0], in[1])); });
///     auto [scaled, gradients] = loss_and_grads(batch);
///     array loss = scale.unscaled(scaled);         // before the scale changes
///     scale.step(optimizer, gradients, 1.0f);      // clipped to a norm of 1
class WEFT_API LossScale {
 public:
  explicit LossScale(LossScaleOptions options = {});

  /// Returns loss · scale, in float32 at least.
  array operator()(const array& loss) const;
  /// Returns loss / scale.
  array unscaled(const array& loss) const;
  /// Divides the gradients by the scale, clips them to `max_norm` where there is one, and lets the optimizer make its
  /// step unless one of them is not finite; then updates the scale. Returns whether the step was made: bool [].
  array step(Optimizer& optimizer, const std::vector<array>& scaled_gradients,
             std::optional<float> max_norm = std::nullopt);

  array scale;    ///< float32 []
  array good;     ///< int32 []: steps since the scale changed
  array skipped;  ///< int32 []: steps that were not made

  /// Returns the handles of all state, for CompileOptions::state.
  std::vector<array*> state() { return {&scale, &good, &skipped}; }
  /// Returns "loss_scale.scale", "loss_scale.good" and "loss_scale.skipped", for checkpoints.
  Parameters named_state();
  /// Sets the state from a checkpoint. Throws std::invalid_argument where one of them is missing or of another shape.
  void load_state(const std::unordered_map<std::string, array>& arrays);

 private:
  LossScaleOptions options_;
};

}  // namespace weft::optim
