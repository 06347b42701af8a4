#include "target/cuda/inspect.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/expand/expand.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/driver/library.h"

namespace weft::target::cuda {
namespace {

constexpr int64_t registers_at_once = 256;  // of a warp: allocated in pieces of this size
constexpr int64_t partitions = 4;           // of an SM, each with its own registers
constexpr int64_t shared_at_once = 128;
constexpr int64_t reserved_shared_bytes = 1024;  // of a block, for the driver

/// Returns the most blocks of an SM (CUDA C++ programming guide, "Technical specifications per compute
/// capability").
int64_t most_blocks(const Machine& machine) {
  const int version = std::atoi(machine.arch.c_str() + 3);
  return version == 86 || version == 87 || version == 75 ? 16 : version == 89 || version == 120 ? 24 : 32;
}

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

Rendered rendered_for(const kernel::Kernel& kernel, const Machine& machine) {
  return render(kernel::expand(kernel, operators), "weft_" + kernel::digest(kernel).hex(), {}, features_of(machine));
}

/// Returns the path of a program in WEFT_CUDA_PATH/bin, PATH, beside NVRTC, or in the usual folder of CUDA; "" where
/// there is none.
std::string found_program(const std::string& name) {
  std::vector<std::string> folders;
  for (const std::string& folder : stated_folders()) folders.push_back(folder + "/bin");
  const char* const path = std::getenv("PATH");
  std::istringstream list(path ? path : "");
  for (std::string folder; std::getline(list, folder, ':');) folders.push_back(folder);
  folders.push_back((std::filesystem::path(nvrtc_library().path()).parent_path() / "../bin").string());
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders)
    if (const std::string file = folder + '/' + name; ::access(file.c_str(), X_OK) == 0) return file;
  return "";
}

/// A file in the folder for temporary files, gone at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<char>& bytes)
      : path_((std::filesystem::temp_directory_path() / "weft-cubin-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (file >= 0) ::close(file);
    if (!written) throw_failure("cuda", path_ + " could not be written");
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Returns a text in quotes of the shell.
std::string for_shell(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string disassembled(const std::vector<char>& cubin) {
  std::string command = found_program("nvdisasm");
  if (!command.empty()) command = for_shell(command) + " -c ";
  else if (command = found_program("cuobjdump"); !command.empty()) command = for_shell(command) + " -sass ";
  else
    throw_failure("cuda",
                  "neither nvdisasm nor cuobjdump was found: install the CUDA toolkit, or set WEFT_CUDA_PATH to its "
                  "folder");
  const TemporaryFile file(cubin);
  FILE* const pipe = ::popen((command + for_shell(file.path()) + " 2>&1").c_str(), "r");
  if (!pipe) throw_failure("cuda", command + "could not be run");
  std::string text;
  std::array<char, 4096> part{};
  while (const size_t n = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
  if (::pclose(pipe) != 0) throw_failure("cuda", command + "failed: " + text);
  return text;
}

}  // namespace

Occupancy occupancy(const Machine& machine, int64_t threads, int64_t registers, int64_t shared_bytes) {
  const int64_t warps = std::max<int64_t>((threads + machine.warp - 1) / machine.warp, 1);
  const int64_t of_warp = rounded_up(std::max<int64_t>(registers, 1) * machine.warp, registers_at_once);
  const int64_t of_block = rounded_up(shared_bytes + reserved_shared_bytes, shared_at_once);
  const std::pair<const char*, int64_t> limits[] = {
      {"registers", machine.registers / partitions / of_warp * partitions / warps},
      {"shared memory", (machine.shared_bytes + reserved_shared_bytes) / of_block},
      {"threads", machine.max_threads / (warps * machine.warp)},
      {"blocks", most_blocks(machine)}};
  const auto* const least = std::min_element(std::begin(limits), std::end(limits),
                                             [](const auto& a, const auto& b) { return a.second < b.second; });
  Occupancy out;
  out.blocks = least->second;
  out.threads = out.blocks * threads;
  out.share = static_cast<double>(out.threads) / static_cast<double>(machine.max_threads);
  out.limiter = least->first;
  return out;
}

KernelCode code_of(const kernel::Kernel& kernel, const Machine& machine) {
  const Rendered rendered = rendered_for(kernel, machine);
  KernelCode out;
  out.source = rendered.source;
  std::string log;
  out.cubin = compile(std::string(prelude()) + rendered.source, machine.arch, {}, &log);
  for (const KernelUsage& usage : parse_usage(log))
    if (usage.name == rendered.symbol) out.usage = usage;
  out.serialized = log.find("instructions are serialized") != std::string::npos;
  check(!out.usage.name.empty(), "cuda", "the compiler's log lacks the kernel");
  out.threads = rendered.threads, out.programs = rendered.programs, out.blocks = rendered.blocks;
  out.shared_bytes = rendered.shared_bytes + out.usage.shared_bytes;
  out.occupancy = occupancy(machine, out.threads, out.usage.registers, out.shared_bytes);
  return out;
}

std::string gpu_stage(const kernel::Kernel& kernel, std::string_view stage, const Machine& machine) {
  if (stage == "cuda") return rendered_for(kernel, machine).source;
  if (stage == "ptx") return compile_ptx(std::string(prelude()) + rendered_for(kernel, machine).source, machine.arch);
  if (stage == "sass") return disassembled(code_of(kernel, machine).cubin);
  throw_invalid("kernel " + kernel.name, "a GPU has no stage " + std::string(stage) + ": cuda, ptx, sass");
}

}  // namespace weft::target::cuda
