#pragma once
// Compiles CUDA C++ to machine code in this process. Needs NVRTC, but no driver and no GPU.
#include <cstdint>
#include <string>
#include <vector>

namespace weft::target::cuda {

/// What ptxas reports of one kernel.
struct KernelUsage {
  std::string name;
  std::string arch;         // "sm_90a"
  int64_t registers = 0;    // per thread
  int64_t stack_bytes = 0;  // per thread
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;
  int64_t shared_bytes = 0;  // static, per block
  int64_t barriers = 0;
};

bool nvrtc_available(std::string* why = nullptr);
/// Returns NVRTC's version: 13000 for 13.0, 0 without NVRTC. It is part of every key of compiled code.
int nvrtc_version();
/// Returns the options of every compilation: C++17, no contraction of a * b + c (the tile language says what is fused),
/// ptxas's statistics, and no cache of NVRTC's.
std::vector<std::string> nvrtc_options();
/// Returns a cubin for `arch` ("sm_80", "sm_90a"). `options` follow nvrtc_options(). `log` gets the compiler's
/// messages, also on failure. Throws std::runtime_error with the messages and the source lines that they name.
/// Thread-safe.
std::vector<char> compile(const std::string& source, const std::string& arch,
                          const std::vector<std::string>& options = {}, std::string* log = nullptr);
/// Returns the PTX of a source for `arch`, as compile() does the cubin.
std::string compile_ptx(const std::string& source, const std::string& arch);
/// Returns the statistics in a log of compile(), one entry a kernel in the log's order.
std::vector<KernelUsage> parse_usage(const std::string& log);

}  // namespace weft::target::cuda
