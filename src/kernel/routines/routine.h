#pragma once
// Implements calls (CallDesc) as sequences of tile kernels, for targets without a routine of their own.
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/describe/desc.h"
#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::kernel {

struct Routine {
  struct Launch {
    size_t kernel;
    std::vector<int>
        buffers;  // for each parameter: an operand of the call (inputs, then outputs), then the scratch buffers
    std::vector<int64_t> symbols;
    int64_t grid;
    // Of kernels with run-time lengths: which of the call's lengths each symbol is, in place of `symbols`, and the
    // number of programs as an expression of them.
    std::vector<size_t> lengths = {};
    Length count = {};
  };
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;  // in order
  std::vector<int64_t> scratch;  // bytes of each buffer besides the operands
};

/// Returns the routine, or nothing if the call has no such form. Programs work on tiles of `lanes` elements (a power of
/// two).
std::optional<Routine> routine_for(const CallDesc& desc, int64_t lanes);

Routine sort_routine(const CallDesc& desc, int64_t lanes);
Routine search_routine(const CallDesc& desc, int64_t lanes);
/// Returns the routine of scatter_rows. Inputs: ids [n] (integers) and rows [n, width] (floats). Result [count, width]:
/// each row is added to the row that its id names (negative ids count from the end, ids outside are dropped). The
/// compiler uses it in place of a scatter whose order is free; it is no call of a graph.
Routine scatter_routine(const CallDesc& desc, int64_t lanes);
/// Returns the dtype of the keys by which ids of so many rows are sorted: it also has `rows`, for ids outside.
Dtype scatter_key(int64_t rows);

}  // namespace weft::kernel
