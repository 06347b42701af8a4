#pragma once
// What the driver says of a device: everything that limits kernels, and what it can do.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda {

/// Attributes beside those of driver.h, which only reports ask for.
enum class Reported : int {
  max_block_x = 2,
  max_block_y = 3,
  max_block_z = 4,
  max_grid_x = 5,
  max_grid_y = 6,
  max_grid_z = 7,
  constant_memory_size = 9,
  max_registers_per_block = 12,
  kernel_time_limit = 17,
  integrated = 18,
  can_map_host_memory = 19,
  concurrent_kernels = 31,
  ecc_enabled = 32,
  copy_engines = 40,
  unified_addressing = 41,
  stream_priorities = 78,
  managed_memory = 83,
  native_host_atomics = 86,
  single_to_double_ratio = 87,
  pageable_memory_access = 88,
  compute_preemption = 90,
  max_blocks_per_sm = 106,
  max_persisting_l2 = 108,
  memory_pools = 115,
  cluster_launch = 120,
  tensor_map_access = 127,
  multicast = 132,
};

/// A property of a device, as a row of a table.
struct PropertyInfo {
  int attribute;     // CUdevice_attribute
  const char* key;   // "max_threads_per_block"
  const char* unit;  // "bytes", "kHz", "bits", "yes" for what a device has or lacks, or ""
};
std::span<const PropertyInfo> property_table();

struct Property {
  const PropertyInfo* info;
  int64_t value;
};
/// Returns the device's properties; those that the driver does not know are left out. Throws std::invalid_argument
/// where there is no such device.
std::vector<Property> device_properties(int ordinal);

/// Returns the other devices whose memory this one can access.
std::vector<int> device_peers(int ordinal);

/// Returns the speed and width of the device's PCIe link, "16.0 GT/s PCIe x16"; "" where the system does not say.
std::string pcie_link(const std::string& pci_bus_id);

}  // namespace weft::target::cuda
