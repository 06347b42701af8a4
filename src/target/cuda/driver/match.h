#pragma once
// What a hand-written kernel says of work that it takes: its parameters, its entries, and how it is launched.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/parameters.h"
#include "target/machine.h"

namespace weft::target::cuda {

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

}  // namespace weft::target::cuda
