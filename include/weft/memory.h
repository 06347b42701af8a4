#pragma once
#include <cstddef>

#include "weft/api.h"

namespace weft {

WEFT_API size_t get_active_memory();
WEFT_API size_t get_peak_memory();
WEFT_API void reset_peak_memory();
WEFT_API size_t get_cache_memory();
WEFT_API size_t set_memory_limit(size_t limit);  ///< bytes; returns the previous limit
WEFT_API size_t set_cache_limit(size_t limit);
WEFT_API void clear_cache();

}  // namespace weft
