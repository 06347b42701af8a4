#pragma once
#include <string>

#include "weft/device.h"

/// What this build of Weft is, and the back ends that MLX names: the GPUs of this machine are CUDA's; there is no
/// Metal.
namespace weft {

WEFT_API const char* version();  ///< of Weft, as "major.minor.patch"

namespace gpu {
WEFT_API bool is_available();  ///< there is a driver and at least one device
WEFT_API int device_count();
WEFT_API const DeviceInfo& device_info(
    int device_index = 0);  ///< as weft::device_info; empty where there is no such device
}  // namespace gpu

namespace cu {
WEFT_API bool is_available();
WEFT_API const DeviceInfo& device_info(int device_index = 0);
}  // namespace cu

namespace metal {
WEFT_API bool is_available();                        ///< false
WEFT_API void start_capture(std::string path = "");  ///< without Metal these do nothing, as in MLX
WEFT_API void stop_capture();
WEFT_API void set_metallib_path(const std::string& path);
WEFT_API const DeviceInfo& device_info();         ///< throws std::runtime_error
WEFT_API const std::string& get_metallib_path();  ///< throws std::runtime_error
}  // namespace metal

}  // namespace weft
