#pragma once
// Timestamps in a device's work, by events.
#include <memory>

#include "runtime/device.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

/// Relates the device's clock to the host's. Spans between events are single floats, so the anchor is renewed to keep
/// them short.
class EventClock {
 public:
  explicit EventClock(Context& context) : context_(context) {}
  ~EventClock();
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;
  /// Returns when a completed event happened, in microseconds of std::chrono::steady_clock. The caller holds the
  /// device's order().
  double at(EventHandle event);
  /// Records the first anchor; waits for the device, the first time only.
  void begin();

 private:
  float milliseconds(EventHandle from, EventHandle to) const;
  Context& context_;
  EventHandle anchor_ = nullptr, next_ = nullptr;
  bool next_recorded_ = false;
  double anchor_us_ = 0;
};

std::unique_ptr<runtime::Timestamps> make_timestamps(Context& context, EventClock& clock, size_t count);

}  // namespace weft::target::cuda
