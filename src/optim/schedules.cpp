// Learning rates by step, computed on the host: the rate is an input of the step, so any function will do.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "base/error.h"
#include "weft/optim/schedules.h"

namespace weft::optim {

Schedule constant_schedule(float rate) {
  return [rate](int64_t) { return rate; };
}

Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps) {
  if (warmup < 0 || decay_steps < warmup)
    throw_invalid("cosine_schedule", "the warm-up must lie within the decay; got " + std::to_string(warmup) + " of " +
                                         std::to_string(decay_steps) + " steps");
  return [=](int64_t step) {
    if (step < warmup)
      return static_cast<float>(static_cast<double>(rate) * static_cast<double>(step + 1) /
                                static_cast<double>(warmup + 1));
    if (step >= decay_steps) return min_rate;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(decay_steps - warmup);
    const double share = 0.5 * (1 + std::cos(std::numbers::pi * done));
    return static_cast<float>(min_rate + share * (static_cast<double>(rate) - min_rate));
  };
}

Schedule exponential_decay(float init, float decay_rate) {
  return [=](int64_t step) {
    return static_cast<float>(init * std::pow(static_cast<double>(decay_rate), static_cast<double>(step)));
  };
}

Schedule step_decay(float init, float decay_rate, int64_t step_size) {
  if (step_size < 1) throw_invalid("step_decay", "step_size must be at least 1; it is " + std::to_string(step_size));
  return [=](int64_t step) {
    const int64_t falls = step / step_size;
    return static_cast<float>(init * std::pow(static_cast<double>(decay_rate), static_cast<double>(falls)));
  };
}

Schedule cosine_decay(float init, int64_t decay_steps, float end) {
  if (decay_steps < 1)
    throw_invalid("cosine_decay", "decay_steps must be at least 1; got " + std::to_string(decay_steps));
  return cosine_schedule(init, end, 0, decay_steps);
}

Schedule linear_schedule(float init, float end, int64_t steps) {
  if (steps < 1) throw_invalid("linear_schedule", "steps must be at least 1; got " + std::to_string(steps));
  return [=](int64_t step) {
    const double done = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
    return static_cast<float>(init + done * (static_cast<double>(end) - init));
  };
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries) {
  if (schedules.empty() || boundaries.size() + 1 != schedules.size())
    throw_invalid("join_schedules", std::to_string(schedules.size()) + " schedules need one boundary less; got " +
                                        std::to_string(boundaries.size()));
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    throw_invalid("join_schedules", "the boundaries must ascend");
  return [schedules = std::move(schedules), boundaries = std::move(boundaries)](int64_t step) {
    const size_t k =
        static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin());
    return schedules[k](k == 0 ? step : step - boundaries[k - 1]);
  };
}

}  // namespace weft::optim
