#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "weft/api.h"

/// Learning rates by step. They are functions on the host, and any function will do: the rate is an input of a compiled
/// step (Optimizer::set_learning_rate).
namespace weft::optim {

/// The learning rate of a step, counted from 0.
using Schedule = std::function<float(int64_t step)>;

/// Returns `rate` for every step.
WEFT_API Schedule constant_schedule(float rate);
/// Returns nanoGPT's schedule: rate · (step + 1) / (warmup + 1) while step < warmup, then half a cosine from `rate` to
/// `min_rate` at `decay_steps`, then min_rate.
WEFT_API Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps);
/// Returns init · decay_rateˢᵗᵉᵖ.
WEFT_API Schedule exponential_decay(float init, float decay_rate);
/// Returns init · decay_rate^⌊step / step_size⌋.
WEFT_API Schedule step_decay(float init, float decay_rate, int64_t step_size);
/// Returns half a cosine from `init` to `end` at `decay_steps`, then `end`.
WEFT_API Schedule cosine_decay(float init, int64_t decay_steps, float end = 0);
/// Returns a line from `init` to `end` at `steps`, then `end`.
WEFT_API Schedule linear_schedule(float init, float end, int64_t steps);
/// Returns schedules[0] until boundaries[0], then schedules[1] until boundaries[1], …; each counts from its own start.
WEFT_API Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries);

}  // namespace weft::optim
