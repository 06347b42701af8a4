#pragma once
// A device with memory of its own, as the runtime sees it: a place for bytes, and an order of work. Kernels and library
// calls are its target's business.
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weft::runtime {

struct DeviceMemory {
  size_t active = 0;  // bytes in live blocks
  size_t peak = 0;    // the most of them since reset_peak
  size_t cached = 0;  // bytes kept for reuse
  size_t limit = 0;   // of active and cached together
};

/// Work that was captured, to be given again and again with one call. Addresses and numbers are those of the first
/// time.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void run() const = 0;
};

/// Timestamps that a device takes when it reaches points in its work.
class Timestamps {
 public:
  virtual ~Timestamps() = default;
  /// Point `k` is where all work given so far is done. Noting is work like any other: in a captured graph, every run of
  /// it notes the time anew.
  virtual void note(size_t k) = 0;
  /// Of all points, in microseconds of std::chrono::steady_clock; waits until the device has passed the last of them.
  /// Each must have been noted.
  virtual std::vector<double> times() = 0;
};

/// All work given to a device, by any thread, is done in the order in which it was given, and goes on after the call
/// that gave it returns. What fails on the way is reported by a later call, as std::runtime_error.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual std::string name() const = 0;  // "cuda:0"
  /// 256-byte aligned. Throws std::runtime_error with what was asked, what is held and what could be freed.
  virtual void* allocate(size_t bytes) = 0;
  /// What `allocate` takes for so many bytes.
  virtual size_t block_bytes(size_t bytes) const = 0;
  /// The block may be used again by work that is given later.
  virtual void release(void* data, size_t bytes) noexcept = 0;
  virtual void to_device(void* to, const void* from, size_t bytes) = 0;  // `from` has been read when it returns
  virtual void to_host(void* to, const void* from, size_t bytes) = 0;    // waits for all work before
  virtual void copy(void* to, const void* from, size_t bytes) = 0;       // within the device
  virtual void synchronize() = 0;

  /// Whoever gives work that belongs together holds this: nothing else comes between. One for all devices, so that
  /// buffers may pass between any two.
  static std::recursive_mutex& order() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  /// From now on the calling thread's work is captured instead of done, until end_capture: no memory is allocated
  /// and nothing waits meanwhile. The caller holds order().
  virtual void begin_capture() = 0;
  virtual std::shared_ptr<const CapturedGraph> end_capture() = 0;
  virtual void abandon_capture() noexcept = 0;
  virtual std::unique_ptr<Timestamps> timestamps(size_t count) = 0;

  virtual DeviceMemory memory() const = 0;
  virtual void reset_peak() = 0;
  virtual size_t set_limit(size_t bytes) = 0;  // returns the previous one; 0: all there is
  virtual size_t set_cache_limit(size_t bytes) = 0;
  virtual void clear_cache() = 0;
};

}  // namespace weft::runtime
