#pragma once
// Calls (CallDesc) as sequences of tile kernels, for targets that have no routine of their own.
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/describe/desc.h"
#include "kernel/tile.h"

namespace weft::kernel {

struct Routine {
  struct Launch {
    size_t kernel;
    std::vector<int>
        buffers;  // for each parameter: an operand of the call (inputs, then outputs), then the scratch buffers
    std::vector<int64_t> symbols;
    int64_t grid;
  };
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;  // in order
  std::vector<int64_t> scratch;  // bytes of each buffer beside the operands
};

/// Programs work on tiles of `lanes` elements (a power of two). Nothing where the call has no such form.
std::optional<Routine> routine_for(const CallDesc& desc, int64_t lanes);

Routine sort_routine(const CallDesc& desc, int64_t lanes);
Routine search_routine(const CallDesc& desc, int64_t lanes);
/// scatter_rows: numbers [n] of integers, rows [n, width] of floats; result [count, width], to which each row is added
/// where its number says (negative: from the end; outside: nowhere). The compiler asks for it in place of a scatter; it
/// is no call of a graph.
Routine scatter_routine(const CallDesc& desc, int64_t lanes);

}  // namespace weft::kernel
