#pragma once
// Scratch memory of library calls. Work on one stream is in order, so all calls of a stream may use the same bytes.
#include <cstddef>
#include <memory>

#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

class Workspace {
 public:
  Workspace(Context& context, size_t bytes);  // throws where the device has no memory left
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

/// At least `bytes` (aligned to 256) for work on the context's stream: the largest that somebody holds, or a new one.
/// The address stays while it is held.
std::shared_ptr<const Workspace> shared_workspace(Context& context, size_t bytes);

}  // namespace weft::target::cuda
