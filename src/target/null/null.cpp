// The null target: accepts every kernel and every library descriptor and runs none of them, so that tests see
// what the compiler makes of a graph (launches, library calls, buffers) without its cost.
#include <mutex>
#include <unordered_set>

#include "target/target.h"

namespace weft::target {
namespace {

class NullExecutable final : public Executable {
 public:
  void run(std::span<const Segment>, double) const override {}
};

class NullCall final : public LibraryCall {
 public:
  std::string name() const override { return "null"; }
  void run(std::span<void* const>) const override {}
};

class NullTarget final : public Target {
 public:
  NullTarget() { machine_ = stated_machine("avx512"); }
  std::string fingerprint() const override { return "null"; }

  std::vector<std::shared_ptr<const Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const Executable>> out;
    std::lock_guard lock(mutex_);
    for (const kernel::Kernel& k : kernels) {
      const bool is_new = seen_.insert(kernel::digest(k)).second;
      ++(is_new ? stats_.compiled : stats_.from_memory);
      out.push_back(executable_);
    }
    return out;
  }

  std::shared_ptr<const LibraryCall> library(const kernel::DotDesc& desc) const override {
    if (!libraries_enabled() || desc.pre_activation != kernel::PreActivation::none) return nullptr;
    const auto taken = [](Dtype t) { return t == float32 || t == bfloat16; };
    if (!taken(desc.a) || !taken(desc.b) || !taken(desc.c) || desc.m < 1 || desc.n < 1 || desc.k < 1) return nullptr;
    return call_;
  }

  std::shared_ptr<const LibraryCall> call(const kernel::CallDesc&) const override { return call_; }

  CompileStats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<Digest> seen_;
  CompileStats stats_;
  std::shared_ptr<const Executable> executable_ = std::make_shared<NullExecutable>();
  std::shared_ptr<const LibraryCall> call_ = std::make_shared<NullCall>();
};

}  // namespace

Target& null() {
  static NullTarget* target = new NullTarget;  // compiled programs may outlive static objects
  return *target;
}

}  // namespace weft::target
