#pragma once
// The CPU target. target::cpu() returns the process's own; tests create others, with other instruction sets.
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "target/cpu/codegen/jit.h"
#include "target/cpu/codegen/options.h"
#include "target/target.h"

namespace weft::target {

/// Returns the kernel that code is made of: expanded, and legalized where its tiles have any size.
kernel::Kernel prepared(const kernel::Kernel& kernel, const Isa& isa);

class CpuTarget final : public Target {
 public:
  explicit CpuTarget(const CpuOptions& options = {});
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<std::shared_ptr<const Executable>> compile(std::span<const kernel::Kernel> kernels) override;
  std::shared_ptr<const LibraryCall> library(const kernel::DotDesc& desc) const override;
  std::shared_ptr<const LibraryCall> call(const kernel::CallDesc& desc) const override;
  CompileStats stats() const override;
  const Isa& isa() const { return isa_; }

 private:
  struct Job;
  void build(std::vector<Job>& jobs);
  CpuOptions options_;
  Isa isa_;
  std::string fingerprint_;
  std::shared_ptr<Jit> jit_;  // outlives the code that it loaded
  mutable std::mutex mutex_;
  std::unordered_map<Digest, std::shared_ptr<const Executable>> loaded_;  // by digest of the kernel before `expand`
  // By digest after `expand`: different kernels may expand alike.
  std::unordered_map<Digest, KernelFunction> functions_;
  CompileStats stats_;
};

}  // namespace weft::target
