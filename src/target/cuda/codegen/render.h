#pragma once
// Renders tile kernels as CUDA C++. A program of the grid is run by a fixed number of threads; the elements of a tile
// are distributed over them in chunks that one thread loads at once, and stay in registers. Only reductions, shifts and
// dots move elements between threads, through lanes and shared memory.
#include <string>

#include "kernel/tile.h"
#include "target/machine.h"

namespace weft::target::cuda {

/// Which of a kernel's entries: `aligned` where all buffers begin on 16 bytes.
struct Variant {
  bool aligned = true;
  int segments = 1;  // how many a launch carries at most; 1: buffers and symbols are the arguments themselves
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

/// Of more programs a launch does not begin before the kernel before it has ended, and does not let the next one begin:
/// each block would pay for what only the first ones win.
inline constexpr int64_t most_early_programs = 32768;

/// Instructions of some architectures only.
struct Features {
  bool warpgroups = false;  // wgmma: sm_90a
  bool clusters = false;    // blocks that see each other's shared memory: from sm_90 on
};
inline Features features_of(const Machine& machine) { return {machine.arch == "sm_90a", machine.has_clusters()}; }

struct Rendered {
  std::string source;  // without the prelude
  std::string symbol;  // the entry
  int threads = 32;    // of a block
  int programs = 1;    // that a block runs side by side
  int64_t shared_bytes = 0;
  int blocks = 1;  // that run one program's parallel loop side by side: a cluster
};

/// `kernel` is expanded (kernel/expand/expand.h). Entry arguments: one segment: a pointer for each parameter, an i64
/// for each symbol, the grid (i64). Several: one structure of i64: the number of segments; where each segment's
/// programs begin, and where the last one's end; then for each segment its pointers and symbols.
Rendered render(const kernel::Kernel& kernel, const std::string& symbol, const Variant& variant = {},
                const Features& features = {});

}  // namespace weft::target::cuda
