#pragma once
// A GPU that is none: the compiler makes of a program what it makes for a GPU, and the CPU's code generator runs the
// kernels.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiled_when_run.h"
#include "target/target.h"

namespace weft::test {

/// `base` as a GPU of so many SMs sees it: programs are blocks of threads, `cluster` of which work together.
inline target::Machine as_gpu(target::Machine base, int64_t cluster = 1, int64_t max_cluster = 0) {
  base.simt = true;
  base.processors = target::stated_machine("NVIDIA H200").processors;
  base.warp = 32;
  base.cluster = cluster;
  base.max_cluster = max_cluster > 0 ? max_cluster : cluster;
  return base;
}

/// The CPU, but for what decides on schedules: tiles of 32 lanes, registers for 64 of them.
class SimtTarget : public target::Target {
 public:
  explicit SimtTarget(int64_t cluster = 1, int64_t max_cluster = 0) {
    machine_ = as_gpu({}, cluster, max_cluster);
    machine_.min_lanes = machine_.max_lanes = 32;
    machine_.vector_registers = 64;
  }
  std::string fingerprint() const override { return "simt " + std::to_string(machine_.cluster); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

}  // namespace weft::test
