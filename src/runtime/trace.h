#pragma once
// Counters that tests and `weft bench` read: what the process launched and compiled. Cheap enough to be always on.
#include <atomic>
#include <cstdint>

namespace weft::runtime {

struct Counters {
  std::atomic<int64_t> traces{0};          // functions traced by compile()
  std::atomic<int64_t> programs_built{0};  // graphs that went through the compiler
  std::atomic<int64_t> programs_run{0};
  std::atomic<int64_t> kernel_launches{0};
  std::atomic<int64_t> library_calls{0};
  std::atomic<int64_t> copies{0};
};
Counters& counters();

}  // namespace weft::runtime
