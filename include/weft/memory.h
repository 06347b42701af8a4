#pragma once
#include <cstddef>

#include "weft/api.h"

namespace weft {

WEFT_API size_t get_active_memory();
WEFT_API size_t get_peak_memory();
WEFT_API void reset_peak_memory();
WEFT_API size_t get_cache_memory();
WEFT_API size_t set_memory_limit(size_t limit);  ///< bytes; returns the previous limit
WEFT_API size_t get_memory_limit();
WEFT_API size_t set_cache_limit(size_t limit);
/// Memory of this build's device is never wired: returns 0 and changes nothing, as MLX does where there is no such
/// thing.
WEFT_API size_t set_wired_limit(size_t limit);
WEFT_API void clear_cache();

}  // namespace weft
