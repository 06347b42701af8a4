#pragma once
// The CUDA target: tile kernels rendered to CUDA C++, compiled by NVRTC and launched on the device's stream. Without a
// device (`offline`) it renders and compiles but runs nothing, so that every kernel of a program can be checked on any
// machine with NVRTC.
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "target/cuda/codegen/executable.h"
#include "target/cuda/driver/memory.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/target.h"

namespace weft::target::cuda {

class CallLibraries;
class CudnnAttention;
class HandwrittenKernels;

class CudaTarget final : public Target, public KernelCompiler {
 public:
  /// A target for a device.
  explicit CudaTarget(Context& context, bool disk_cache = true)
      : CudaTarget(&context, machine_of(context.info()), disk_cache) {}
  /// A target that only compiles, for the given machine.
  explicit CudaTarget(const Machine& machine, bool disk_cache = true) : CudaTarget(nullptr, machine, disk_cache) {}
  ~CudaTarget() override;

  runtime::Accelerator* device() override { return memory_.get(); }
  std::string fingerprint() const override { return fingerprint_; }
  int64_t shared_bytes() const override { return machine().shared_bytes; }
  Features features() const override;
  std::vector<std::shared_ptr<const Executable>> compile(std::span<const kernel::Kernel> kernels) override;
  std::vector<std::shared_ptr<const Executable>> begin(std::span<const kernel::Kernel> kernels,
                                                       std::span<const std::vector<size_t>> segments) override;
  std::shared_ptr<const LibraryCall> library(const kernel::DotDesc& desc) const override;
  std::shared_ptr<const LibraryCall> attention(const kernel::AttentionDesc& desc) const override;
  std::shared_ptr<const LibraryCall> call(const kernel::CallDesc& desc) const override;
  std::string objection(const kernel::Kernel& kernel) override;
  CompileStats stats() const override;
  /// Returns what ptxas reported of every kernel that this object compiled; cached kernels are not among them.
  std::vector<KernelUsage> usage() const;

 private:
  /// Attention by a library, and what was made of it: a choice, the call itself, or null once it has declined.
  struct LibraryAttention {
    std::shared_ptr<const CudnnAttention> library;
    std::shared_ptr<const LibraryCall> call;
  };

  CudaTarget(Context* context, Machine machine, bool disk_cache);
  std::vector<char> cubin(const std::string& source) override;
  std::shared_ptr<CudaExecutable> executable(const kernel::Kernel& kernel, bool* fresh);
  void only_compile(std::span<const std::shared_ptr<CudaExecutable>> kernels);

  Context* context_;
  std::string fingerprint_;
  bool disk_cache_;
  std::unique_ptr<CudaMemory> memory_;
  mutable std::mutex mutex_;
  mutable std::mutex dots_mutex_;                                       // held while cuBLASLt is asked
  mutable std::mutex attention_mutex_;                                  // held while kernels of attention are traced
  std::unordered_map<Digest, std::shared_ptr<CudaExecutable>> loaded_;  // by digest before `expand`
  mutable std::unordered_map<Digest, LibraryAttention> attention_;
  mutable std::unordered_map<Digest, std::shared_ptr<const LibraryCall>> dots_;  // null: declined
  std::unique_ptr<HandwrittenKernels> handwritten_;                              // null without a device
  std::unique_ptr<CallLibraries> calls_;
  CompileStats stats_;
  std::vector<KernelUsage> usage_;
};

}  // namespace weft::target::cuda
