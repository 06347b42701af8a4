#pragma once
// The options of all commands that compute: how the machine is used.
#include <cstdint>
#include <string>

#include "options.h"

namespace weft::tool {

struct MachineOptions {
  int64_t threads = 0;  // 0: as many as the process may use
  bool no_libraries = false, tf32 = false, nondeterministic = false, nvtx = false;
  std::string isa = "native";
  std::string device = "cpu";  // "cpu", "gpu", "gpu:1"; cuda means gpu
  std::string tune;            // add_machine_options sets it: WEFT_TUNE, else "off"
};

/// Adds --device, --threads, --no-libraries, --tf32, --nondeterministic, --isa, --tune and --nvtx.
void add_machine_options(OptionSet& set, MachineOptions& options);
/// Applies the options to the process. Throws UsageError where WEFT_TUNE is no mode, or there is no such device.
void apply(const MachineOptions& options);
/// Returns what the process computes on, once the options are applied: "2 threads", "cuda:0 (NVIDIA H200)".
std::string machine_text();
/// Returns the bytes of memory that the process has for arrays.
double machine_memory();
/// Applies the choices of kernels and libraries that an earlier run recorded (compiler/tune/tune.h). Throws
/// std::invalid_argument where the text holds none.
void replay_tuning(const std::string& choices);

}  // namespace weft::tool
