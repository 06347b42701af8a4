#pragma once
// A compiled kernel that is interpreted.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/interpret.h"
#include "target/target.h"

namespace weft::compiler::testing {

/// Bytes up to the launch's next buffer: a Program does not say how long its buffers are, but none reaches into
/// another.
inline int64_t room(std::span<void* const> buffers, size_t k) {
  int64_t bytes = int64_t(1) << 22;
  for (void* other : buffers)
    if (other > buffers[k]) bytes = std::min(bytes, static_cast<char*>(other) - static_cast<char*>(buffers[k]));
  return bytes;
}

class InterpretedKernel : public target::Executable {
 public:
  explicit InterpretedKernel(kernel::Kernel k) : kernel_(std::move(k)) {}
  void run(std::span<const target::Segment> segments, double) const override {
    for (const target::Segment& s : segments) {
      std::vector<kernel::HostBuffer> buffers;
      for (size_t k = 0; k < s.buffers.size(); ++k)
        buffers.push_back({s.buffers[k], room(s.buffers, k) / kernel_.params[k].dtype.size()});
      kernel::interpret(kernel_, buffers, s.symbols, s.grid);
    }
  }

 private:
  kernel::Kernel kernel_;
};

}  // namespace weft::compiler::testing
