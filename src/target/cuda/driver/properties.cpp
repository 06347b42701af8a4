#include "target/cuda/driver/properties.h"

#include <array>
#include <fstream>

#include "base/error.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {
namespace {

constexpr int number(Reported attribute) { return static_cast<int>(attribute); }

constexpr auto table = std::to_array<PropertyInfo>({
    {compute_capability_major, "capability_major", ""},
    {compute_capability_minor, "capability_minor", ""},
    {multiprocessor_count, "sms", ""},
    {clock_rate_khz, "clock", "kHz"},
    {memory_clock_rate_khz, "memory_clock", "kHz"},
    {global_memory_bus_width, "memory_bus", "bits"},
    {l2_cache_size, "l2", "bytes"},
    {number(Reported::max_persisting_l2), "most_persisting_l2", "bytes"},
    {number(Reported::constant_memory_size), "constant_memory", "bytes"},
    {max_shared_memory_per_block, "shared_per_block", "bytes"},
    {max_shared_memory_per_block_optin, "shared_per_block_opt_in", "bytes"},
    {max_shared_memory_per_multiprocessor, "shared_per_sm", "bytes"},
    {reserved_shared_memory_per_block, "shared_reserved_per_block", "bytes"},
    {number(Reported::max_registers_per_block), "registers_per_block", ""},
    {max_registers_per_multiprocessor, "registers_per_sm", ""},
    {warp_size, "warp", ""},
    {max_threads_per_multiprocessor, "threads_per_sm", ""},
    {number(Reported::max_blocks_per_sm), "blocks_per_sm", ""},
    {max_threads_per_block, "threads_per_block", ""},
    {number(Reported::max_block_x), "block_x", ""},
    {number(Reported::max_block_y), "block_y", ""},
    {number(Reported::max_block_z), "block_z", ""},
    {number(Reported::max_grid_x), "grid_x", ""},
    {number(Reported::max_grid_y), "grid_y", ""},
    {number(Reported::max_grid_z), "grid_z", ""},
    {number(Reported::copy_engines), "copy_engines", ""},
    {number(Reported::single_to_double_ratio), "single_to_double_ratio", ""},
    {number(Reported::cluster_launch), "clusters", "yes"},
    {cooperative_launch, "cooperative_launch", "yes"},
    {number(Reported::tensor_map_access), "tensor_maps", "yes"},
    {number(Reported::multicast), "multicast", "yes"},
    {number(Reported::concurrent_kernels), "concurrent_kernels", "yes"},
    {number(Reported::compute_preemption), "compute_preemption", "yes"},
    {number(Reported::kernel_time_limit), "time_limit_of_kernels", "yes"},
    {number(Reported::ecc_enabled), "ecc", "yes"},
    {number(Reported::integrated), "integrated", "yes"},
    {number(Reported::can_map_host_memory), "maps_host_memory", "yes"},
    {number(Reported::unified_addressing), "unified_addressing", "yes"},
    {number(Reported::managed_memory), "managed_memory", "yes"},
    {number(Reported::pageable_memory_access), "pageable_memory_access", "yes"},
    {number(Reported::native_host_atomics), "native_host_atomics", "yes"},
    {number(Reported::memory_pools), "memory_pools", "yes"},
    {number(Reported::stream_priorities), "stream_priorities", "yes"},
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
