#pragma once
// Scratch memory of library calls. A stream's work runs in order, so all its calls share the same bytes.
#include <cstddef>
#include <memory>

#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

class Workspace {
 public:
  Workspace(Context& context, size_t bytes);  // throws if the device is out of memory
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  DevicePtr address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  Context& context_;
  size_t bytes_;
  DevicePtr address_ = 0;
};

/// Returns at least `bytes` (aligned to 256) for work on the context's stream: the largest workspace that is in use, or
/// a new one. The address is valid while the pointer is held.
std::shared_ptr<const Workspace> shared_workspace(Context& context, size_t bytes);

}  // namespace weft::target::cuda
