#include "compiler/host_cuda/host_source.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace weft::test {

namespace {

/// Calls an entry with the arguments that pointers lead to, as a launch does.
constexpr std::string_view launcher = R"(#include <utility>
static void** A;
template <class... T, size_t... k>
static void launched(void (*f)(T...), std::index_sequence<k...>) { f(*static_cast<T*>(A[k])...); }
template <class... T>
static void launched(void (*f)(T...)) { launched(f, std::index_sequence_for<T...>()); }
)";

}  // namespace

const std::string& host_compiler() {
  static const std::string found = [] {
    for (const char* name : {"g++", "c++", "clang++"})
      if (std::system(fmt::format("command -v {} >/dev/null 2>&1", name).c_str()) == 0) return std::string(name);
    return std::string();
  }();
  return found;
}

std::string without_instructions(std::string_view given) {
  const std::string text(given);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    // A line, or lines up to the brace that closes what the first one opens.
    size_t end = at;
    for (int depth = 0; end < text.size(); ++end) {
      if (text[end] == '{') ++depth;
      if (text[end] == '}') --depth;
      const bool begins_template = text.compare(at, 8, "template") == 0 && text.find('(', at) > end;
      if (text[end] == '\n' && depth == 0 && !begins_template) break;
    }
    const std::string definition = text.substr(at, end + 1 - at);
    at = end + 1;
    const bool function = definition.starts_with("FN ") || definition.starts_with("template");
    if (!function || (definition.find("asm") == std::string::npos && definition.find("__cvta") == std::string::npos))
      out += definition;
  }
  return out;
}

void* compile_for_host(const std::string& source, const std::string& file) {
  std::ofstream(file + ".cpp") << "#include \"compiler/host_cuda/shim.h\"\n" << source;
  // Fibers jump from stack to stack, which the checked longjmp of hardened systems takes for an error.
  const std::string command = fmt::format(
      "{0} -std=c++20 -O1 -U_FORTIFY_SOURCE -w -fno-strict-aliasing -ffp-contract=off -shared -fPIC -I{1}/tests "
      "-I{1}/src -I{1}/include -o {2}.so {2}.cpp 2>{2}.log",
      host_compiler(), WEFT_SOURCE_DIR, file);
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(file + ".log");
    std::string text(2000, ' ');
    log.read(text.data(), 2000);
    throw std::runtime_error("a source does not compile: " + text.substr(0, static_cast<size_t>(log.gcount())));
  }
  void* const handle = ::dlopen((file + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(::dlerror());
  return handle;
}

HostHandwritten::HostHandwritten(const target::cuda::HandwrittenKernel& kernel, const target::cuda::Match& match)
    : match_(match) {
  std::string source = without_instructions(target::cuda::source_of(kernel, match.parameters)) + std::string(launcher);
  for (const target::cuda::KernelEntry& entry : match.entries)
    source += fmt::format(
        "static void {0}_thread() {{ launched({0}); }}\n"
        "extern \"C\" void {0}_run(void** a, i64 g) {{ A = a; block::run({0}_thread, {1}, g, 1); }}\n",
        entry.symbol, entry.shape.threads);
  static int made = 0;  // a file that was loaded once is not loaded again under its name
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("weft-host-handwritten-{}-{}", ::getpid(), ++made);
  void* const handle = compile_for_host(source, file.string());
  for (const char* ending : {".cpp", ".so", ".log"}) std::filesystem::remove(file.string() + ending);
  for (const target::cuda::KernelEntry& entry : match.entries)
    entries_.push_back(reinterpret_cast<Entry>(::dlsym(handle, (entry.symbol + "_run").c_str())));
}

void HostHandwritten::run(std::span<void* const> operands) const {
  std::vector<std::max_align_t> scratch(static_cast<size_t>(match_.scratch_bytes) / sizeof(std::max_align_t) + 1);
  match_.run(operands, scratch.data(), [&](size_t k, void** arguments) {
    entries_.at(k)(arguments, match_.entries[k].shape.grid_x * match_.entries[k].shape.grid_y);
  });
}

}  // namespace weft::test
