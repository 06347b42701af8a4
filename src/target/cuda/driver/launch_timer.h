#pragma once
// Measures launches on a device by events, and picks the fastest of several candidates.
#include <cstddef>
#include <functional>
#include <string>

#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

/// Times launches.
class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;
  /// Returns whether launches may be timed now: not during a capture.
  virtual bool may_measure() const = 0;
  /// Runs `launch` and waits. Returns milliseconds, or infinity if `launch` returns false (it could not run).
  virtual float milliseconds(const std::function<bool()>& launch) = 0;
};

/// Times by events on the context's stream. `what` is for errors.
class EventTimer final : public LaunchTimer {
 public:
  EventTimer(Context& context, std::string what) : context_(context), what_(std::move(what)) {}
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;
  ~EventTimer() override;
  bool may_measure() const override { return !context_.capturing(); }
  float milliseconds(const std::function<bool()>& launch) override;

 private:
  Context& context_;
  std::string what_;
  EventHandle start_ = nullptr, stop_ = nullptr;
};

/// Runs each of `count` candidates a few times, short ones in bursts, and returns the one with the shortest run.
/// `launch` enqueues a candidate and returns whether it could. A candidate that is much slower at first is not
/// repeated.
size_t fastest(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch);

}  // namespace weft::target::cuda
