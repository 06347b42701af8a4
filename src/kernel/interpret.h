#pragma once
// Runs a kernel instruction by instruction on host memory: the oracle that generated code is held against. Memory
// accesses are checked (outside a buffer; two programs writing one element without atomics; one program reading what
// another of the launch writes; buffers that overlap), and scratch is poisoned (NaN, or a large odd integer). Throws
// std::runtime_error naming kernel, instruction and program.
#include "kernel/tile.h"

namespace weft::kernel {

struct HostBuffer {
  void* data;
  int64_t elements;
};

/// Works on kernels before and after `expand`; before it, transcendental operators are those of the C library.
void interpret(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
               int64_t grid);

}  // namespace weft::kernel
