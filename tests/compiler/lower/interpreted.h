#pragma once
// Compiled kernels that are interpreted.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "target/target.h"

namespace weft::compiler::testing {

/// Bytes up to the launch's next buffer, at most so many: a Program does not say how long its buffers are, but none
/// reaches into another.
inline int64_t room(std::span<void* const> buffers, size_t k, int64_t most) {
  int64_t bytes = most;
  for (void* other : buffers)
    if (other > buffers[k]) bytes = std::min(bytes, static_cast<char*>(other) - static_cast<char*>(buffers[k]));
  return bytes;
}

class InterpretedKernel : public target::Executable {
 public:
  /// `most_bytes`: of a buffer.
  explicit InterpretedKernel(kernel::Kernel k, int64_t most_bytes = int64_t{1} << 22)
      : kernel_(std::move(k)), most_bytes_(most_bytes) {}
  void run(std::span<const target::Segment> segments, double) const override {
    for (const target::Segment& s : segments) {
      std::vector<kernel::HostBuffer> buffers;
      for (size_t k = 0; k < s.buffers.size(); ++k)
        buffers.push_back({s.buffers[k], room(s.buffers, k, most_bytes_) / kernel_.params[k].dtype.size()});
      kernel::interpret(kernel_, buffers, s.symbols, s.grid);
    }
  }

 private:
  kernel::Kernel kernel_;
  int64_t most_bytes_;
};

/// A machine whose kernels are interpreted; routines on whole arrays are the CPU's.
class InterpretedMachine final : public target::Target {
 public:
  /// `most_bytes`: of a buffer, each element of which costs time at every launch.
  explicit InterpretedMachine(target::Machine machine, int64_t most_bytes = int64_t{1} << 22)
      : most_bytes_(most_bytes) {
    machine_ = std::move(machine);
  }
  std::string fingerprint() const override { return "interpreted " + machine_.digest().hex(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels)
      out.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k), most_bytes_));
    return out;
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }

 private:
  int64_t most_bytes_;
};

}  // namespace weft::compiler::testing
