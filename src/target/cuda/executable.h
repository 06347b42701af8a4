#pragma once
// A kernel's entries on a device. The usual one is made when the kernel is compiled; others (several segments in a launch, buffers that begin anywhere) when they
// are first wanted.
#include <map>
#include <memory>
#include <mutex>

#include "target/cuda/context.h"
#include "target/cuda/render.h"
#include "target/target.h"

namespace weft::target::cuda {

class CudaTarget;

/// Loaded code. Never unloaded before the process ends: kernels may still be on their way.
struct Entry {
  FunctionHandle function = nullptr;
  int threads = 32, programs = 1;
  int64_t shared_bytes = 0;
};

/// Makes a cubin known to the device; `what` is for errors.
ModuleHandle load_module(Context& context, const std::vector<char>& cubin, const std::string& what);
Entry find_entry(Context& context, ModuleHandle module, const Rendered& rendered);

class CudaExecutable final : public Executable {
 public:
  /// `context`: null where there is no device.
  CudaExecutable(CudaTarget& target, Context* context, kernel::Kernel kernel, std::string symbol)
      : target_(target), context_(context), kernel_(std::move(kernel)), symbol_(std::move(symbol)) {}
  void run(std::span<const Segment> segments, double work) const override;
  void add(const Variant& variant, const Entry& entry) const;

 private:
  const Entry& entry(const Variant& variant) const;
  void launch(const Entry& entry, int64_t grid, void** arguments) const;
  void run_one(const Segment& segment, bool aligned) const;
  void run_many(std::span<const Segment> segments, bool aligned) const;

  CudaTarget& target_;
  Context* context_;
  kernel::Kernel kernel_;  // expanded
  std::string symbol_;
  mutable std::mutex mutex_;
  mutable std::map<Variant, Entry> entries_;
};

}  // namespace weft::target::cuda
