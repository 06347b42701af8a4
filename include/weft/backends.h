#pragma once
#include <string>

#include "weft/device.h"

/// The version of Weft, and the back ends that MLX names: GPUs are CUDA devices; there is no Metal.
namespace weft {

/// Returns the version of Weft as "major.minor.patch".
WEFT_API const char* version();

namespace gpu {
/// Returns whether there is a driver and at least one device.
WEFT_API bool is_available();
/// Returns the number of GPUs.
WEFT_API int device_count();
/// Returns the properties of a GPU, as weft::device_info; none where there is no such device.
WEFT_API const DeviceInfo& device_info(int device_index = 0);
}  // namespace gpu

namespace cu {
/// Returns whether there is a CUDA device, as gpu::is_available.
WEFT_API bool is_available();
/// Returns the properties of a CUDA device, as gpu::device_info.
WEFT_API const DeviceInfo& device_info(int device_index = 0);
}  // namespace cu

namespace metal {
/// Returns false.
WEFT_API bool is_available();
/// Does nothing without Metal, as in MLX.
WEFT_API void start_capture(std::string path = "");
/// Does nothing.
WEFT_API void stop_capture();
/// Does nothing.
WEFT_API void set_metallib_path(const std::string& path);
/// Throws std::runtime_error: there is no Metal device.
WEFT_API const DeviceInfo& device_info();
/// Throws std::runtime_error: there is no Metal library.
WEFT_API const std::string& get_metallib_path();
}  // namespace metal

}  // namespace weft
