// Statistics and limits of the default device's memory.
#include "weft/memory.h"

#include "runtime/buffer.h"
#include "runtime/device.h"
#include "target/target.h"
#include "weft/device.h"

namespace weft {

namespace {

/// Returns the default device, null for the host.
runtime::Accelerator* device() {
  const Device& d = default_device();
  return d.type == Device::gpu ? target::gpu(d.index).device() : nullptr;
}

}  // namespace

size_t get_active_memory() { return device() ? device()->memory().active : runtime::active_memory(); }
size_t get_peak_memory() { return device() ? device()->memory().peak : runtime::peak_memory(); }
void reset_peak_memory() { device() ? device()->reset_peak() : runtime::reset_peak_memory(); }
size_t get_cache_memory() { return device() ? device()->memory().cached : runtime::cache_memory(); }
size_t set_memory_limit(size_t limit) {
  return device() ? device()->set_limit(limit) : runtime::set_memory_limit(limit);
}
size_t get_memory_limit() { return device() ? device()->memory().limit : runtime::memory_limit(); }
size_t set_wired_limit(size_t) { return 0; }
size_t set_cache_limit(size_t limit) {
  return device() ? device()->set_cache_limit(limit) : runtime::set_cache_limit(limit);
}
void clear_cache() { device() ? device()->clear_cache() : runtime::clear_cache(); }

}  // namespace weft
