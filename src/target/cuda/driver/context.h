#pragma once
// A device: its primary context (shared with CUDA's libraries), its properties, and the stream of its work.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "target/cuda/driver/driver.h"
#include "target/machine.h"

namespace weft::target::cuda {

struct DeviceInfo {
  std::string name;          // "NVIDIA H200"
  std::string uuid;          // "GPU-…"
  std::string pci_bus_id;    // "0000:1b:00.0"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int max_threads_per_multiprocessor = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes_per_block = 0;  // the most that a kernel may request (opt-in)
  int64_t shared_bytes_per_multiprocessor = 0;
  int64_t registers_per_multiprocessor = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0, memory_bus_bits = 0;
  /// Returns the architecture that kernels are compiled for: "sm_90a"; from 9.0 on with the letter, for instructions of
  /// this architecture only.
  std::string arch() const;
};

class Context {
 public:
  explicit Context(int ordinal);  // throws if there is no such device
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int ordinal() const { return ordinal_; }
  int device() const { return device_; }  // the driver's device handle
  ContextHandle handle() const { return handle_; }
  StreamHandle stream() const { return stream_; }
  const DeviceInfo& info() const { return info_; }
  std::string name() const;  // "cuda:1 (NVIDIA H200)"
  /// Makes the context current on the calling thread, as calls of the driver need it.
  void make_current() const;
  /// Waits for the stream; `may_end`: or until somebody asks for the end, while the device's work goes on.
  void synchronize(bool may_end = false) const;
  /// Makes later work of this stream wait for the work that `other` has been given so far, without blocking the host.
  void follow(const Context& other) const;
  /// Returns whether this device can access the other's memory; the first call enables the access.
  bool reaches(const Context& other) const;
  bool capturing() const;  // whether the stream is being captured
  /// Marks the begin or end of a capture. A captured kernel may start before the preceding one ends, except for the
  /// first, because anything may precede the graph.
  void set_capturing(bool on) { capturing_ = on, follows_ = false; }
  bool is_capturing() const { return capturing_; }  // by set_capturing, without a call of the driver
  bool next_follows_a_kernel() { return capturing_ && std::exchange(follows_, true); }
  /// Returns the device's free memory and all of it, in bytes.
  void memory(size_t* free, size_t* total) const;

 private:
  int ordinal_, device_ = 0;
  ContextHandle handle_ = nullptr;
  StreamHandle stream_ = nullptr;
  EventHandle reached_ = nullptr;  // recorded by `follow` for other streams to wait for
  DeviceInfo info_;
  bool capturing_ = false, follows_ = false;
  mutable std::mutex peers_mutex_;
  mutable std::map<int, bool> peers_;  // by ordinal
};

/// Returns the number of devices; 0 without a driver.
int device_count();
/// Returns the context of a device. It is made and current after the first call, and lives until the process ends.
/// Throws as driver() does.
Context& context(int ordinal = 0);
/// Returns a device's properties without making a context.
DeviceInfo device_info(int ordinal);
/// Returns the machine that programs for this device are scheduled for.
Machine machine_of(const DeviceInfo& info);
/// Throws std::runtime_error if the device cannot run generated kernels.
void require_capability(const DeviceInfo& info);

}  // namespace weft::target::cuda
