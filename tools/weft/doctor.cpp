// weft doctor: what this machine and this build have, what is missing and what that costs, and whether the code
// generator works.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "abilities.h"
#include "command.h"
#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "host_info.h"
#include "machine_options.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "target/cpu/libraries/onednn.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/target.h"
#include "tools/weft/train/corpus.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

void row(const std::string& name, const std::string& value) { fmt::print("{:16} {}\n", name, value); }

std::string memory() {
  const double free = available_memory_bytes();
  return gibibytes(memory_bytes()) + (free > 0 ? ", " + gibibytes(free) + " of it available" : "");
}

std::string cache() {
  const std::string dir = runtime::cache_dir();
  if (dir.empty()) return "none can be written (set WEFT_CACHE_DIR): kernels are compiled anew in every process";
  double bytes = 0;
  int64_t files = 0;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(dir, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error))
    if (it->is_regular_file(error)) bytes += static_cast<double>(it->file_size(error)), ++files;
  return fmt::format("{} ({} entries, {:.1f} MiB)", dir, files, bytes / (1024.0 * 1024));
}

std::string libraries() {
  const std::string version = target::onednn_version();
  if (!version.empty())
    return fmt::format("oneDNN {} (matrix products), with instructions up to {}", version, target::onednn_isa().name);
  return "no oneDNN in this build: matrix products run through generated kernels, slower where they are large, and "
         "without the matrix "
         "units for bf16";
}

/// Returns a remark on a library that was found: machine code of a newer compiler may not load.
std::string remark(const target::cuda::Library& library) {
  namespace cuda = target::cuda;
  const int compiler = cuda::nvrtc_version() / 1000, known = cuda::driver_version() / 1000;
  if (&library != &cuda::nvrtc_library() || known == 0 || compiler <= known) return "";
  return fmt::format(
      "; newer than the driver, which is CUDA {}'s and may refuse its machine code: install a newer driver, or set "
      "WEFT_CUDA_PATH to a toolkit of CUDA {}",
      known, known);
}

/// Prints the devices, and which of their libraries were found. A missing library is no fault: the row says what it
/// costs.
void gpus() {
  namespace cuda = target::cuda;
  std::string why;
  for (const std::string& folder : cuda::stated_folders())
    if (!std::filesystem::is_directory(folder)) row("WEFT_CUDA_PATH", folder + " is no folder");
  if (!cuda::available(&why)) row("GPU", "none: " + why);
  for (int i = 0; i < cuda::device_count(); ++i) {
    try {
      const cuda::DeviceInfo info = cuda::device_info(i);
      cuda::require_capability(info);
      row("GPU", fmt::format("{}: {}, compute capability {}.{} (kernels for {}), {} SMs, {}, L2 {} MiB, {} "
                             "KiB of shared memory a block, {}",
                             i, info.name, info.major, info.minor, info.arch(), info.multiprocessors,
                             gibibytes(static_cast<double>(info.memory_bytes)), info.l2_bytes >> 20,
                             info.shared_bytes_per_block >> 10, info.uuid));
    } catch (const std::exception& e) {
      row("GPU", fmt::format("{}: {}", i, without_operation(e.what())));
    }
  }
  for (const cuda::Library* library : cuda::libraries()) {
    const bool found = library->available(&why);
    row(library->name(), found ? fmt::format("{} in {}{}", cuda::version(*library), library->path(), remark(*library))
                               : fmt::format("missing: {} ({})", library->costs(), why));
  }
}

/// Returns the target's fingerprint without its list of processor features, which is long.
std::string code_generator() {
  std::string text = target::cpu().fingerprint();
  const size_t open = text.find(" ["), close = text.find(']');
  if (open != std::string::npos && close != std::string::npos) text.erase(open, close + 1 - open);
  return fmt::format("{} (vectors of {} float32)", text, target::cpu().machine().lanes(4));
}

/// Compiles and runs a small program and checks its result. Returns the error, empty on success.
std::string self_test() {
  try {
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i) values.push_back(std::sin(static_cast<float>(i)));
    const array x = array::from_data(values.data(), {10, 100}, float32);
    const auto rows = sum(softmax(matmul(x, transpose(x)), -1), 1).to_vector<float>();
    for (const float r : rows)
      if (!(std::abs(r - 1) < 1e-5f)) return fmt::format("a row of softmax sums to {} and not to 1", r);
    return "";
  } catch (const std::exception& e) {
    return without_operation(e.what());
  }
}

int doctor(const MachineOptions& o) {
  apply(o);
  row("weft", WEFT_VERSION);
#ifdef __clang__
  row("compiler", "clang " __clang_version__);
#else
  row("compiler", "g++ " __VERSION__);
#endif
  const std::string name = from_proc("/proc/cpuinfo", "model name");
  row("CPU", name.empty() ? "unknown" : name);
  row("instructions", instruction_sets());
  row("threads", fmt::format("{} of {} processors", runtime::num_threads(), ::sysconf(_SC_NPROCESSORS_ONLN)));
  row("memory", memory());
  row("libraries", o.no_libraries ? "switched off" : libraries());
  row("kernel cache", cache());
  gpus();
  try {
    row("code generator", code_generator());
    for (const auto& [what, how] : cpu_abilities()) row(what, how);
  } catch (const std::exception& e) {
    row("code generator", fmt::format("FAILED: {}", without_operation(e.what())));
    return 1;
  }
  const std::string fault = self_test();
  if (fault.empty()) row("at most", to_string(compiler::machine_rates(compiler::default_target(), true)));
  row("self-test", fault.empty() ? "passed: a product and a softmax compiled, ran and were right" : "FAILED: " + fault);
  return fault.empty() ? 0 : 1;
}

}  // namespace

Command doctor_command() {
  auto options = std::make_shared<MachineOptions>();
  OptionSet set;
  add_machine_options(set, *options);
  return {"doctor", "Shows what this machine and this build offer", "", set,
          [options](OptionSet&) { return doctor(*options); }};
}

}  // namespace weft::tool
