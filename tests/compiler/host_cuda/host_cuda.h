#pragma once
// Sources as they are rendered for a GPU, compiled for this machine's CPU and run there, thread by thread: what only a
// GPU would show otherwise (a lane that reads another's register too early, a wrong share of a tile, a missing barrier)
// shows here. Wants a C++ compiler while the test runs.
#include <memory>
#include <string>
#include <vector>

#include "compiler/simt_target.h"
#include "kernel/expand/expand.h"
#include "target/cuda/codegen/render.h"

namespace weft::test {

/// Compiles as for a GPU. All kernels wait until one of them is run: one run of the compiler takes them together.
class HostCuda final : public SimtTarget {
 public:
  /// `cluster`: blocks of a cluster; rows may have as many as 128 of them, however few rows there are. `lanes`: of a
  /// tile; with 1024 a thread has several that lie side by side. `tensor_cores`: matmuls are theirs.
  explicit HostCuda(int64_t cluster = 1, int64_t lanes = 32, bool tensor_cores = false);
  ~HostCuda() override;
  std::string fingerprint() const override { return "host cuda"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override;
  /// Sorts, searches and scatters of rows run as sequences of kernels of a GPU.
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override;
  int compiled() const;  // runs of the compiler so far

  class Library;

 private:
  std::vector<std::shared_ptr<const target::Executable>> executables(std::span<const kernel::Kernel> kernels) const;
  std::shared_ptr<Library> library_;
};

}  // namespace weft::test
