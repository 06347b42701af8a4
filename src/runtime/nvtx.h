#pragma once
// Ranges for profilers that speak NVTX (Nsight Systems, Nsight Compute): a range for each run of a program and each of
// its steps, where they are asked for and a profiler is attached. No library and no header of NVIDIA's takes part: a
// profiler names its own library in NVTX_INJECTION64_PATH, and fills in the functions that it wants to be called.
#include <atomic>
#include <cstdint>

namespace weft::runtime::nvtx {

/// From now on (`--nvtx`, or WEFT_NVTX=1 in the environment) ranges are given to the profiler, if one is attached:
/// false where none is. Programs of a device then run step by step, so that kernels lie in the ranges of their steps.
bool enable();
void disable();

namespace detail {
inline std::atomic<bool> enabled{false};
}
/// All that ranges cost while there are none.
inline bool on() { return detail::enabled.load(std::memory_order_relaxed); }

/// A profiler's way in, as its library exports it under the name InitializeInjectionNvtx2: takes a function that gives
/// tables by number, and returns 0 where it fails.
using Initialize = int (*)(const void* (*export_table)(uint32_t id));
bool attach(Initialize initialize);

void push(const char* name);
void pop();

/// Its own life time, on the calling thread.
class Range {
 public:
  explicit Range(const char* name) : on_(on()) {
    if (on_) push(name);
  }
  /// `name` is called where it is needed.
  template <class F>
  requires requires(const F& f) { f().c_str(); }
  explicit Range(const F& name) : on_(on()) {
    if (on_) push(name().c_str());
  }
  ~Range() {
    if (on_) pop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool on_;
};

}  // namespace weft::runtime::nvtx
