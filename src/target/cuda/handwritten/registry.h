#pragma once
// The table of hand-written CUDA kernels. A row says which work a kernel takes, its parameters, its source file and its
// launch shape. Kernels are written by hand where generated code cannot express them (warp specialization, TMA, an
// implicit GEMM). Measurement against the libraries decides whether one runs (driver/candidates.h).
//
// To add one: a .cu, a .cpp with its `match`, and a row in registry.cpp (CONTRIBUTING.md).
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "target/cuda/driver/match.h"

namespace weft::target::cuda {

struct HandwrittenKernel {
  std::string_view name;
  int version;            // increase when the speed or the results change: recorded choices become void
  std::string_view file;  // of src/target/cuda/handwritten
  /// Returns nothing if the kernel does not take the work. Null for entries that other calls launch (linalg_kernels.h).
  std::optional<Match> (*match)(const kernel::CallDesc& work, const Machine& machine);
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
std::vector<Found> matches(const kernel::CallDesc& work, const Machine& machine,
                           std::span<const HandwrittenKernel> table = handwritten_kernels());

}  // namespace weft::target::cuda
