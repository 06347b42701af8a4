// What libraries may do, asked by targets when they are offered a descriptor: anything at all, and with float32 in TF32.
#include <atomic>

#include "target/target.h"

namespace weft::target {
namespace {
std::atomic<bool> enabled{true}, tf32{false};
}

void set_libraries_enabled(bool on) { enabled.store(on, std::memory_order_relaxed); }
bool libraries_enabled() { return enabled.load(std::memory_order_relaxed); }
void set_tf32_allowed(bool on) { tf32.store(on, std::memory_order_relaxed); }
bool tf32_allowed() { return tf32.load(std::memory_order_relaxed); }

}  // namespace weft::target
