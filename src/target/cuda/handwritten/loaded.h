#pragma once
// Hand-written kernels on a device. Each form is compiled once, in the background, and offered as a candidate for
// calls.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "target/cuda/codegen/executable.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/handwritten/registry.h"

namespace weft::target::cuda {

/// Compiles CUDA C++ to machine code; throws with NVRTC's messages.
using CompileSource = std::function<std::vector<char>(const std::string& source)>;

/// The code of a form, compiled and loaded by the first thread that needs it while others wait.
class LoadedKernel : public std::enable_shared_from_this<LoadedKernel> {
 public:
  LoadedKernel(Context& context, CompileSource compile, std::string source, std::vector<KernelEntry> entries)
      : context_(context), compile_(std::move(compile)), source_(std::move(source)), entries_(std::move(entries)) {}
  const Entry& entry(size_t index) const;
  /// Starts compiling in the background, once.
  void begin() const;
  Context& context() const { return context_; }

 private:
  Context& context_;
  CompileSource compile_;
  std::string source_;
  std::vector<KernelEntry> entries_;
  mutable std::atomic<bool> begun_ = false;
  mutable std::once_flag once_;
  mutable std::vector<Entry> loaded_;
};

/// Returns the match as a call. Throws if the device has no memory for its scratch.
std::shared_ptr<const LibraryCall> handwritten_call(std::shared_ptr<const LoadedKernel> kernel, const Match& match);

/// All hand-written kernels of a device. May be used from several threads.
class HandwrittenKernels {
 public:
  HandwrittenKernels(Context& context, CompileSource compile, const Machine& machine,
                     std::span<const HandwrittenKernel> table = handwritten_kernels())
      : context_(context), compile_(std::move(compile)), machine_(machine), table_(table) {}
  /// Returns a candidate for each row that takes the work and may win, in the table's order. `preferred`: only the rows
  /// that are used without a measurement; otherwise only the others.
  std::vector<Candidate> candidates(const kernel::CallDesc& work, bool preferred = false) const;
  /// Returns the compiler for this device.
  const CompileSource& compiler() const { return compile_; }

 private:
  std::shared_ptr<const LoadedKernel> loaded(const HandwrittenKernel& kernel, const Match& match) const;

  Context& context_;
  CompileSource compile_;
  const Machine& machine_;
  std::span<const HandwrittenKernel> table_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>> loaded_;  // by form
};

}  // namespace weft::target::cuda
