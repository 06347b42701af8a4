#include "target/cuda/driver/fastest.h"

#include <algorithm>
#include <limits>

#include "runtime/trace.h"

namespace weft::target::cuda {
namespace {

constexpr float never = std::numeric_limits<float>::infinity();
// A candidate is run three times, or for so many milliseconds: what takes long differs little from run to run.
constexpr float enough = 3, most_repeats = 3;

class Stopwatch {
 public:
  Stopwatch(Context& context, const std::string& what) : context_(context), what_(what) {
    check(driver().event_create(&start_, event_default), "cuEventCreate", what_);
    check(driver().event_create(&stop_, event_default), "cuEventCreate", what_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    for (EventHandle event : {start_, stop_})
      if (event) driver().event_destroy(event);
  }

  float milliseconds(const std::function<bool()>& launch) {
    float time = never;
    check(driver().event_record(start_, context_.stream()), "cuEventRecord", what_);
    const bool launched = launch();
    check(driver().event_record(stop_, context_.stream()), "cuEventRecord", what_);
    check(driver().event_synchronize(stop_), "cuEventSynchronize", what_);
    if (launched) check(driver().event_elapsed_time(&time, start_, stop_), "cuEventElapsedTime", what_);
    return time;
  }

 private:
  Context& context_;
  const std::string& what_;
  EventHandle start_ = nullptr, stop_ = nullptr;
};

}  // namespace

size_t fastest(Context& context, size_t count, const std::function<bool(size_t)>& launch, const std::string& what) {
  const runtime::Span span("compiler", "search of algorithms");
  context.make_current();
  Stopwatch watch(context, what);
  size_t best = 0;
  float best_time = never;
  for (size_t i = 0; i < count; ++i) {
    float least = watch.milliseconds([&] { return launch(i); });  // loads the code as well
    for (float measured = 0; measured < enough && least < never;) {
      const float time = watch.milliseconds([&] { return launch(i); });
      measured += std::max(time, enough / most_repeats);
      least = std::min(least, time);
      if (least > 1.3f * best_time) break;
    }
    if (least < best_time) best_time = least, best = i;
  }
  return best;
}

}  // namespace weft::target::cuda
