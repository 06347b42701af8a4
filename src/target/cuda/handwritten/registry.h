#pragma once
// The hand-written CUDA kernels, a row each: which work a kernel takes, what stands in front of its source, and how it
// is launched. Kernels are written by hand where generated code cannot say what they do (warp specialization, TMA, an
// implicit GEMM). Whether one runs is decided by measurement, beside the libraries (driver/candidates.h).
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

/// What a kernel may be asked to do.
using Work = std::variant<kernel::DotDesc, kernel::CallDesc>;

/// Extents of a launch: blocks, threads of a block, bytes of dynamic shared memory of a block.
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
  std::string form;                  // what code is made for: two matches with one form share their code
  std::string parameters;            // CUDA C++ in front of the source
  std::vector<KernelEntry> entries;  // in the order in which they are launched
  std::string label;                 // what LibraryCall::name() says
  bool may_win = true;               // worth compiling and measuring
  int64_t scratch_bytes = 0;         // of memory beside the operands
  /// Calls `launch(k, arguments)` for entry k, with pointers to its arguments. Operands are those of LibraryCall::run,
  /// aligned to 16 bytes.
  using Launch = std::function<void(size_t entry, void** arguments)>;
  std::function<void(std::span<void* const> operands, void* scratch, const Launch& launch)> run;
};

struct HandwrittenKernel {
  std::string_view name;
  int version;  // to be raised where the kernel may win where it lost, or lose where it won: recorded choices go unused
  std::string_view file;  // of src/target/cuda/handwritten
  /// Nothing where the kernel does not take the work. Null: entries that other calls launch (linalg_kernels.h).
  std::optional<Match> (*match)(const Work& work, const Machine& machine);
  bool preferred = false;  // taken without a measurement, because a run adds to its result and cannot be repeated
};

/// The table.
std::span<const HandwrittenKernel> handwritten_kernels();
/// The row of a name; throws WeftError where there is none.
const HandwrittenKernel& handwritten_kernel(std::string_view name);

/// Returns what NVRTC is given: the parameters, then the file with what it includes.
std::string source_of(const HandwrittenKernel& kernel, std::string_view parameters = {});

/// A row that takes the work, and how.
struct Found {
  const HandwrittenKernel* kernel;
  Match match;
};
/// Returns all rows that take the work and may win, in the table's order.
std::vector<Found> matches(const Work& work, const Machine& machine,
                           std::span<const HandwrittenKernel> table = handwritten_kernels());

}  // namespace weft::target::cuda
