#pragma once
// Ids and tables of NVTX's protocol between programs and profilers.
#include <cstddef>
#include <cstdint>

namespace weft::runtime::nvtx {

inline constexpr uint32_t protocol_version = 3;
enum ExportTable : uint32_t { callbacks_table = 1, version_table = 3 };
enum ModuleNumber : uint32_t {
  core_module = 1,
  cuda_module = 2,
  opencl_module = 3,
  cudart_module = 4,
  core2_module = 5,
  sync_module = 6
};
enum CoreFunction : uint32_t { range_push = 9, range_pop = 11 };  // …A: names are bytes
inline constexpr unsigned module_sizes[] = {0, 16, 9, 15, 7, 16, 7};

struct CallbackTable {
  size_t bytes;
  int (*function_table)(uint32_t module, void (****table)(), unsigned* size);
};

struct VersionTable {
  size_t bytes;
  uint32_t version, reserved;
  void (*set_version)(uint32_t version);
};

}  // namespace weft::runtime::nvtx
