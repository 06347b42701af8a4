#include "target/cuda/driver/launch_timer.h"

#include <algorithm>
#include <limits>

#include "runtime/trace.h"

namespace weft::target::cuda {
namespace {

constexpr float never = std::numeric_limits<float>::infinity();
// A candidate runs three times, or for 3 ms: the times of long ones vary little.
constexpr float enough = 3, most_repeats = 3;
constexpr float hopeless = 1.3f;  // times the best so far: not measured further
// A launch that is shorter waits for the host between the two events: several are enqueued and their mean is taken.
constexpr float short_milliseconds = 0.05f;
constexpr int burst = 12;

}  // namespace

EventTimer::~EventTimer() {
  if (!start_ || driver().ctx_set_current(context_.handle()) != success) return;
  for (EventHandle event : {start_, stop_})
    if (event) driver().event_destroy(event);
}

float EventTimer::milliseconds(const std::function<bool()>& launch) {
  context_.make_current();
  for (EventHandle* event : {&start_, &stop_})
    if (!*event) check_result(driver().event_create(event, event_default), "cuEventCreate", what_);
  float time = never;
  check_result(driver().event_record(start_, context_.stream()), "cuEventRecord", what_);
  const bool launched = launch();
  check_result(driver().event_record(stop_, context_.stream()), "cuEventRecord", what_);
  check_result(driver().event_synchronize(stop_), "cuEventSynchronize", what_);
  if (launched) check_result(driver().event_elapsed_time(&time, start_, stop_), "cuEventElapsedTime", what_);
  return time;
}

namespace {

/// Returns the milliseconds of a launch, of a short one in a burst.
float time_of(LaunchTimer& timer, const std::function<bool()>& launch) {
  const float once = timer.milliseconds(launch);
  if (once >= short_milliseconds) return once;
  const auto launches = [&] {
    bool launched = true;
    for (int k = 0; k < burst; ++k) launched = launch() && launched;
    return launched;
  };
  return timer.milliseconds(launches) / burst;
}

}  // namespace

size_t fastest(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch) {
  const runtime::Span span("compiler", "search of algorithms");
  size_t best = 0;
  float best_time = never;
  for (size_t i = 0; i < count; ++i) {
    float least = timer.milliseconds([&] { return launch(i); });  // the first run also loads the code
    for (float measured = 0; measured < enough && least < never;) {
      const float time = time_of(timer, [&] { return launch(i); });
      measured += std::max(time, enough / most_repeats);
      least = std::min(least, time);
      if (least > hopeless * best_time) break;
    }
    if (least < best_time) best_time = least, best = i;
  }
  return best;
}

}  // namespace weft::target::cuda
