#pragma once
// Rewrites a kernel on tiles of any size into one whose tiles fit the registers of a processor (kernel::is_basic):
// loops over chunks of lanes take the place of tiles, and local buffers that of values which several loops read.
#include "kernel/tile.h"

namespace weft::kernel {

/// The vector registers of a processor.
struct VectorRegisters {
  int64_t bytes = 32;
  int count = 16;
};

/// Returns the rewritten kernel. It gives the same bits.
Kernel legalize(const Kernel& kernel, const VectorRegisters& registers);

}  // namespace weft::kernel
