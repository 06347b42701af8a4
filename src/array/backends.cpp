// weft/backends.h, and the properties of devices (weft/device.h).
#include "weft/backends.h"

#include <sys/utsname.h>

#include <fstream>
#include <stdexcept>

#include "base/error.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft {
namespace {

const DeviceInfo& nothing() {
  static const DeviceInfo empty;
  return empty;
}

DeviceInfo describe_cpu() {
  utsname system{};
  const std::string architecture = uname(&system) == 0 ? system.machine : "unknown";
  DeviceInfo info{{"architecture", architecture}, {"device_name", architecture}};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    info["device_name"] = line.substr(colon + 2);
    break;
  }
  return info;
}

DeviceInfo describe_gpu(int ordinal) {
  const target::cuda::DeviceInfo& known = target::cuda::context(ordinal).info();
  size_t free = 0, total = 0;
  target::cuda::context(ordinal).memory(&free, &total);
  return {{"device_name", known.name},
          {"architecture", "sm_" + std::to_string(known.major) + std::to_string(known.minor)},
          {"uuid", known.uuid},
          {"pci_bus_id", known.pci_bus_id},
          {"compute_capability_major", static_cast<size_t>(known.major)},
          {"compute_capability_minor", static_cast<size_t>(known.minor)},
          {"total_memory", total},
          {"free_memory", free}};
}

}  // namespace

const DeviceInfo& device_info(const Device& d) {
  if (!is_available(d)) return nothing();
  if (d.type == Device::gpu) return gpu::device_info(d.index);
  static const DeviceInfo cpu = describe_cpu();
  return cpu;
}

const char* version() { return WEFT_VERSION; }

namespace gpu {
bool is_available() { return device_count() > 0; }
int device_count() { return target::gpu_count(); }
const DeviceInfo& device_info(int device_index) {
  if (device_index < 0 || device_index >= device_count()) return nothing();
  thread_local DeviceInfo info;  // free memory changes
  info = describe_gpu(device_index);
  return info;
}
}  // namespace gpu

namespace cu {
bool is_available() { return gpu::is_available(); }
const DeviceInfo& device_info(int device_index) { return gpu::device_info(device_index); }
}  // namespace cu

namespace metal {
bool is_available() { return false; }
void start_capture(std::string) {}
void stop_capture() {}
void set_metallib_path(const std::string&) {}
const DeviceInfo& device_info() {
  throw_failure("metal::device_info", "there is no Metal here: weft::device_info tells of CPUs and CUDA's devices");
}
const std::string& get_metallib_path() {
  throw_failure("metal::get_metallib_path", "there is no Metal here, and no library of its kernels");
}
}  // namespace metal

}  // namespace weft
