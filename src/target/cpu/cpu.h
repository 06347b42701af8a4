#pragma once
// The CPU target. Tests make their own, with another instruction set; everybody else uses target::cpu().
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "target/cpu/codegen/jit.h"
#include "target/cpu/codegen/options.h"
#include "target/target.h"

namespace weft::target {

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
  std::shared_ptr<Jit> jit_;  // lives as long as the code that came from it
  mutable std::mutex mutex_;
  std::unordered_map<Digest, std::shared_ptr<const Executable>> loaded_;  // by digest before `expand`
  std::unordered_map<Digest, KernelFunction> functions_;  // by digest after it: different kernels may expand alike
  CompileStats stats_;
};

}  // namespace weft::target
