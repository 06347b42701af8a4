#pragma once
// Machine code for kernels of tests, most of which look at a plan and run nothing.
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "target/cpu/cpu.h"
#include "target/target.h"

namespace weft::test {

/// Returns a CPU target that compiles fast, for kernels that run once and have a GPU's tiles, which LLVM takes long
/// for.
inline target::Target& fast_code_generator() {
  static auto& target = *new target::CpuTarget({target::cpu_isa().name, true, false});  // outlives static programs
  return target;
}

/// Kernels of one compilation: machine code of all of them is made when the first of them runs.
class CompiledWhenRun {
 public:
  explicit CompiledWhenRun(std::span<const kernel::Kernel> kernels) : kernels_(kernels.begin(), kernels.end()) {}

  /// Runs programs of kernel number `k`.
  void run(size_t k, std::span<const target::Segment> segments, double work) {
    std::call_once(once_, [&] {
      code_ = fast_code_generator().compile(kernels_);
      kernels_.clear();
    });
    code_[k]->run(segments, work);
  }

 private:
  std::once_flag once_;
  std::vector<kernel::Kernel> kernels_;
  std::vector<std::shared_ptr<const target::Executable>> code_;
};

class ExecutableOfMany final : public target::Executable {
 public:
  ExecutableOfMany(std::shared_ptr<CompiledWhenRun> all, size_t k) : all_(std::move(all)), k_(k) {}
  void run(std::span<const target::Segment> segments, double work) const override { all_->run(k_, segments, work); }

 private:
  std::shared_ptr<CompiledWhenRun> all_;
  size_t k_;
};

/// Returns executables of kernels that the CPU's target compiles when one of them first runs.
inline std::vector<std::shared_ptr<const target::Executable>> compile_when_run(
    std::span<const kernel::Kernel> kernels) {
  const auto all = std::make_shared<CompiledWhenRun>(kernels);
  std::vector<std::shared_ptr<const target::Executable>> each;
  for (size_t k = 0; k < kernels.size(); ++k) each.push_back(std::make_shared<ExecutableOfMany>(all, k));
  return each;
}

}  // namespace weft::test
