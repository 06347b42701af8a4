#pragma once
// What some devices can do beside what every Accelerator can: take what another one has without the host.
#include <cstddef>

#include "runtime/device.h"

namespace weft::runtime {

class Peer {
 public:
  virtual ~Peer() = default;
  /// Whether copies from that device pass by the host's memory.
  virtual bool reaches(const Accelerator& device) const = 0;
  /// From another device, behind all work that either was given before and ahead of all that it is given later; nothing
  /// waits. False: there is no such way.
  virtual bool copy_from(Accelerator& device, void* to, const void* from, size_t bytes) = 0;
};

}  // namespace weft::runtime
