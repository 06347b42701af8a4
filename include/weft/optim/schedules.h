#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Learning rates by step: any function on the host, for Optimizer::set_learning_rate between steps, or one of arrays.
/// An optimizer takes one in place of a learning rate and computes it in each step.
namespace weft::optim {

/// The learning rate of a step, counted from 0. It is made of a function float(int64_t step), of one of arrays,
/// array(const array& step), or of both forms of one function. A step that is compiled can compute that of arrays
/// alone.
class WEFT_API Schedule {
 public:
  /// The form on the host.
  using Host = std::function<float(int64_t step)>;
  /// The form of arrays: `step` is an integer [], and so shall be the shape of the result.
  using Arrays = std::function<array(const array& step)>;

  /// Makes a rate of 0.
  Schedule() : Schedule(Host([](int64_t) { return 0.0f; }), {}) {}
  /// Makes both forms of one function; either may be missing.
  Schedule(Host host, Arrays arrays) : host_(std::move(host)), arrays_(std::move(arrays)) {}
  /// Makes a schedule of a function.
  template <class F>
  requires std::is_invocable_r_v<float, F, int64_t> Schedule(F host) : Schedule(Host(std::move(host)), {}) {}
  template <class F>
  requires(!std::is_invocable_r_v<float, F, int64_t> && std::is_invocable_r_v<array, F, const array&>)
      Schedule(F arrays)
      : Schedule({}, Arrays(std::move(arrays))) {}

  /// Returns the rate of a step, which is evaluated where there is a form of arrays alone.
  float operator()(int64_t step) const;
  /// Returns the rate of a step, []. Where there is a form on the host alone, `step` is evaluated.
  array operator()(const array& step) const;
  /// Returns whether there is a form of arrays.
  bool of_arrays() const { return arrays_ != nullptr; }

 private:
  Host host_;
  Arrays arrays_;
};

/// A number, or a schedule.
class WEFT_API LearningRate {
 public:
  LearningRate(float value) : value_(value) {}
  template <class F>
  requires std::constructible_from<Schedule, F> LearningRate(F schedule)
      : schedule_(std::move(schedule)), value_((*schedule_)(int64_t{0})) {}

  /// Returns the number, or the schedule's first.
  float value() const { return value_; }
  /// Returns the schedule, if it is one.
  const std::optional<Schedule>& schedule() const { return schedule_; }

 private:
  std::optional<Schedule> schedule_;
  float value_;
};

/// Returns `rate` for every step. This schedule and those below have both forms.
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
/// It has a form of arrays where all of them have one.
WEFT_API Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries);

}  // namespace weft::optim
