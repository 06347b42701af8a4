#pragma once
// A device with its own memory, as the runtime sees it: memory and an order of work. Kernels and library calls belong
// to its target.
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weft::runtime {

struct DeviceMemory {
  size_t active = 0;  // bytes in live blocks
  size_t peak = 0;    // the maximum of `active` since reset_peak
  size_t cached = 0;  // bytes kept for reuse
  size_t limit = 0;   // of active and cached together
};

/// Captured work that one call runs again, with the addresses and scalars of the capture.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void run() const = 0;
};

/// Timestamps that a device records when it reaches points in its work.
class Timestamps {
 public:
  virtual ~Timestamps() = default;
  /// Records point `k`, where all work given so far is done. In a captured graph, every replay records the time again.
  virtual void note(size_t k) = 0;
  /// Returns the times of all points, in microseconds of std::chrono::steady_clock; waits until the device has passed
  /// the last one. Each must have been recorded.
  virtual std::vector<double> times() = 0;
};

/// A device that runs all work in the order in which any thread gives it, asynchronously. A later call reports
/// failures, as std::runtime_error.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual std::string name() const = 0;  // "cuda:0"
  /// Allocates, aligned to 256 bytes. Throws std::runtime_error with the request, the memory in use and what could be
  /// freed.
  virtual void* allocate(size_t bytes) = 0;
  /// Returns the bytes that `allocate` takes for a request.
  virtual size_t block_bytes(size_t bytes) const = 0;
  /// Frees a block; work given later may use it.
  virtual void release(void* data, size_t bytes) noexcept = 0;
  virtual void to_device(void* to, const void* from, size_t bytes) = 0;  // `from` has been read when it returns
  virtual void to_host(void* to, const void* from, size_t bytes) = 0;    // waits for all work before
  virtual void copy(void* to, const void* from, size_t bytes) = 0;       // within the device
  virtual void synchronize() = 0;

  /// The lock that makes several pieces of work consecutive. There is one for all devices, because buffers may pass
  /// between any two.
  static std::recursive_mutex& order() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  /// Captures the calling thread's work instead of running it, until end_capture. Meanwhile no memory is allocated and
  /// nothing waits. The caller holds order().
  virtual void begin_capture() = 0;
  virtual std::shared_ptr<const CapturedGraph> end_capture() = 0;
  virtual void abandon_capture() noexcept = 0;
  virtual std::unique_ptr<Timestamps> timestamps(size_t count) = 0;

  virtual DeviceMemory memory() const = 0;
  virtual void reset_peak() = 0;
  virtual size_t set_limit(size_t bytes) = 0;  // returns the previous one; 0: all memory
  virtual size_t set_cache_limit(size_t bytes) = 0;
  virtual void clear_cache() = 0;
};

}  // namespace weft::runtime
