#pragma once
// The interface of a device target: it compiles tile kernels, and answers descriptors with library calls. A target
// knows tile IR and descriptors, never the graph.
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "kernel/describe/attention_desc.h"
#include "kernel/describe/desc.h"
#include "kernel/tile.h"
#include "runtime/device.h"
#include "target/machine.h"

namespace weft::target {

/// One launch of a kernel may cover several segments: the same code with other buffers, symbols and grids (an optimizer
/// step over all parameters is one launch). The programs of all segments are independent.
struct Segment {
  std::span<void* const> buffers;    // one for each kernel parameter
  std::span<const int64_t> symbols;  // one for each kernel symbol
  int64_t grid;                      // number of programs
};

/// A compiled kernel: immutable, callable from any thread.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs all programs of all segments and returns when they are done. `work` estimates the launch's basic operations
  /// plus bytes: a small launch stays on the calling thread. Results do not depend on the number of threads.
  virtual void run(std::span<const Segment> segments, double work) const = 0;
};

/// A library call or routine whose primitive and workspace are prepared. Several threads may run it at once.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  virtual std::string name() const = 0;  // "onednn brg:avx512_core"
  /// Runs on `operands`. For a DotDesc: A, B, [bias], [residual], [sum], [pre-activation], [scales], C; for a CallDesc:
  /// its inputs, then its outputs; for an AttentionDesc: as it says.
  virtual void run(std::span<void* const> operands) const = 0;
  /// The same for dynamic lengths; of libraries there are none.
  virtual void run_with(std::span<void* const> operands, std::span<const int64_t>) const { run(operands); }
  /// Starts preparing what a run needs (machine code, plans) in the background. The compiler calls it once, when the
  /// steps of a program are known; a run prepares what is still missing.
  virtual void begin() const {}
  /// Waits until the call is prepared. Returns false if the library declines it after all; the target then answers the
  /// same descriptor with null.
  virtual bool ready() const { return true; }
  /// Returns whether `run` only launches work on the device, so that it can be captured into a graph.
  virtual bool recordable() const { return true; }
};

struct CompileStats {
  int64_t compiled = 0;     // kernels that went through the code generator
  int64_t from_disk = 0;    // objects found in the cache on disk
  int64_t from_memory = 0;  // already loaded in this process
};

class Target {
 public:
  virtual ~Target() = default;
  /// Returns the device whose memory its kernels and calls use; null: the host's. On a device `run` returns before the
  /// work is done.
  virtual runtime::Accelerator* device() { return nullptr; }
  /// Returns the machine that programs are scheduled for.
  const Machine& machine() const { return machine_; }
  /// Returns a text of everything except the kernel that generated code depends on: code generator version, ISA, vector
  /// width, compiler version.
  virtual std::string fingerprint() const = 0;
  /// Returns the digest of the fingerprint, the machine and the device, which do not change once it is constructed.
  const Digest& digest() {
    std::call_once(digested_, [&] {
      const std::string name = device() ? device()->name() : "";  // equal devices have equal fingerprints
      digest_ = Hasher().text(fingerprint()).digest(machine_.digest()).text(name).finish();
    });
    return digest_;
  }
  /// Compiles kernels and returns one executable for each, in order. Each kernel (by digest) is compiled once in a
  /// process, and once in the life of a cache folder.
  virtual std::vector<std::shared_ptr<const Executable>> compile(std::span<const kernel::Kernel> kernels) = 0;
  /// Compiles kernels in the background and returns at once. `segments[k]` lists the segment counts of kernel k's
  /// launches. The first run of an executable waits for its code and throws what its compilation threw.
  virtual std::vector<std::shared_ptr<const Executable>> begin(std::span<const kernel::Kernel> kernels,
                                                               std::span<const std::vector<size_t>> segments) {
    static_cast<void>(segments);
    return compile(kernels);
  }
  /// Returns why the code of a kernel is likely to be slow (it spills registers, its products wait for each other); ""
  /// where there is no such reason, or none is known. May compile the kernel once more.
  virtual std::string objection(const kernel::Kernel&) { return ""; }
  // These three queries neither compile nor wait, so that fusion may ask what a library supports. LibraryCall::begin
  // starts the preparation of a call.

  /// Returns a library call for a matmul, or null if no library supports it or generated code is preferred.
  virtual std::shared_ptr<const LibraryCall> library(const kernel::DotDesc& desc) const = 0;
  /// Returns a library call for attention, or null on targets whose attention is generated code.
  virtual std::shared_ptr<const LibraryCall> attention(const kernel::AttentionDesc&) const { return nullptr; }
  /// Returns the routine that a descriptor names, or null if this target has none for these extents and dtypes.
  virtual std::shared_ptr<const LibraryCall> call(const kernel::CallDesc&) const { return nullptr; }
  virtual CompileStats stats() const = 0;

 protected:
  Machine machine_;  // filled in by the constructor

 private:
  std::once_flag digested_;
  Digest digest_;
};

/// Return the CPU target of this process, made on first use, and a target that compiles and runs nothing, for tests of
/// the compiler.
Target& cpu();
Target& null();
/// Returns a CUDA device of this machine. Throws std::runtime_error "[cuda] …" if there is no such device or driver.
Target& gpu(int ordinal = 0);
int gpu_count();  // 0 without a driver

/// Switches library calls on or off (`weft train --no-libraries`, tests). When they are off, everything runs through
/// generated kernels. They are on by default if built in.
void set_libraries_enabled(bool on);
bool libraries_enabled();

}  // namespace weft::target
