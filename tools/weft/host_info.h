#pragma once
// What the system says of this machine's processors and memory.
#include <cstdint>
#include <string>
#include <vector>

namespace weft::tool {

/// Returns the first value of a key in /proc/cpuinfo or /proc/meminfo ("key : value"), or "".
std::string from_proc(const char* file, const std::string& key);
/// Returns "62.8 GiB".
std::string gibibytes(double bytes);
/// Returns the vector and matrix extensions that the processor has: "avx2 fma".
std::string instruction_sets();
/// Returns the bytes of memory, and of the memory that is available (0: not known).
double memory_bytes();
double available_memory_bytes();

/// A cache of the first processor, which `shared_by` processors share.
struct HostCache {
  int64_t level = 0, bytes = 0, shared_by = 1;
  std::string type;  // "Data", "Instruction", "Unified"
};
std::vector<HostCache> host_caches();
/// Returns how many of the processors that the system counts are cores; 0 where it does not say.
int64_t host_cores();

}  // namespace weft::tool
