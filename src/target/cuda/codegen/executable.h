#pragma once
// A kernel's entries on a device: one for a launch of one segment, others for several segments in a launch and for
// buffers that begin anywhere. What is known to be wanted is made in the background, the rest when it is first run.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "target/cuda/codegen/render.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// What an executable asks of the target that makes it.
class KernelCompiler {
 public:
  /// Of the architecture that code is made for.
  virtual Features features() const = 0;
  /// Bytes of shared memory that a block may have.
  virtual int64_t shared_bytes() const = 0;
  /// Compiles a CUDA C++ source. Throws what NVRTC says of it.
  virtual std::vector<char> cubin(const std::string& source) = 0;

 protected:
  ~KernelCompiler() = default;
};

/// Loaded code. Never unloaded before the process ends: kernels may still be on their way.
struct Entry {
  FunctionHandle function = nullptr;
  int threads = 32, programs = 1;
  int64_t shared_bytes = 0;
  int cluster = 1;  // blocks of a program
};

/// Makes a cubin known to the device; `what` is for errors.
ModuleHandle load_module(Context& context, const std::vector<char>& cubin, const std::string& what);
Entry find_entry(Context& context, ModuleHandle module, const Rendered& rendered);
/// Gives a grid of `across` by `down` blocks to the device; `what` is for errors.
void launch(const Context& context, const Entry& entry, int64_t across, int64_t down, void** arguments,
            const std::string& what);

class CudaExecutable final : public Executable, public std::enable_shared_from_this<CudaExecutable> {
 public:
  /// `context`: null where there is no device. `kernel` is not expanded yet.
  CudaExecutable(KernelCompiler& compiler, Context* context, kernel::Kernel kernel, std::string symbol)
      : compiler_(compiler), context_(context), kernel_(std::move(kernel)), symbol_(std::move(symbol)) {}
  void run(std::span<const Segment> segments, double work) const override;
  /// Has the code for launches of so many segments, in aligned buffers, made in the background.
  void begin(size_t segments) const;
  const Entry& entry(const Variant& variant) const;
  Rendered rendered(const Variant& variant) const;
  const std::string& name() const { return kernel_.name; }

 private:
  /// Made once, by the first thread that wants it; others wait.
  struct Slot {
    std::once_flag once;
    std::atomic<bool> made = false;
    Entry entry;
  };
  Slot& slot(const Variant& variant) const;
  void launch(const Entry& entry, int64_t grid, void** arguments) const;
  size_t most_segments() const;
  void run_one(const Segment& segment, bool aligned) const;
  void run_many(std::span<const Segment> segments, bool aligned) const;

  KernelCompiler& compiler_;
  Context* context_;
  kernel::Kernel kernel_;
  std::string symbol_;
  mutable std::mutex mutex_;
  mutable std::map<Variant, Slot> slots_;
};

}  // namespace weft::target::cuda
