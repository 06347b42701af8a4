#pragma once
// When a device did the steps of a run: points noted between them, turned into slices of the timeline once it is done.
// Nothing waits meanwhile.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "runtime/device.h"

namespace weft::compiler {

/// What a step is called in a timeline: what it computes, for a kernel; else its descriptor.
std::string label(const StepInfo& step);

/// The points of one run after the other.
class StepTimes {
 public:
  StepTimes(runtime::Accelerator& device, std::vector<StepInfo> steps, int64_t program)
      : device_(device), steps_(std::move(steps)), program_(program),
        timestamps_(device.timestamps(steps_.size() + 1)) {}
  /// Point `k`: before step k, and after step k - 1.
  void note(size_t k) { timestamps_->note(k); }
  /// A run has been given, with all its points: its number.
  int64_t given();
  /// Records the slices of a run, unless that has been done. Waits for the device.
  void settle(int64_t run);
  void settle() { settle(runs_); }

 private:
  runtime::Accelerator& device_;
  std::vector<StepInfo> steps_;
  int64_t program_;
  std::unique_ptr<runtime::Timestamps> timestamps_;
  std::mutex mutex_;
  std::atomic<int64_t> runs_ = 0;  // given so far
  bool pending_ = false;           // the last of them has not been settled
};

/// Some of them that are used in turn, so that a run does not wait for the one before it.
class StepTimesRing {
 public:
  struct Slot {
    std::shared_ptr<StepTimes> times;  // settled
    int64_t index = 0;                 // which of the ring
  };
  Slot next(runtime::Accelerator& device, const std::vector<StepInfo>& steps, int64_t program);

 private:
  static constexpr size_t many = 2;
  std::mutex mutex_;
  std::vector<std::shared_ptr<StepTimes>> ring_;
  size_t next_ = 0;
};

}  // namespace weft::compiler
