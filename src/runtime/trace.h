#pragma once
// Counters that tests and `weft bench` read: what the process launched and compiled. Cheap enough to be always on.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

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

/// Time by step name, summed while profiling is on (off by default): what `weft bench --profile` prints.
struct ProfileEntry {
  std::string name;
  int64_t calls = 0;
  double ms = 0;
};
void set_profiling(bool on);
bool profiling();
void profile(const std::string& name, double ms);
std::vector<ProfileEntry> profile_report();  // the most expensive first; starts anew

}  // namespace weft::runtime
