#pragma once
// Kernels as they are rendered for a GPU, compiled for this machine's CPU and run there, thread by thread, as
// tests/compiler/host_cuda does with whole programs. Wants a C++ compiler while the test runs.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "target/cpu/cpu_support.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/source.h"

namespace weft::test {

/// What CUDA has built in and the shim has not.
inline constexpr std::string_view further_builtins = R"(
#include <cstdio>
#define ATOMIC(name, next) \
  template <class T> static T name(T* place, T v) { const T old = *place; *place = next; return old; }
ATOMIC(atomicMin, v < old ? v : old)
ATOMIC(atomicMax, v > old ? v : old)
ATOMIC(atomicAnd, old & v)
ATOMIC(atomicOr, old | v)
ATOMIC(atomicXor, old ^ v)
ATOMIC(atomicExch, v)
static void __trap() { std::abort(); }
static void __threadfence_block() {}
static void __threadfence() {}
static void __threadfence_system() {}
struct uint3 {
  unsigned x, y, z;
};
static uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a, unsigned b, unsigned c) : x(a), y(b), z(c) {}
};
static void** B; static const i64* S; static i64 G;
)";

/// Returns whether the machine can compile and run them; says why not.
inline bool can_run_kernels() {
  if (!sanitized && std::filesystem::exists(WEFT_SOURCE_DIR "/tests/compiler/host_cuda/shim.h") &&
      std::system("command -v g++ >/dev/null 2>&1") == 0)
    return true;
  MESSAGE("skipped: there is no g++ or no source folder here, or the program is sanitized, which fibers confuse");
  return false;
}

/// Returns the prelude without the definitions that are a GPU's own, which the shim has.
inline std::string prelude_for_host() {
  std::istringstream lines{std::string(target::cuda::prelude())};
  std::string out, definition;
  int depth = 0;
  for (std::string line; std::getline(lines, line);) {
    definition += line + "\n";
    for (const char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth > 0 || line.starts_with("template")) continue;
    const bool function = definition.starts_with("FN ") || definition.starts_with("template");
    if (!function || (definition.find("asm") == std::string::npos && definition.find("__cvta") == std::string::npos))
      out += definition;
    definition.clear();
  }
  return out;
}

/// Kernels that one run of the compiler takes together.
class HostKernels {
 public:
  explicit HostKernels(std::span<const RandomCase> cases, const target::cuda::Variant& variant = {},
                       const target::cuda::Features& features = {}) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("weft-host-kernels-{}", ::getpid());
    std::filesystem::create_directories(folder);
    static int made = 0;  // a file that was loaded once is not loaded again under its name
    const std::string file = (folder / fmt::format("kernels{}", made++)).string();
    {
      std::ofstream out(file + ".cpp");
      out << "#include \"compiler/host_cuda/shim.h\"\n" << further_builtins << prelude_for_host();
      for (size_t k = 0; k < cases.size(); ++k) out << source(cases[k].kernel, k, variant, features);
    }
    // Compiling takes longer than running, so that nothing is optimised. Fibers jump from stack to stack, which the
    // checked longjmp of hardened systems takes for an error.
    const std::string command = fmt::format(
        "g++ -std=c++20 -O0 -U_FORTIFY_SOURCE -w -fno-strict-aliasing -ffp-contract=off -shared -fPIC -I{0}/tests "
        "-I{0}/src -I{0}/include -o {1}.so {1}.cpp 2>{1}.log",
        WEFT_SOURCE_DIR, file);
    if (std::system(command.c_str()) != 0) {
      std::ostringstream log;
      log << std::ifstream(file + ".log").rdbuf();
      throw std::runtime_error("a source does not compile: " + log.str().substr(0, 3000));
    }
    void* const handle = ::dlopen((file + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove_all(folder);
    if (!handle) throw std::runtime_error(::dlerror());
    for (size_t k = 0; k < cases.size(); ++k)
      entries_.push_back(reinterpret_cast<Entry>(::dlsym(handle, fmt::format("k{}_run", k).c_str())));
  }

  /// Runs kernel k on its case's buffers.
  void run(size_t k, RandomCase& c) const {
    std::vector<void*> buffers;
    for (auto& b : c.buffers) buffers.push_back(b.data());
    entries_[k](buffers.data(), c.symbols.data(), c.grid);
  }

 private:
  using Entry = void (*)(void** buffers, const int64_t* symbols, int64_t grid);

  static std::string source(const kernel::Kernel& kernel, size_t number, const target::cuda::Variant& variant,
                            const target::cuda::Features& features) {
    const std::string symbol = fmt::format("k{}", number);
    const target::cuda::Rendered r = target::cuda::render(kernel::expand(kernel), symbol, variant, features);
    std::string arguments, maps;
    for (size_t i = 0; i < kernel.params.size(); ++i) arguments += fmt::format("Argument{{B[{}]}}, ", i);
    for (size_t i = 0; i < kernel.symbols.size(); ++i) arguments += fmt::format("S[{}], ", i);
    for (const target::cuda::TensorCopy& m : r.maps) {
      const int64_t size = m.dtype.size();
      const auto end = [](const target::cuda::AxisEnd& e, int64_t without) {
        return e.symbol >= 0 ? fmt::format("S[{}]", e.symbol) : fmt::format("{}ull", e.number > 0 ? e.number : without);
      };
      maps += fmt::format(", TensorMap{{{{(u64)B[{}], {}ull, {}ull, {}ull, {}ull, (u64){}, (u64){}}}}}", m.param,
                          m.pitch * size, m.across * size, m.lines, size, end(m.width, m.pitch), end(m.end, 0));
    }
    if (r.ordered || r.meets) maps += ", 0";
    // Blocks that wait for each other take turns, as those of a cluster do.
    const std::string together =
        r.ordered || r.meets ? "(int)g" : fmt::format("{}", std::max(r.blocks, kernel.cluster));
    return r.source + fmt::format("static void {0}_thread() {{ {0}({1}G{2}); }}\n", symbol, arguments, maps) +
           fmt::format(
               "extern \"C\" void {0}_run(void** b, const i64* s, i64 g) {{ B = b, S = s, G = g; "
               "block::run({0}_thread, {1}, std::min<i64>((g + {2} - 1) / {2} * {3}, {4}), {5}); }}\n",
               symbol, r.threads, r.programs, r.blocks, r.resident > 0 ? "2" : "0x7fffffff", together);
  }

  std::vector<Entry> entries_;
};

/// Checks that each case leaves the interpreter's bits.
inline void check_on_host(const std::vector<RandomCase>& cases, const target::cuda::Variant& variant = {},
                          const target::cuda::Features& features = {}) {
  const HostKernels host(cases, variant, features);
  for (size_t k = 0; k < cases.size(); ++k) {
    CAPTURE(cases[k].kernel.name);
    RandomCase got = cases[k];
    host.run(k, got);
    const std::string d = difference(interpreted(cases[k]), got);
    CHECK_MESSAGE(d.empty(), d, "\n", kernel::print(cases[k].kernel));
  }
}

}  // namespace weft::test
