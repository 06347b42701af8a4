#pragma once
// Ranges for profilers that speak NVTX (Nsight Systems, Nsight Compute): one for each run of a program and each of its
// steps, when enabled and a profiler is attached. No NVIDIA library or header is needed: a profiler names its library
// in NVTX_INJECTION64_PATH and fills in the functions that it wants called.
#include <atomic>
#include <cstdint>

namespace weft::runtime::nvtx {

/// Enables ranges (`--nvtx`, or WEFT_NVTX=1 in the environment); returns false if no profiler is attached. Programs of
/// a device then run step by step, so that kernels lie in the ranges of their steps.
bool enable();
void disable();

namespace detail {
inline std::atomic<bool> enabled{false};
}
/// Returns whether ranges are enabled; this is their only cost while they are not.
inline bool on() { return detail::enabled.load(std::memory_order_relaxed); }

/// The entry point of a profiler's library, exported as InitializeInjectionNvtx2. It takes a function that returns
/// tables by id, and returns 0 on failure.
using Initialize = int (*)(const void* (*export_table)(uint32_t id));
bool attach(Initialize initialize);

void push(const char* name);
void pop();

/// A range on the calling thread, as long as the object lives.
class Range {
 public:
  explicit Range(const char* name) : on_(on()) {
    if (on_) push(name);
  }
  /// `name` is only called if ranges are enabled.
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
