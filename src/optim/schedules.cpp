// Learning rates by step, computed on the host: the rate is an input of the step, so any function will do.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "weft/optim.h"

namespace weft::optim {

Schedule constant_schedule(float rate) {
  return [rate](int64_t) { return rate; };
}

Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps) {
  if (warmup < 0 || decay_steps < warmup)
    throw_invalid("cosine_schedule", "the warm-up must lie within the decay; got " + std::to_string(warmup) + " of " + std::to_string(decay_steps) + " steps");
  return [=](int64_t step) {
    if (step < warmup) return static_cast<float>(static_cast<double>(rate) * static_cast<double>(step + 1) / static_cast<double>(warmup + 1));
    if (step >= decay_steps) return min_rate;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(decay_steps - warmup);
    const double share = 0.5 * (1 + std::cos(std::numbers::pi * done));
    return static_cast<float>(min_rate + share * (static_cast<double>(rate) - min_rate));
  };
}

}  // namespace weft::optim
