#pragma once
// What the driver says of a device: everything that limits kernels, and what it can do.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda {

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
