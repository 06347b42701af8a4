#include "target/cuda/driver/nvrtc.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <sstream>

#include "base/error.h"
#include "runtime/trace.h"
#include "target/cuda/driver/library.h"

namespace weft::target::cuda {
namespace {

using ProgramHandle = struct OpaqueProgram*;

struct Nvrtc {
  const char* (*get_error_string)(int result) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
  int (*create_program)(ProgramHandle* program, const char* source, const char* name, int headers,
                        const char* const* texts, const char* const* names) = nullptr;
  int (*destroy_program)(ProgramHandle* program) = nullptr;
  int (*compile_program)(ProgramHandle program, int count, const char* const* options) = nullptr;
  int (*get_cubin_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*get_cubin)(ProgramHandle program, char* cubin) = nullptr;
  int (*get_ptx_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*get_ptx)(ProgramHandle program, char* ptx) = nullptr;
  int (*get_log_size)(ProgramHandle program, size_t* bytes) = nullptr;
  int (*get_log)(ProgramHandle program, char* log) = nullptr;
  std::string why;

  Nvrtc() {
    const Library& library = nvrtc_library();
    std::string reason;
    if (!library.available(&reason)) {
      why = fmt::format("no NVRTC ({}); install the CUDA toolkit, or set WEFT_CUDA_PATH to the folder with libnvrtc.so",
                        reason);
      return;
    }
    const bool all =
        library.bind(get_error_string, "nvrtcGetErrorString") && library.bind(version, "nvrtcVersion") &&
        library.bind(create_program, "nvrtcCreateProgram") && library.bind(destroy_program, "nvrtcDestroyProgram") &&
        library.bind(compile_program, "nvrtcCompileProgram") && library.bind(get_cubin_size, "nvrtcGetCUBINSize") &&
        library.bind(get_cubin, "nvrtcGetCUBIN") && library.bind(get_ptx_size, "nvrtcGetPTXSize") &&
        library.bind(get_ptx, "nvrtcGetPTX") && library.bind(get_log_size, "nvrtcGetProgramLogSize") &&
        library.bind(get_log, "nvrtcGetProgramLog");
    if (!all)
      why = fmt::format("the NVRTC in {} lacks functions that Weft needs: use CUDA 12.0 or later", library.path());
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc* instance = new Nvrtc;
  return *instance;
}

struct Program {
  ProgramHandle handle = nullptr;
  ~Program() {
    if (handle) nvrtc().destroy_program(&handle);
  }
};

void check_nvrtc(int result, const char* call) {
  if (result != 0) throw_failure("cuda", fmt::format("{} failed: {}", call, nvrtc().get_error_string(result)));
}

std::string log_of(ProgramHandle program) {
  size_t bytes = 0;
  if (nvrtc().get_log_size(program, &bytes) != 0 || bytes <= 1) return "";
  std::string text(bytes, '\0');
  if (nvrtc().get_log(program, text.data()) != 0) return "";
  text.resize(bytes - 1);  // without the terminating zero
  return text;
}

constexpr const char* source_name = "weft.cu";

/// Returns the source lines that the messages name ("weft.cu(12): error: …"), each with two lines around it; at most
/// forty.
std::string excerpt(const std::string& source, const std::string& log) {
  std::set<int64_t> wanted;
  const std::string mark = std::string(source_name) + "(";
  for (size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    int64_t line = 0;
    for (size_t i = at + mark.size();
         i < log.size() && std::isdigit(static_cast<unsigned char>(log[i])) && line < 10'000'000; ++i)
      line = line * 10 + (log[i] - '0');
    for (int64_t l = line - 2; l <= line + 2; ++l) wanted.insert(l);
  }
  std::string out;
  int64_t number = 0, shown = 0;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line) && shown < 40;) {
    if (!wanted.count(++number)) continue;
    out += fmt::format("{:5} | {}\n", number, line);
    ++shown;
  }
  return out;
}

/// Returns the number before `unit` in `line`, or 0: "Used 22 registers, 1 barriers, 4096 bytes smem".
int64_t number_before(const std::string& line, const std::string& unit) {
  const size_t at = line.find(unit);
  if (at == std::string::npos || at == 0) return 0;
  size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  return begin == at ? 0 : std::stoll(line.substr(begin, at - begin));
}

std::string quoted(const std::string& line, size_t from) {
  const size_t open = line.find('\'', from), close = open == std::string::npos ? open : line.find('\'', open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

}  // namespace

bool nvrtc_available(std::string* why) {
  if (why) *why = nvrtc().why;
  return nvrtc().why.empty();
}

int nvrtc_version() {
  int major = 0, minor = 0;
  if (!nvrtc_available() || nvrtc().version(&major, &minor) != 0) return 0;
  return major * 1000 + minor * 10;
}

std::vector<std::string> nvrtc_options() {
  std::vector<std::string> out = {"--std=c++17", "--fmad=false", "--ptxas-options=-v"};
  if (nvrtc_version() >= 12090) out.emplace_back("--no-cache");  // NVRTC's own cache folder; Weft has one
  return out;
}

namespace {

/// Compiles a source for "sm_90a" or "compute_90a", as compile() says.
void compile_into(Program& program, const std::string& source, const std::string& arch,
                  const std::vector<std::string>& options, std::string* log) {
  if (!nvrtc_available()) throw_failure("cuda", nvrtc().why);
  std::vector<std::string> all = nvrtc_options();
  all.push_back("--gpu-architecture=" + arch);
  all.insert(all.end(), options.begin(), options.end());
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());
  const runtime::Span span("compiler", "NVRTC");
  check_nvrtc(nvrtc().create_program(&program.handle, source.c_str(), source_name, 0, nullptr, nullptr),
              "nvrtcCreateProgram");
  const int result = nvrtc().compile_program(program.handle, static_cast<int>(pointers.size()), pointers.data());
  const std::string messages = log_of(program.handle);
  if (log) *log = messages;
  const std::string version =
      fmt::format("NVRTC {}.{} in {}", nvrtc_version() / 1000, nvrtc_version() % 1000 / 10, nvrtc_library().path());
  if (result != 0 && messages.find("--gpu-architecture") != std::string::npos)
    throw_failure("cuda",
                  fmt::format("{} does not know {}: install a newer CUDA toolkit, or set WEFT_CUDA_PATH to its folder",
                              version, arch));
  if (result != 0)
    throw_failure("cuda", fmt::format("compiling for {} failed: {} ({})\n{}\n{}", arch,
                                      nvrtc().get_error_string(result), version, messages, excerpt(source, messages)));
}

}  // namespace

std::vector<char> compile(const std::string& source, const std::string& arch, const std::vector<std::string>& options,
                          std::string* log) {
  Program program;
  compile_into(program, source, arch, options, log);
  size_t bytes = 0;
  check_nvrtc(nvrtc().get_cubin_size(program.handle, &bytes), "nvrtcGetCUBINSize");
  std::vector<char> cubin(bytes);
  check_nvrtc(nvrtc().get_cubin(program.handle, cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

std::string compile_ptx(const std::string& source, const std::string& arch) {
  const std::string virtual_arch = arch.starts_with("sm_") ? "compute_" + arch.substr(3) : arch;
  Program program;
  compile_into(program, source, virtual_arch, {}, nullptr);
  size_t bytes = 0;
  check_nvrtc(nvrtc().get_ptx_size(program.handle, &bytes), "nvrtcGetPTXSize");
  std::string ptx(bytes, '\0');
  check_nvrtc(nvrtc().get_ptx(program.handle, ptx.data()), "nvrtcGetPTX");
  ptx.resize(ptx.find_last_not_of('\0') + 1);
  return ptx;
}

// ptxas writes for each kernel, in this order:
//   ptxas info    : Compiling entry function 'name' for 'sm_90a'
//   ptxas info    : Function properties for name
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 22 registers, used 1 barriers, 4096 bytes smem
std::vector<KernelUsage> parse_usage(const std::string& log) {
  std::vector<KernelUsage> out;
  std::istringstream lines(log);
  // Whether the properties are the kernel's own or a called function's: spills of both count, the stack of the first
  // only.
  bool own = false;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find("Compiling entry function"); at != std::string::npos) {
      KernelUsage usage;
      usage.name = quoted(line, at);
      const size_t target = line.find(" for '", at);
      usage.arch = target == std::string::npos ? "" : quoted(line, target);
      out.push_back(usage);
    } else if (const size_t of = line.find("Function properties for "); of != std::string::npos) {
      own = !out.empty() && line.substr(of + 24) == out.back().name;
    } else if (line.find("bytes stack frame") != std::string::npos && !out.empty()) {
      if (own) out.back().stack_bytes = number_before(line, " bytes stack frame");
      out.back().spill_store_bytes += number_before(line, " bytes spill stores");
      out.back().spill_load_bytes += number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string::npos && line.find(" registers") != std::string::npos &&
               !out.empty()) {
      out.back().registers = number_before(line, " registers");
      out.back().barriers = number_before(line, " barriers");
      out.back().shared_bytes = number_before(line, " bytes smem");
    }
  }
  return out;
}

}  // namespace weft::target::cuda
