#pragma once
// Renders tile kernels as CUDA C++. A fixed number of threads runs one program of the grid. The elements of a tile are
// distributed over them in chunks that one thread loads at once, and stay in registers. Only reductions, shifts,
// transposes, dots and the like move elements between threads, through lanes and shared memory.
#include <string>
#include <vector>

#include "kernel/expand/expand.h"
#include "kernel/tile.h"
#include "target/machine.h"

namespace weft::target::cuda {

/// An entry of a kernel. `aligned`: all buffers begin at multiples of 16 bytes.
struct Variant {
  bool aligned = true;
  int segments = 1;  // of a launch, at most; with 1, buffers and symbols are the arguments themselves
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

/// Larger launches do not use programmatic dependent launch, neither at their begin nor at their end: every block would
/// pay for it, and only the first ones gain.
inline constexpr int64_t most_early_programs = 32768;

/// Instructions that only some architectures have.
struct Features {
  bool warpgroups = false;  // wgmma: sm_90a
  bool clusters = false;    // with distributed shared memory: sm_90 and later
  bool float8 = false;      // products of 8-bit floats by warps: sm_89 and later
};
inline Features features_of(const Machine& machine) {
  return {machine.arch == "sm_90a", machine.has_clusters(), machine.tensor_core_bytes(float8_e4m3) > 0};
}

/// Where an axis of a matrix ends, behind which all is zero: at a number, or at a symbol of the kernel. Neither: no box
/// passes its end.
struct AxisEnd {
  int64_t number = 0;
  int symbol = -1;
  bool exists() const { return number > 0 || symbol >= 0; }
  friend bool operator==(const AxisEnd&, const AxisEnd&) = default;
};

/// A matrix that TMA copies boxes of: `pitch` elements from line to line of a parameter, boxes of `lines` times
/// `across` elements (at most 128 bytes, swizzled). It is an argument of its own, behind the grid.
struct TensorCopy {
  int param = 0;
  Dtype dtype;
  int64_t pitch = 0, lines = 0, across = 0;
  AxisEnd end, width;  // of lines, and of the elements of a line
  friend bool operator==(const TensorCopy&, const TensorCopy&) = default;
};

struct Rendered {
  std::string source;  // without the prelude
  std::string symbol;  // the entry
  int threads = 32;    // of a block
  int programs = 1;    // programs that a block runs at once
  int64_t shared_bytes = 0;
  int blocks = 1;    // of the cluster that runs a program
  int resident = 0;  // blocks of an SM that run all programs in turns; 0: each program has a block
  std::vector<TensorCopy> maps = {};
  bool ordered = false;  // programs draw their numbers
  bool meets = false;    // programs wait for all others: they must all fit the device at once
  bool spreads = false;  // programs multiply by fma: where each can have an SM to itself, it had better
};

/// Launches of a kernel whose programs wait for each other that may be under way at a time.
inline constexpr int most_overlapping = 256;

/// Operators that are rendered beside the basic ones.
inline constexpr kernel::Expansion operators{.special_functions = true, .philox = true};

/// Renders a kernel that is already expanded (kernel/expand/expand.h). Arguments of the entry with one segment: a
/// pointer per parameter, an i64 per symbol, the grid (i64), a TensorMap for each of `maps`, and where programs wait
/// for each other an i32 below most_overlapping: launches with equal ones run one after the other. With several: one
/// structure of i64 with the number of segments, the first program of each and the end of the last, then the pointers
/// and symbols of each.
Rendered render(const kernel::Kernel& kernel, const std::string& symbol, const Variant& variant = {},
                const Features& features = {});

}  // namespace weft::target::cuda
