#include "target/cuda/driver/timestamps.h"

#include <chrono>
#include <utility>
#include <vector>

namespace weft::target::cuda {

namespace {

constexpr float longest_span_ms = 1000;  // a float resolves 0.1 microseconds up to here

EventHandle make_event() {
  EventHandle event = nullptr;
  check_result(driver().event_create(&event, event_default), "cuEventCreate");
  return event;
}

class EventTimestamps final : public runtime::Timestamps {
 public:
  EventTimestamps(Context& context, EventClock& clock, size_t count) : context_(context), clock_(clock) {
    std::lock_guard lock(runtime::Accelerator::order());
    clock_.begin();
    for (size_t k = 0; k < count; ++k) events_.push_back(make_event());
  }
  ~EventTimestamps() override {
    if (driver().ctx_set_current(context_.handle()) != success) return;
    for (EventHandle event : events_) driver().event_destroy(event);
  }

  /// Records a timestamp. In a capture it is a node of the graph, which records at every launch.
  void note(size_t k) override {
    const unsigned flags = context_.capturing() ? event_record_external : event_record_default;
    check_result(driver().event_record_with_flags(events_.at(k), context_.stream(), flags), "cuEventRecordWithFlags");
  }

  std::vector<double> times() override {
    std::lock_guard lock(runtime::Accelerator::order());
    context_.make_current();
    check_result(driver().event_synchronize(events_.back()), "cuEventSynchronize");
    std::vector<double> out;
    const double first = clock_.at(events_.front());
    for (EventHandle event : events_) {
      float ms = 0;
      check_result(driver().event_elapsed_time(&ms, events_.front(), event), "cuEventElapsedTime");
      out.push_back(first + 1e3 * static_cast<double>(ms));
    }
    return out;
  }

 private:
  Context& context_;
  EventClock& clock_;
  std::vector<EventHandle> events_;
};

}  // namespace

EventClock::~EventClock() {
  if (!anchor_ || driver().ctx_set_current(context_.handle()) != success) return;
  driver().event_destroy(anchor_);
  driver().event_destroy(next_);
}

void EventClock::begin() {
  context_.make_current();
  if (anchor_) return;
  anchor_ = make_event();
  next_ = make_event();
  context_.synchronize();
  check_result(driver().event_record(anchor_, context_.stream()), "cuEventRecord");
  context_.synchronize();
  anchor_us_ = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

float EventClock::milliseconds(EventHandle from, EventHandle to) const {
  float ms = 0;
  check_result(driver().event_elapsed_time(&ms, from, to), "cuEventElapsedTime");
  return ms;
}

/// Once the anchor is too far back, a second one is recorded and replaces it as soon as it has completed.
double EventClock::at(EventHandle event) {
  if (next_recorded_ && driver().event_query(next_) == success) {
    anchor_us_ += 1e3 * static_cast<double>(milliseconds(anchor_, next_));
    std::swap(anchor_, next_);
    next_recorded_ = false;
  }
  const float ms = milliseconds(anchor_, event);
  if (ms > longest_span_ms && !next_recorded_) {
    check_result(driver().event_record(next_, context_.stream()), "cuEventRecord");
    next_recorded_ = true;
  }
  return anchor_us_ + 1e3 * static_cast<double>(ms);
}

std::unique_ptr<runtime::Timestamps> make_timestamps(Context& context, EventClock& clock, size_t count) {
  return std::make_unique<EventTimestamps>(context, clock, count);
}

}  // namespace weft::target::cuda
