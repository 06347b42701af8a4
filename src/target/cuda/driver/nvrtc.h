#pragma once
// CUDA C++ to machine code in this process. Needs NVRTC, no driver and no GPU.
#include <cstdint>
#include <string>
#include <vector>

namespace weft::target::cuda {

/// What ptxas says of one kernel.
struct KernelUsage {
  std::string name;
  std::string arch;         // "sm_90a"
  int64_t registers = 0;    // a thread
  int64_t stack_bytes = 0;  // a thread
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;
  int64_t shared_bytes = 0;  // static, a block
  int64_t barriers = 0;
};

bool nvrtc_available(std::string* why = nullptr);
/// 13000 for 13.0; 0 without NVRTC. Part of every key of compiled code.
int nvrtc_version();
/// The options of every compilation: C++17, no contraction of a * b + c (the tile language says which operations are
/// fused), ptxas's statistics, and no folder of NVRTC's own beside Weft's cache.
std::vector<std::string> nvrtc_options();
/// A cubin for `arch` ("sm_80", "sm_90a"). `options` come after nvrtc_options(); the compiler's messages go to `log`,
/// also those of a failure. Throws std::runtime_error with the messages and the lines that they speak of. May be called
/// from several threads at once.
std::vector<char> compile(const std::string& source, const std::string& arch,
                          const std::vector<std::string>& options = {}, std::string* log = nullptr);
/// The statistics in a log of compile(), by kernel in the order of the log.
std::vector<KernelUsage> parse_usage(const std::string& log);

}  // namespace weft::target::cuda
