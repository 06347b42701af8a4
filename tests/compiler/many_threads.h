#pragma once
// A device of many threads that is none: the compiler makes of a program what it makes for a GPU, and the CPU's code
// generator runs the kernels.
#include <memory>
#include <string>
#include <vector>

#include "target/cluster.h"

namespace weft::test {

/// The CPU, but for what decides on schedules.
class ManyThreads : public target::Target {
 public:
  bool many_threads() const override { return true; }
  std::string fingerprint() const override { return "many threads"; }
  int64_t lanes(int64_t) const override { return 32; }
  int64_t vector_registers() const override { return 64; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::cpu().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) override {
    return target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

/// And whose blocks work together.
class Together final : public ManyThreads, public target::Clusters {
 public:
  explicit Together(int64_t blocks) : blocks_(blocks) {}
  std::string fingerprint() const override { return "together " + std::to_string(blocks_); }
  int64_t blocks_together() const override { return blocks_; }

 private:
  int64_t blocks_;
};

}  // namespace weft::test
