#pragma once
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
  friend bool operator==(const Device&, const Device&) = default;
};

struct Stream {
  int index;
  Device device;
  friend bool operator==(const Stream&, const Stream&) = default;
};

/// The last argument of every operation; `{}` is the default stream of the default device.
using StreamOrDevice = std::variant<std::monostate, Stream, Device, Device::DeviceType>;

WEFT_API const Device& default_device();
/// Throws std::invalid_argument where this build has no such device.
WEFT_API void set_default_device(const Device& d);
WEFT_API bool is_available(const Device& d);
WEFT_API Stream default_stream(Device d);
WEFT_API Stream to_stream(StreamOrDevice s);  // throws std::invalid_argument where the device is not available
/// Waits until everything issued on the stream is done.
WEFT_API void synchronize(Stream s);
WEFT_API void synchronize();

}  // namespace weft
