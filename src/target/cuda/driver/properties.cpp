#include "target/cuda/driver/properties.h"

#include <array>
#include <fstream>

#include "base/error.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {
namespace {

constexpr auto table = std::to_array<PropertyInfo>({
    {compute_capability_major, "capability_major", ""},
    {compute_capability_minor, "capability_minor", ""},
    {multiprocessor_count, "sms", ""},
    {clock_rate_khz, "clock", "kHz"},
    {memory_clock_rate_khz, "memory_clock", "kHz"},
    {global_memory_bus_width, "memory_bus", "bits"},
    {l2_cache_size, "l2", "bytes"},
    {108, "most_persisting_l2", "bytes"},
    {9, "constant_memory", "bytes"},
    {max_shared_memory_per_block, "shared_per_block", "bytes"},
    {max_shared_memory_per_block_optin, "shared_per_block_opt_in", "bytes"},
    {max_shared_memory_per_multiprocessor, "shared_per_sm", "bytes"},
    {reserved_shared_memory_per_block, "shared_reserved_per_block", "bytes"},
    {12, "registers_per_block", ""},
    {max_registers_per_multiprocessor, "registers_per_sm", ""},
    {warp_size, "warp", ""},
    {max_threads_per_multiprocessor, "threads_per_sm", ""},
    {106, "blocks_per_sm", ""},
    {max_threads_per_block, "threads_per_block", ""},
    {2, "block_x", ""},
    {3, "block_y", ""},
    {4, "block_z", ""},
    {5, "grid_x", ""},
    {6, "grid_y", ""},
    {7, "grid_z", ""},
    {40, "copy_engines", ""},
    {87, "single_to_double_ratio", ""},
    {120, "clusters", "yes"},
    {cooperative_launch, "cooperative_launch", "yes"},
    {127, "tensor_maps", "yes"},
    {132, "multicast", "yes"},
    {31, "concurrent_kernels", "yes"},
    {90, "compute_preemption", "yes"},
    {17, "time_limit_of_kernels", "yes"},
    {32, "ecc", "yes"},
    {18, "integrated", "yes"},
    {19, "maps_host_memory", "yes"},
    {41, "unified_addressing", "yes"},
    {83, "managed_memory", "yes"},
    {88, "pageable_memory_access", "yes"},
    {86, "native_host_atomics", "yes"},
    {115, "memory_pools", "yes"},
    {78, "stream_priorities", "yes"},
});

}  // namespace

std::span<const PropertyInfo> property_table() { return table; }

std::vector<Property> device_properties(int ordinal) {
  device_info(ordinal);  // throws where there is no such device
  int device = 0;
  check_result(driver().device_get(&device, ordinal), "cuDeviceGet");
  std::vector<Property> out;
  for (const PropertyInfo& row : table) {
    int value = 0;
    if (driver().device_get_attribute(&value, row.attribute, device) == success) out.push_back({&row, value});
  }
  return out;
}

std::vector<int> device_peers(int ordinal) {
  int device = 0;
  check_result(driver().device_get(&device, ordinal), "cuDeviceGet");
  std::vector<int> out;
  for (int k = 0; k < device_count(); ++k) {
    int peer = 0, can = 0;
    if (k == ordinal || driver().device_get(&peer, k) != success) continue;
    if (driver().device_can_access_peer(&can, device, peer) == success && can) out.push_back(k);
  }
  return out;
}

std::string pcie_link(const std::string& pci_bus_id) {
  const auto line = [&](const char* name) {
    std::ifstream in("/sys/bus/pci/devices/" + pci_bus_id + '/' + name);
    std::string text;
    std::getline(in, text);
    return text;
  };
  const std::string speed = line("current_link_speed"), width = line("current_link_width");
  return speed.empty() || width.empty() ? "" : speed + " x" + width;
}

}  // namespace weft::target::cuda
