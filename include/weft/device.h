#pragma once
#include <compare>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <unordered_map>
#include <variant>

#include "weft/api.h"

namespace weft {

/// Where an operation runs. Devices are named on the operation, as in MLX; data moves by itself.
struct Device {
  enum class DeviceType { cpu, gpu };
  static constexpr DeviceType cpu = DeviceType::cpu;
  static constexpr DeviceType gpu = DeviceType::gpu;

  Device(DeviceType t, int i = 0) : type(t), index(i) {}
  DeviceType type;
  int index;
  friend auto operator<=>(const Device&, const Device&) = default;
};

/// A sequence of operations that run one after the other; streams run beside each other (weft/stream.h). Ordered by
/// device, then index.
struct Stream {
  int index;
  Device device;
  Stream(int i, Device d) : index(i), device(d) {}
  friend bool operator==(const Stream&, const Stream&) = default;
  friend bool operator<(const Stream& a, const Stream& b) {
    return a.device != b.device ? a.device < b.device : a.index < b.index;
  }
};

/// The name of one stream for each thread: the stream itself is made when the thread first uses it.
struct ThreadLocalStream {
  int index;
  Device device;
  friend bool operator==(const ThreadLocalStream&, const ThreadLocalStream&) = default;
};

/// The last argument of every operation; `{}` is the calling thread's default stream on its default device.
using StreamOrDevice = std::variant<std::monostate, Stream, ThreadLocalStream, Device, Device::DeviceType>;

WEFT_API const Device& default_device();
/// For the whole process: what names no stream or device runs there from now on, on the calling thread also where it
/// had a default stream. Throws std::invalid_argument where this machine has no such device.
WEFT_API void set_default_device(const Device& d);
WEFT_API bool is_available(const Device& d);
WEFT_API int device_count(Device::DeviceType type);
/// What is known of a device: "device_name", "architecture"; of a GPU also "total_memory" and "free_memory" (bytes),
/// "uuid", "pci_bus_id", "compute_capability_major" and "compute_capability_minor". Empty where there is no such
/// device. Valid until the calling thread asks again.
using DeviceInfo = std::unordered_map<std::string, std::variant<std::string, size_t>>;
WEFT_API const DeviceInfo& device_info(const Device& d = default_device());
WEFT_API Stream default_stream(Device d);
WEFT_API Stream
to_stream(StreamOrDevice s);  ///< throws std::invalid_argument where the device or the stream is not there
/// Waits until everything issued on the stream is done; throws the first error of work that was issued asynchronously
/// since the last wait.
WEFT_API void synchronize(Stream s);
WEFT_API void synchronize(ThreadLocalStream s);  ///< the calling thread's stream of this name
WEFT_API void synchronize();                     ///< the calling thread's default stream

WEFT_API std::ostream& operator<<(std::ostream& os, const Device& d);  ///< "Device(cpu, 0)"
WEFT_API std::ostream& operator<<(std::ostream& os, const Stream& s);  ///< "Stream(Device(cpu, 0), 1)"

}  // namespace weft
