// Learning rates by step. Each formula is written once, for numbers on the host and for arrays.
#include "weft/optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

double raised(double base, double exponent) { return std::pow(base, exponent); }
array raised(double base, const array& exponent) { return power(array(base), exponent); }
double cosine(double x) { return std::cos(x); }
array cosine(const array& x) { return cos(x); }
double whole(double x) { return std::floor(x); }
array whole(const array& x) { return floor(x); }
double at_most(double x, double most) { return std::min(x, most); }
array at_most(const array& x, double most) { return minimum(x, array(most)); }
double chosen(bool condition, double yes, double no) { return condition ? yes : no; }
array chosen(const array& condition, const array& yes, const array& no) { return where(condition, yes, no); }

/// Returns both forms of a formula of the step: in double precision on the host, in float32 of arrays.
template <class F>
Schedule both(F formula) {
  return Schedule([formula](int64_t step) { return static_cast<float>(formula(static_cast<double>(step))); },
                  [formula](const array& step) -> array { return formula(astype(step, float32)); });
}

}  // namespace

float Schedule::operator()(int64_t step) const { return host_ ? host_(step) : arrays_(array(step)).item<float>(); }

array Schedule::operator()(const array& step) const {
  if (!arrays_) return array(host_(step.item<int64_t>()));
  const array rate = arrays_(step);
  if (rate.ndim() != 0) throw_invalid("Schedule", "a rate must be a scalar; its shape is " + to_string(rate.shape()));
  return rate;
}

Schedule constant_schedule(float rate) {
  return Schedule([rate](int64_t) { return rate; }, [rate](const array&) { return array(rate); });
}

Schedule cosine_schedule(float rate, float min_rate, int64_t warmup, int64_t decay_steps) {
  if (warmup < 0 || decay_steps < warmup)
    throw_invalid("cosine_schedule", "the warm-up must lie within the decay; got " + std::to_string(warmup) + " of " +
                                         std::to_string(decay_steps) + " steps");
  const double top = static_cast<double>(rate), bottom = static_cast<double>(min_rate);
  const double begin = static_cast<double>(warmup), end = static_cast<double>(decay_steps);
  const double length = std::max(end - begin, 1.0);
  return both([=](const auto& step) {
    const auto share = (cosine((step - begin) * (std::numbers::pi / length)) + 1.0) * 0.5;
    const auto falling = chosen(step < end, share * (top - bottom) + bottom, bottom);
    return chosen(step < begin, (step + 1.0) * top / (begin + 1.0), falling);
  });
}

Schedule exponential_decay(float init, float decay_rate) {
  const double first = static_cast<double>(init), factor = static_cast<double>(decay_rate);
  return both([=](const auto& step) { return raised(factor, step) * first; });
}

Schedule step_decay(float init, float decay_rate, int64_t step_size) {
  if (step_size < 1) throw_invalid("step_decay", "step_size must be at least 1; it is " + std::to_string(step_size));
  const double first = static_cast<double>(init), factor = static_cast<double>(decay_rate);
  return both([=, size = static_cast<double>(step_size)](const auto& step) {
    return raised(factor, whole(step / size)) * first;
  });
}

Schedule cosine_decay(float init, int64_t decay_steps, float end) {
  if (decay_steps < 1)
    throw_invalid("cosine_decay", "decay_steps must be at least 1; got " + std::to_string(decay_steps));
  return cosine_schedule(init, end, 0, decay_steps);
}

Schedule linear_schedule(float init, float end, int64_t steps) {
  if (steps < 1) throw_invalid("linear_schedule", "steps must be at least 1; got " + std::to_string(steps));
  const double first = static_cast<double>(init), change = static_cast<double>(end) - first;
  return both([=, last = static_cast<double>(steps)](const auto& step) {
    return at_most(step, last) * (1 / last) * change + first;
  });
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<int64_t> boundaries) {
  if (schedules.empty() || boundaries.size() + 1 != schedules.size())
    throw_invalid("join_schedules", std::to_string(schedules.size()) + " schedules need one boundary less; got " +
                                        std::to_string(boundaries.size()));
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    throw_invalid("join_schedules", "the boundaries must ascend");
  const Schedule::Host host = [=](int64_t step) {
    const size_t k =
        static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin());
    return schedules[k](k == 0 ? step : step - boundaries[k - 1]);
  };
  const Schedule::Arrays arrays = [=](const array& step) {
    array rate = schedules[0](step);
    for (size_t k = 0; k < boundaries.size(); ++k) {
      const array begin = array(boundaries[k], step.dtype());
      rate = where(step < begin, rate, schedules[k + 1](step - begin));
    }
    return rate;
  };
  const bool all = std::all_of(schedules.begin(), schedules.end(), [](const Schedule& s) { return s.of_arrays(); });
  return Schedule(host, all ? arrays : Schedule::Arrays());
}

}  // namespace weft::optim
