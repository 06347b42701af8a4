#pragma once
// How the arrays of a kernel may be divided among devices, as far as its index maps say it.
#include <cstdint>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// What programs of one digit of their number touch alone.
struct ArrayFactors {
  /// By array and axis: the number of its factor; -1: the axis stays whole on each device.
  std::vector<std::vector<int>> of_axes;
  /// By array and axis: the elements that one value of the factor has; 0 where there is none.
  std::vector<std::vector<int64_t>> blocks;
};

/// Returns the factors of a kernel's arrays of these extents. A factor is a digit of the program's number that divides
/// each array that is written into blocks, along one axis of it; arrays that are read have it where programs read no
/// block but their own. Kernels whose programs wait for each other, update memory or run inline code have none, nor
/// have those with asynchronous copies. `programs` and `bounds`: as Footprints takes them.
ArrayFactors array_factors(const Kernel& kernel, const std::vector<std::vector<int64_t>>& dims, int64_t programs,
                           bool exact, const std::vector<int64_t>& bounds);

}  // namespace weft::kernel
