// Devices and streams. This build runs on the CPU: naming another device is an error when the graph is built.
#include "weft/device.h"

#include <string>

#include "array/op_support.h"
#include "base/error.h"

namespace weft {
namespace {

std::string device_name(const Device& d) {
  return (d.type == Device::gpu ? "gpu:" : "cpu:") + std::to_string(d.index);
}

Device device_of(const StreamOrDevice& s) {
  if (const auto* stream = std::get_if<Stream>(&s)) return stream->device;
  if (const auto* device = std::get_if<Device>(&s)) return *device;
  if (const auto* type = std::get_if<Device::DeviceType>(&s)) return Device(*type);
  return default_device();
}

Stream stream_on(const char* op, const StreamOrDevice& s) {
  const Device d = device_of(s);
  if (!is_available(d))
    throw_invalid(op, "device " + device_name(d) + " is not available: there is " + (d.type == Device::gpu ? "no GPU in this build" : "one CPU, cpu:0"));
  return {0, d};
}

}  // namespace

const Device& default_device() {
  static const Device cpu(Device::cpu);
  return cpu;
}

// The CPU is all there is, so there is nothing to remember.
void set_default_device(const Device& d) { stream_on("set_default_device", d); }
bool is_available(const Device& d) { return d.type == Device::cpu && d.index == 0; }
Stream default_stream(Device d) { return stream_on("default_stream", d); }
Stream to_stream(StreamOrDevice s) { return stream_on("to_stream", s); }

// Programs run on the calling thread and its team: when a call returns, its work is done.
void synchronize(Stream s) { stream_on("synchronize", s); }
void synchronize() {}

void detail::on_device(const char* op, const StreamOrDevice& s) {
  if (!std::holds_alternative<std::monostate>(s)) stream_on(op, s);
}

}  // namespace weft
