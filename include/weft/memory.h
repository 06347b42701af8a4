#pragma once
#include <cstddef>

#include "weft/api.h"

/// Statistics and limits, in bytes, of the default device's memory: the host's, or a GPU's where set_default_device
/// chose one. Buffers are rounded up to size classes, so figures may exceed the sum of the arrays' sizes.
namespace weft {

/// Returns the bytes in buffers that arrays and programs hold now.
WEFT_API size_t get_active_memory();
/// Returns the largest value of get_active_memory since the process began, or since reset_peak_memory.
WEFT_API size_t get_peak_memory();
/// Sets the peak to what is active now.
WEFT_API void reset_peak_memory();
/// Returns the bytes of freed buffers that are kept for reuse.
WEFT_API size_t get_cache_memory();
/// Sets the most bytes that buffers may take, and returns the previous limit. An allocation beyond it throws
/// std::runtime_error "[alloc] …"; 0 is no limit. By default the physical memory, or that of the control group.
WEFT_API size_t set_memory_limit(size_t limit);
/// Returns the limit; of a GPU without one its memory.
WEFT_API size_t get_memory_limit();
/// Sets the most bytes of freed buffers to keep, and returns the previous limit; 0 keeps none. What is over the limit
/// is given back to the system. By default a quarter of the physical memory on the CPU, and no limit on a GPU.
WEFT_API size_t set_cache_limit(size_t limit);
/// Returns 0 and changes nothing: memory is never wired here, as in MLX on devices without wired memory.
WEFT_API size_t set_wired_limit(size_t limit);
/// Gives all freed buffers back to the system.
WEFT_API void clear_cache();

}  // namespace weft
