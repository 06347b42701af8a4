#pragma once
// An interface of devices that can copy from another device without the host.
#include <cstddef>

#include "runtime/device.h"

namespace weft::runtime {

class Peer {
 public:
  virtual ~Peer() = default;
  /// Returns whether copies from that device bypass host memory.
  virtual bool reaches(const Accelerator& device) const = 0;
  /// Copies from another device, after all earlier work of both and before all later work; the host does not wait.
  /// Returns false if there is no such path.
  virtual bool copy_from(Accelerator& device, void* to, const void* from, size_t bytes) = 0;
};

}  // namespace weft::runtime
