#pragma once
#include <compare>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <unordered_map>
#include <variant>

#include "weft/api.h"

namespace weft {

/// A device: the CPU, or a GPU by its index.
struct Device {
  /// The kinds of devices.
  enum class DeviceType { cpu, gpu };
  /// Short names of the kinds: Device::cpu, Device::gpu.
  static constexpr DeviceType cpu = DeviceType::cpu;
  static constexpr DeviceType gpu = DeviceType::gpu;

  Device(DeviceType t, int i = 0) : type(t), index(i) {}
  DeviceType type;  ///< cpu or gpu
  int index;        ///< 0 for the CPU; GPUs are numbered by the driver
  friend auto operator<=>(const Device&, const Device&) = default;
};

/// A sequence of operations that run one after the other; streams run independently of each other (weft/stream.h).
/// Ordered by device, then index.
struct Stream {
  int index;      ///< numbers all streams of the process; 0 is the CPU's first
  Device device;  ///< that runs its operations
  Stream(int i, Device d) : index(i), device(d) {}
  friend bool operator==(const Stream&, const Stream&) = default;
  /// Orders by device, then index.
  friend bool operator<(const Stream& a, const Stream& b) {
    return a.device != b.device ? a.device < b.device : a.index < b.index;
  }
};

/// Names one stream for each thread: the stream itself is made when a thread first uses it.
struct ThreadLocalStream {
  int index;      ///< numbers the names
  Device device;  ///< of the streams
  friend bool operator==(const ThreadLocalStream&, const ThreadLocalStream&) = default;
};

/// Where an operation runs: the last argument `s` of every function that builds one. `{}` (the default) is the calling
/// thread's default stream: stream 0 of the default device, unless set_default_stream or StreamContext chose another. A
/// Stream is that stream; a ThreadLocalStream the calling thread's stream of that name; a Device, Device::cpu or
/// Device::gpu the thread's default stream where it is on that device, else the device's first stream. Operations throw
/// std::invalid_argument where the device or stream does not exist. Data moves between devices by itself.
using StreamOrDevice = std::variant<std::monostate, Stream, ThreadLocalStream, Device, Device::DeviceType>;

/// Returns the device of operations that name none: the CPU until set_default_device.
WEFT_API const Device& default_device();
/// Sets the default device of the process, also on the calling thread where it had a default stream. Throws
/// std::invalid_argument where this machine has no such device.
WEFT_API void set_default_device(const Device& d);
/// Returns whether this machine has the device, and for a GPU a driver.
WEFT_API bool is_available(const Device& d);
/// Returns the number of devices of a kind: 1 CPU, and as many GPUs as the driver shows.
WEFT_API int device_count(Device::DeviceType type);
/// Properties of a device: "device_name", "architecture"; of a GPU also "total_memory" and "free_memory" (bytes),
/// "uuid", "pci_bus_id", "compute_capability_major" and "compute_capability_minor".
using DeviceInfo = std::unordered_map<std::string, std::variant<std::string, size_t>>;
/// Returns the properties of a device, none where it does not exist. Valid until the calling thread asks again.
WEFT_API const DeviceInfo& device_info(const Device& d = default_device());
/// Returns the calling thread's default stream on a device. Throws std::invalid_argument where there is no such device.
WEFT_API Stream default_stream(Device d);
/// Returns the stream that `s` names. Throws std::invalid_argument where the device or the stream does not exist.
WEFT_API Stream to_stream(StreamOrDevice s);
/// Waits until everything issued on the stream (by default the calling thread's) is done. Throws the first error of
/// work that was issued asynchronously since the last wait.
WEFT_API void synchronize(Stream s);
WEFT_API void synchronize(ThreadLocalStream s);
WEFT_API void synchronize();

/// Prints "Device(cpu, 0)" or "Stream(Device(cpu, 0), 1)".
WEFT_API std::ostream& operator<<(std::ostream& os, const Device& d);
WEFT_API std::ostream& operator<<(std::ostream& os, const Stream& s);

}  // namespace weft
