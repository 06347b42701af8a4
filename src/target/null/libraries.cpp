// Whether libraries may do anything at all, asked by targets when they are offered a descriptor.
#include <atomic>

#include "target/target.h"

namespace weft::target {
namespace {
std::atomic<bool> enabled{true};
}

void set_libraries_enabled(bool on) { enabled.store(on, std::memory_order_relaxed); }
bool libraries_enabled() { return enabled.load(std::memory_order_relaxed); }

}  // namespace weft::target
