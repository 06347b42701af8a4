#pragma once
// The table of hand-written CUDA kernels. A row says which work a kernel takes, its parameters, its source file and its
// launch shape. Kernels are written by hand where generated code cannot express them (warp specialization, TMA, an
// implicit GEMM). Measurement against the libraries decides whether one runs (driver/candidates.h).
//
// To add one: a .cu, a .cpp with its `match`, and a row in registry.cpp (CONTRIBUTING.md).
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/handwritten/parameters.h"
#include "target/machine.h"

namespace weft::target::cuda {

/// Work that a kernel can take.
using Work = std::variant<kernel::DotDesc, kernel::CallDesc>;

/// The size of a launch: blocks, threads of a block, bytes of dynamic shared memory of a block.
struct LaunchShape {
  int64_t grid_x = 1, grid_y = 1;
  int64_t threads = 32;
  int64_t shared_bytes = 0;
};

/// One __global__ function of a source.
struct KernelEntry {
  std::string symbol;
  LaunchShape shape;
};

/// A kernel that fits the work.
struct Match {
  std::string form;                  // what code is compiled for: matches with equal forms share it
  std::string parameters;            // CUDA C++ that precedes the source
  std::vector<KernelEntry> entries;  // in the order in which they are launched
  std::string label;                 // LibraryCall::name()
  bool may_win = true;               // worth compiling and measuring
  int64_t scratch_bytes = 0;         // of memory besides the operands
  /// Launches the kernel: it calls `launch(k, arguments)` for entry k with pointers to its arguments. Operands are
  /// those of LibraryCall::run, aligned to 16 bytes.
  using Launch = std::function<void(size_t entry, void** arguments)>;
  std::function<void(std::span<void* const> operands, void* scratch, const Launch& launch)> run;
};

struct HandwrittenKernel {
  std::string_view name;
  int version;            // increase when the speed or the results change: recorded choices become void
  std::string_view file;  // of src/target/cuda/handwritten
  /// Returns nothing if the kernel does not take the work. Null for entries that other calls launch (linalg_kernels.h).
  std::optional<Match> (*match)(const Work& work, const Machine& machine);
  bool preferred = false;  // used without a measurement: it adds to its result, so a run cannot be repeated
};

/// Returns the table.
std::span<const HandwrittenKernel> handwritten_kernels();
/// Returns the row of a name; throws WeftError if there is none.
const HandwrittenKernel& handwritten_kernel(std::string_view name);

/// Returns NVRTC's input: the parameters, then the file with its includes.
std::string source_of(const HandwrittenKernel& kernel, std::string_view parameters = {});

/// A row that takes the work, with its match.
struct Found {
  const HandwrittenKernel* kernel;
  Match match;
};
/// Returns all rows that take the work and may win, in the table's order.
std::vector<Found> matches(const Work& work, const Machine& machine,
                           std::span<const HandwrittenKernel> table = handwritten_kernels());

}  // namespace weft::target::cuda
