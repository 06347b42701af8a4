#pragma once
// A device with its primary context (which CUDA's libraries share), what is known of it, and the stream that its work
// goes to.
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
  int64_t shared_bytes_per_block = 0;  // what a kernel may ask for, with the attribute set
  int64_t shared_bytes_per_multiprocessor = 0;
  int64_t registers_per_multiprocessor = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0, memory_bus_bits = 0;
  /// What kernels are compiled to: "sm_90a", with the letter (instructions of this architecture alone) from 9.0 on.
  std::string arch() const;
};

class Context {
 public:
  explicit Context(int ordinal);  // throws where there is no such device
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int ordinal() const { return ordinal_; }
  int device() const { return device_; }  // the driver's own number
  ContextHandle handle() const { return handle_; }
  StreamHandle stream() const { return stream_; }
  const DeviceInfo& info() const { return info_; }
  std::string name() const;  // "cuda:1 (NVIDIA H200)"
  /// Calls of the driver act on the context that is current on the calling thread.
  void make_current() const;
  void synchronize() const;  // waits for the stream
  /// What this stream is given from now on comes after what the other's was given so far. The host waits for neither.
  void follow(const Context& other) const;
  /// Whether this device may read and write the other's memory; it is made so when first asked.
  bool reaches(const Context& other) const;
  bool capturing() const;  // whether the stream is being captured
  /// Around a capture. A kernel of a recording may begin while the one before it ends, but for the first one, whose
  /// recording follows anything.
  void set_capturing(bool on) { capturing_ = on, follows_ = false; }
  bool next_follows_a_kernel() { return capturing_ && std::exchange(follows_, true); }
  /// Bytes that nobody in the system holds, and all of them.
  void memory(size_t* free, size_t* total) const;

 private:
  int ordinal_, device_ = 0;
  ContextHandle handle_ = nullptr;
  StreamHandle stream_ = nullptr;
  EventHandle reached_ = nullptr;  // how far others have to follow
  DeviceInfo info_;
  bool capturing_ = false, follows_ = false;
  mutable std::mutex peers_mutex_;
  mutable std::map<int, bool> peers_;  // by ordinal
};

/// 0 where there is no driver.
int device_count();
/// The context of a device, made on first use (it is current then) and kept until the process ends. Throws as driver()
/// does.
Context& context(int ordinal = 0);
/// What is known of a device without making a context on it.
DeviceInfo device_info(int ordinal);
/// What programs are scheduled for on this device.
Machine machine_of(const DeviceInfo& info);
/// Throws std::runtime_error where generated kernels cannot run on such a device.
void require_capability(const DeviceInfo& info);

}  // namespace weft::target::cuda
