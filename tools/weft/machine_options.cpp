#include "machine_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "compiler/tune/tune.h"
#include "runtime/nvtx.h"
#include "runtime/threads.h"
#include "target/cpu/codegen/options.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"
#include "weft/device.h"
#include "weft/memory.h"

namespace weft::tool {

namespace {

const std::vector<std::string> tune_modes{"off", "cached", "on", "force"};  // as compiler::Tuning counts them

/// Parses "gpu", "cuda:1" or "cpu".
Device device_of(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon), number = colon == std::string::npos ? "0" : name.substr(colon + 1);
  const bool gpu = kind == "gpu" || kind == "cuda";
  if ((!gpu && kind != "cpu") || number.empty() || number.size() > 3 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError("--device '" + name + "' is none of cpu, gpu, gpu:1 …");
  const Device device(gpu ? Device::gpu : Device::cpu, std::stoi(number));
  if (is_available(device)) return device;
  std::string why;
  if (gpu && !target::cuda::available(&why))
    throw UsageError("--device " + name + ": there is no GPU: " + why + " (weft doctor says what was found)");
  const int count = device_count(device.type);
  throw UsageError(fmt::format("--device {}: there {} {}{} here, numbered from 0 (weft doctor says what was found)",
                               name, count == 1 ? "is" : "are", count, gpu ? (count == 1 ? " GPU" : " GPUs") : " CPU"));
}

}  // namespace

void add_machine_options(OptionSet& set, MachineOptions& o) {
  const char* mode = std::getenv("WEFT_TUNE");
  o.tune = mode && *mode ? mode : "off";
  set.add("device", "NAME", &o.device, "where to compute: cpu, gpu, or gpu:1 for the second one").config();
  set.add("threads", "N", &o.threads, "CPU threads").range(0, 1024).config().defaults_to("all processors");
  set.add("no-libraries", "", &o.no_libraries,
          "generated kernels only: no oneDNN, and on a GPU no cuBLASLt and no cuDNN")
      .config();
  set.add("tf32", "", &o.tf32,
          "on a GPU, float32 products and convolutions in TF32: ten bits of mantissa, several times the speed")
      .config();
  set.add("nondeterministic", "", &o.nondeterministic,
          "on a GPU, sums of the gradients of attention, convolutions and embeddings in any order, where that is "
          "quicker: two runs then differ in their last bits")
      .config();
  set.add("isa", "NAME", &o.isa, "CPU instructions to use: native, avx512, avx2, or generic")
      .one_of({"native", "avx512", "avx2", "generic"})
      .config();
  set.add("tune", "MODE", &o.tune,
          "how to choose among ways to run a kernel: off (by rule), cached (as measured before), on (measure what is "
          "new; takes a second or so once), force (measure "
          "again); WEFT_TUNE sets the default")
      .one_of(tune_modes)
      .config();
  set.add("nvtx", "", &o.nvtx,
          "give a profiler that is attached (nsys, ncu) a range for each run of a program and each of its steps; "
          "WEFT_NVTX=1 does so too");
}

void apply(const MachineOptions& o) {
  const auto mode = std::find(tune_modes.begin(), tune_modes.end(), o.tune);
  if (mode == tune_modes.end())
    throw UsageError("WEFT_TUNE is '" + o.tune + "', but must be one of off, cached, on, force");
  compiler::Policy policy = compiler::default_policy();
  policy.tuning = static_cast<compiler::Tuning>(mode - tune_modes.begin());
  policy.numerics = {.tf32 = o.tf32, .deterministic = !o.nondeterministic};
  compiler::set_default_policy(policy);
  target::set_cpu_isa(o.isa);
  if (o.threads > 0) runtime::set_num_threads(static_cast<int>(o.threads));
  if (o.no_libraries) target::set_libraries_enabled(false);
  if (o.nvtx && !runtime::nvtx::enable())
    fmt::print(stderr, "--nvtx: no profiler is attached to this process (nsys profile weft …)\n");
  if (const Device device = device_of(o.device); device != default_device()) set_default_device(device);
}

std::string machine_text() {
  const Device& device = default_device();
  return device.type == Device::gpu ? target::cuda::context(device.index).name()
                                    : fmt::format("{} threads", runtime::num_threads());
}

double machine_memory() {
  if (default_device().type == Device::gpu) return static_cast<double>(get_memory_limit());
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void replay_tuning(const std::string& choices) {
  compiler::Policy policy = compiler::default_policy();
  policy.choices = compiler::parse_tuning_choices(choices);
  compiler::set_default_policy(policy);
}

}  // namespace weft::tool
