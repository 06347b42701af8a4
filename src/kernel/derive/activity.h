#pragma once
// Which values of a kernel depend, smoothly, on arrays that are differentiated.
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

struct Activity {
  std::vector<char> values;  // by value
  std::vector<char> refs;    // by buffer
  bool operator()(Value v) const { return v != no_value && values[static_cast<size_t>(v)] != 0; }
  bool holds(Ref ref) const { return refs[static_cast<size_t>(ref)] != 0; }
};

/// Returns what depends on the buffers `seeds` (one entry for each parameter). Floats alone are active.
Activity activity_of(const Kernel& kernel, const std::vector<char>& seeds);

/// Returns the kernel in which reductions and scans of active tiles are sums, maxima and minima alone; others are
/// written as the slices and elementwise steps of their fixed order.
Kernel with_steps(const Kernel& kernel, const Activity& active);

}  // namespace weft::kernel
