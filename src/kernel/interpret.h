#pragma once
// Runs a kernel instruction by instruction on host memory. It is the reference for generated code. It reports accesses
// outside a buffer, two programs that write one element without atomics, a program that reads what another one of the
// launch writes, and overlapping buffers. Scratch is poisoned (NaN, or a large odd integer). Throws std::runtime_error
// that names kernel, instruction and program.
#include "kernel/tile.h"

namespace weft::kernel {

struct HostBuffer {
  void* data;
  int64_t elements;
};

/// Runs a kernel, before or after `expand`. Before it, transcendental operators are those of the C library. Each
/// element of the parameters `results` must be written.
void interpret(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
               int64_t grid, std::span<const Ref> results = {});

}  // namespace weft::kernel
