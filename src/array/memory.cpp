#include "weft/memory.h"

#include "runtime/buffer.h"

namespace weft {

size_t get_active_memory() { return runtime::active_memory(); }
size_t get_peak_memory() { return runtime::peak_memory(); }
void reset_peak_memory() { runtime::reset_peak_memory(); }
size_t get_cache_memory() { return runtime::cache_memory(); }
size_t set_memory_limit(size_t limit) { return runtime::set_memory_limit(limit); }
size_t get_memory_limit() { return runtime::memory_limit(); }
size_t set_wired_limit(size_t) { return 0; }
size_t set_cache_limit(size_t limit) { return runtime::set_cache_limit(limit); }
void clear_cache() { runtime::clear_cache(); }

}  // namespace weft
