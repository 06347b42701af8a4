#pragma once
// Measures launches on a device by events, and picks the fastest of several candidates.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "target/cuda/driver/context.h"
#include "target/cuda/driver/workspace.h"

namespace weft::target::cuda {

/// Times launches.
class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;
  /// Returns whether launches may be timed now: not during a capture.
  virtual bool may_measure() const = 0;
  /// Runs `launch` and waits. Returns milliseconds, or infinity if `launch` returns false (it could not run).
  virtual float milliseconds(const std::function<bool()>& launch) = 0;
  /// Says that no more launches are timed for now.
  virtual void done() {}
};

/// Times by events on the context's stream. Before each launch the L2 is filled with other data, as it is in a program
/// that does more than this; the launch then does not wait for the host either. `what` is for errors.
class EventTimer final : public LaunchTimer {
 public:
  EventTimer(Context& context, std::string what) : context_(context), what_(std::move(what)) {}
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;
  ~EventTimer() override;
  bool may_measure() const override { return !context_.capturing(); }
  float milliseconds(const std::function<bool()>& launch) override;
  void done() override { other_data_.reset(); }

 private:
  void fill_cache();

  Context& context_;
  std::string what_;
  EventHandle start_ = nullptr, stop_ = nullptr;
  std::shared_ptr<const Workspace> other_data_;
};

/// Runs `count` candidates a few times in turns, since clocks fall while a device is busy, and returns the one with the
/// shortest run. `launch` enqueues a candidate and returns whether it could. A candidate that is much slower at first
/// is not repeated.
size_t fastest(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch);

}  // namespace weft::target::cuda
