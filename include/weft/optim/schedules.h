#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "weft/api.h"

/// Learning rates by step. They are functions on the host: the rate is an input of a compiled step
/// (Optimizer::set_learning_rate), so any function will do.
namespace weft::optim {

/// The learning rate of a step, counted from 0.
using Schedule = std::function<float(int64_t step)>;

WEFT_API Schedule constant_schedule(float rate);
/// nanoGPT's: rate · (step + 1) / (warmup + 1) while step < warmup, then half a cosine from `rate` to `min_rate` at
/// `decay_steps`, then min_rate.
WEFT_API Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps);
/// init · decay_rateˢᵗᵉᵖ.
WEFT_API Schedule exponential_decay(float init, float decay_rate);
/// init · decay_rate^⌊step / step_size⌋.
WEFT_API Schedule step_decay(float init, float decay_rate, int64_t step_size);
/// Half a cosine from `init` to `end` at `decay_steps`, then `end`.
WEFT_API Schedule cosine_decay(float init, int64_t decay_steps, float end = 0);
/// A line from `init` to `end` at `steps`, then `end`.
WEFT_API Schedule linear_schedule(float init, float end, int64_t steps);
/// schedules[0] until boundaries[0], then schedules[1] until boundaries[1], …; each counts from where it starts.
WEFT_API Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries);

}  // namespace weft::optim
