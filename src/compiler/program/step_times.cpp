#include "compiler/program/step_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/trace.h"

namespace weft::compiler {

std::string label(const StepInfo& step) {
  const std::string text = std::string_view(step.kind) == "kernel" && !step.what.empty() ? step.what : step.name;
  return step.segments > 1 ? fmt::format("{} (of {} groups)", text, step.segments) : text;
}

int64_t StepTimes::given() {
  std::lock_guard lock(mutex_);
  pending_ = true;
  return ++runs_;
}

void StepTimes::settle(int64_t run) {
  std::lock_guard lock(mutex_);
  if (!pending_ || run != runs_) return;
  pending_ = false;
  const std::vector<double> times = timestamps_->times();
  const std::string track = device_.name();
  for (size_t k = 0; k < steps_.size(); ++k) {
    const StepInfo& s = steps_[k];
    runtime::record_on(track, {.name = runtime::record_name(label(s)),
                               .kind = s.kind,
                               .start = runtime::record_time(times[k]),
                               .length = std::max(0.0, times[k + 1] - times[k]),
                               .bytes = s.bytes,
                               .flops = s.flops,
                               .arithmetic = s.arithmetic,
                               .program = program_,
                               .step = static_cast<int>(k)});
  }
}

StepTimesRing::Slot StepTimesRing::next(runtime::Accelerator& device, const std::vector<StepInfo>& steps,
                                        int64_t program) {
  std::lock_guard lock(mutex_);
  if (ring_.size() < many) ring_.push_back(std::make_shared<StepTimes>(device, steps, program));
  const size_t at = next_++ % many;
  ring_[at]->settle();
  return {ring_[at], static_cast<int64_t>(at)};
}

}  // namespace weft::compiler
