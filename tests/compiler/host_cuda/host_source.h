#pragma once
// CUDA C++ compiled for this machine's CPU, by the compiler that is installed where the tests run.
#include <string>
#include <string_view>
#include <vector>

#include "target/cuda/handwritten/registry.h"

namespace weft::test {

/// The C++ compiler of this machine, or "".
const std::string& host_compiler();

/// The text without the definitions that are a GPU's own (inline assembly, addresses of shared memory): what kernels
/// need of them is in the shim.
std::string without_instructions(std::string_view text);

/// Compiles a source after the shim into FILE.so, and returns its handle.
void* compile_for_host(const std::string& source, const std::string& file);

/// A hand-written kernel, run by the CPU thread by thread.
class HostHandwritten {
 public:
  HostHandwritten(const target::cuda::HandwrittenKernel& kernel, const target::cuda::Match& match);
  /// Runs on operands in the host's memory.
  void run(std::span<void* const> operands) const;

 private:
  using Entry = void (*)(void** arguments, int64_t grid);
  target::cuda::Match match_;
  std::vector<Entry> entries_;
};

}  // namespace weft::test
