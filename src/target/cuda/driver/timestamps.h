#pragma once
// Times at which a device passed points in its work, by events.
#include <memory>

#include "runtime/device.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

/// Where the device's clock stands beside the host's. Every span that is read off is short, because single floats hold
/// it.
class EventClock {
 public:
  explicit EventClock(Context& context) : context_(context) {}
  ~EventClock();
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;
  /// Of an event that has happened, in microseconds of std::chrono::steady_clock. The caller holds the device's
  /// order().
  double at(EventHandle event);
  /// Waits for the device once, the first time.
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
