#pragma once
// A kernel's entries on a device: one for launches of one segment, others for launches of several segments and for
// unaligned buffers. Entries that are known to be needed are compiled in the background, others at their first run.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "kernel/rules.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/driver/context.h"
#include "target/foreign_launch.h"
#include "target/target.h"

namespace weft::target::cuda {

/// What an executable needs of the target that makes it.
class KernelCompiler {
 public:
  /// Returns the features of the architecture that code is compiled for.
  virtual Features features() const = 0;
  /// Returns the shared memory that a block may have, in bytes.
  virtual int64_t shared_bytes() const = 0;
  /// Compiles a CUDA C++ source. Throws with NVRTC's messages.
  virtual std::vector<char> cubin(const std::string& source) = 0;

 protected:
  ~KernelCompiler() = default;
};

/// A loaded kernel function. It is never unloaded before the process ends, because launches may still be queued.
struct Entry {
  FunctionHandle function = nullptr;
  int threads = 32, programs = 1;
  int64_t shared_bytes = 0;
  int cluster = 1;   // blocks that run one program
  int resident = 0;  // blocks of an SM that run all programs in turns; 0: each program has a block
  std::vector<TensorCopy> maps = {};
  bool ordered = false, meets = false;  // programs wait for earlier ones, or for all
  int64_t alone_bytes = 0;              // shared memory with which a block has its SM to itself; 0: it does not matter
  bool counts() const { return ordered || meets; }
};

/// Loads a cubin on the device; `what` names it in errors.
ModuleHandle load_module(Context& context, const std::vector<char>& cubin, const std::string& what);
Entry find_entry(Context& context, ModuleHandle module, const Rendered& rendered);
/// Returns the shared memory that a launch of so many blocks asks for on a device of so many SMs. Where blocks start
/// while the kernel before runs, and are no more than there are SMs, they get an SM each: two on one SM would take
/// longer than all others (docs/notes/gpu-matmul.md).
int64_t shared_bytes_of(const Entry& entry, int64_t blocks, bool early_start, int64_t processors);
/// Launches a grid of `across` by `down` blocks; `what` names the kernel in errors.
void launch(const Context& context, const Entry& entry, int64_t across, int64_t down, void** arguments,
            const std::string& what);

class CudaExecutable final : public Executable,
                             public ForeignLaunch,
                             public std::enable_shared_from_this<CudaExecutable> {
 public:
  /// `context`: null without a device. `kernel`: not yet expanded.
  CudaExecutable(KernelCompiler& compiler, Context* context, kernel::Kernel kernel, std::string symbol)
      : compiler_(compiler), context_(context), kernel_(std::move(kernel)), symbol_(std::move(symbol)) {}
  void run(std::span<const Segment> segments, double work) const override;
  void run_on(void* stream, const Segment& segment) const override;
  /// Starts compiling the entry for launches of `segments` segments with aligned buffers, in the background.
  void begin(size_t segments) const;
  const Entry& entry(const Variant& variant) const;
  Rendered rendered(const Variant& variant) const;
  const std::string& name() const { return kernel_.name; }
  /// Returns the machine code. Throws std::invalid_argument with NVRTC's messages where a user's code does not compile.
  std::vector<char> cubin(const Rendered& code) const;
  bool has_code() const;

 private:
  /// An entry, made by the first thread that needs it while others wait.
  struct Slot {
    std::once_flag once;
    std::atomic<bool> made = false;
    Entry entry;
  };
  Slot& slot(const Variant& variant) const;
  void launch(const Entry& entry, int64_t grid, void** arguments) const;
  void launch_on(StreamHandle stream, const Entry& entry, int64_t grid, void** arguments, bool early) const;
  size_t most_segments() const;
  bool launches_alone() const {
    return kernel_.ordered || kernel_.launch.specialize > 0 || kernel_.launch.persistent > 0 ||
           kernel::programs_meet(kernel_);
  }
  void run_one(const Segment& segment, bool aligned) const;
  void run_many(std::span<const Segment> segments, bool aligned) const;
  int overlapping(StreamHandle stream) const;
  void check_resident(const Entry& entry, int64_t blocks) const;

  KernelCompiler& compiler_;
  Context* context_;
  kernel::Kernel kernel_;
  std::string symbol_;
  mutable std::mutex mutex_;
  mutable std::map<Variant, Slot> slots_;
  mutable std::map<StreamHandle, int> streams_;  // into which kernels were launched whose programs wait for each other
};

}  // namespace weft::target::cuda
