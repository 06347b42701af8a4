#include "target/cuda/driver/launch_timer.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

#include "runtime/trace.h"

namespace weft::target::cuda {
namespace {

constexpr float never = std::numeric_limits<float>::infinity();
// A candidate runs five times, or for 3 ms: the times of long ones vary little.
constexpr int most_repeats = 5;
constexpr float enough = 3;
constexpr float hopeless = 1.3f;  // times the best so far: not measured further

}  // namespace

EventTimer::~EventTimer() {
  if (!start_ || driver().ctx_set_current(context_.handle()) != success) return;
  for (EventHandle event : {start_, stop_})
    if (event) driver().event_destroy(event);
}

/// Writes as many bytes as the L2 holds, where there is memory for them.
void EventTimer::fill_cache() {
  const auto bytes = static_cast<size_t>(context_.info().l2_bytes);
  try {
    if (!other_data_) other_data_ = shared_workspace(context_, bytes);
  } catch (const std::exception&) {
    return;
  }
  check_result(driver().memset_d8_async(other_data_->address(), 0, bytes, context_.stream()), "cuMemsetD8Async", what_);
}

float EventTimer::milliseconds(const std::function<bool()>& launch) {
  context_.make_current();
  for (EventHandle* event : {&start_, &stop_})
    if (!*event) check_result(driver().event_create(event, event_default), "cuEventCreate", what_);
  float time = never;
  fill_cache();
  check_result(driver().event_record(start_, context_.stream()), "cuEventRecord", what_);
  const bool launched = launch();
  check_result(driver().event_record(stop_, context_.stream()), "cuEventRecord", what_);
  check_result(driver().event_synchronize(stop_), "cuEventSynchronize", what_);
  if (launched) check_result(driver().event_elapsed_time(&time, start_, stop_), "cuEventElapsedTime", what_);
  return time;
}

size_t fastest(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch) {
  const runtime::Span span("compiler", "search of algorithms");
  struct Times {
    float least = never, all = 0;
  };
  std::vector<Times> times(count);
  const auto best = [&] {
    return std::min_element(times.begin(), times.end(),
                            [](const Times& a, const Times& b) { return a.least < b.least; });
  };
  for (int repeat = 0; repeat <= most_repeats; ++repeat)
    for (size_t i = 0; i < count; ++i) {
      Times& t = times[i];
      if (repeat > 1 && (t.all >= enough || t.least > hopeless * best()->least)) continue;
      const float time = timer.milliseconds([&] { return launch(i); });
      if (repeat == 0) continue;  // the first run also loads the code
      t.least = std::min(t.least, time), t.all += time;
    }
  timer.done();
  return static_cast<size_t>(best() - times.begin());
}

}  // namespace weft::target::cuda
