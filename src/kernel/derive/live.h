#pragma once
// Removes what nobody reads from a derived kernel: values, what loops carry for themselves alone, stores to buffers
// that are not read, parameters that are not used.
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// Marks by value and by buffer what has an influence on the parameters for which `wanted` is true.
struct Live {
  std::vector<char> values, refs;
};
Live live_of(const Kernel& kernel, const std::vector<char>& wanted);

/// Returns the kernel with what lives alone. `kept` gives for each of its parameters the number in `kernel`.
Kernel without_dead(Kernel kernel, const Live& live, std::vector<size_t>& kept);

}  // namespace weft::kernel
