#include "compiler/host_cuda/host_cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "compiler/host_cuda/host_source.h"
#include "kernel/routines/routine.h"
#include "target/cuda/codegen/text/source.h"

namespace weft::test {

namespace fs = std::filesystem;

namespace {

constexpr int most_segments = 8;  // of a launch

}  // namespace

/// The kernels that wait for the compiler, and those that it has seen.
class HostCuda::Library {
 public:
  using Entry = void (*)(void** buffers, const int64_t* symbols, int64_t grid);

  explicit Library(bool clusters)
      : clusters_(clusters),
        folder_(fs::temp_directory_path() / fmt::format("weft-host-cuda-{}-{}", ::getpid(), ++libraries)) {
    fs::create_directories(folder_);
  }
  ~Library() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  int add(const kernel::Kernel& kernel) {
    kernels_.push_back(kernel::expand(kernel));
    entries_.emplace_back();
    const int number = static_cast<int>(kernels_.size()) - 1;
    want(number, {});
    return number;
  }

  /// The usual entry is compiled with everything else that waits, others when they are first wanted.
  Entry entry(int number, const target::cuda::Variant& variant) {
    if (!waiting_.empty()) load();
    auto& known = entries_[static_cast<size_t>(number)];
    if (!known.contains(variant)) want(number, variant), load();
    return known.at(variant);
  }

  int loads = 0;

 private:
  static inline int libraries = 0;  // a file that was loaded once is not loaded again under its name

  void want(int number, const target::cuda::Variant& variant) {
    const kernel::Kernel& kernel = kernels_[static_cast<size_t>(number)];
    const std::string symbol =
        fmt::format("k{}_{}_{}", number, variant.segments, variant.aligned ? "aligned" : "anywhere");
    const target::cuda::Rendered r = target::cuda::render(kernel, symbol, variant, {.clusters = clusters_});
    std::string arguments;
    if (variant.segments > 1) {
      arguments = fmt::format("*(const {}_table*)S", symbol);
    } else {
      for (size_t i = 0; i < kernel.params.size(); ++i) arguments += fmt::format("Argument{{B[{}]}}, ", i);
      for (size_t i = 0; i < kernel.symbols.size(); ++i) arguments += fmt::format("S[{}], ", i);
      arguments += "G";
    }
    source_ += r.source + fmt::format("static void {0}_thread() {{ {0}({1}); }}\n", symbol, arguments) +
               fmt::format(
                   "extern \"C\" void {0}_run(void** b, const i64* s, i64 g) {{ B = b, S = s, G = g; "
                   "block::run({0}_thread, {1}, (g + {2} - 1) / {2} * {3}, {3}); }}\n",
                   symbol, r.threads, r.programs, r.blocks);
    waiting_.push_back({number, variant, symbol + "_run"});
  }

  void load() {
    const fs::path file = folder_ / fmt::format("kernels{}", loads++);
    void* const handle =
        compile_for_host(without_instructions(target::cuda::prelude()) +
                             "static void** B; static const i64* S; static i64 G;\n" + std::exchange(source_, {}),
                         file.string());
    for (const Waiting& w : std::exchange(waiting_, {}))
      entries_[static_cast<size_t>(w.number)][w.variant] = reinterpret_cast<Entry>(::dlsym(handle, w.symbol.c_str()));
  }

  struct Waiting {
    int number;
    target::cuda::Variant variant;
    std::string symbol;
  };
  bool clusters_;
  fs::path folder_;
  std::vector<kernel::Kernel> kernels_;  // expanded
  std::vector<std::map<target::cuda::Variant, Entry>> entries_;
  std::string source_;
  std::vector<Waiting> waiting_;
};

namespace {

class HostExecutable final : public target::Executable {
 public:
  HostExecutable(std::shared_ptr<HostCuda::Library> library, int number, size_t params, size_t symbols)
      : library_(std::move(library)), number_(number), row_(params + symbols) {}

  void run(std::span<const target::Segment> segments, double) const override {
    bool aligned = true;
    for (const target::Segment& s : segments)
      for (const void* p : s.buffers) aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
    if (segments.size() > 1 && segments.size() <= most_segments) return run_clusters(segments, aligned);
    for (const target::Segment& s : segments) {
      std::vector<void*> buffers(s.buffers.begin(), s.buffers.end());
      library_->entry(number_, {aligned, 1})(buffers.data(), s.symbols.data(), s.grid);
    }
  }

 private:
  /// The table that an entry of several segments is given: see render.h.
  void run_clusters(std::span<const target::Segment> segments, bool aligned) const {
    std::vector<int64_t> table(2 + most_segments * (row_ + 1), 0);
    table[0] = static_cast<int64_t>(segments.size());
    int64_t grid = 0;
    size_t at = 2 + segments.size();
    for (size_t k = 0; k < segments.size(); ++k) {
      table[1 + k] = grid;
      grid += segments[k].grid;
      for (void* p : segments[k].buffers) table[at++] = reinterpret_cast<int64_t>(p);
      for (const int64_t s : segments[k].symbols) table[at++] = s;
    }
    table[1 + segments.size()] = grid;
    library_->entry(number_, {aligned, most_segments})(nullptr, table.data(), grid);
  }

  std::shared_ptr<HostCuda::Library> library_;
  int number_;
  size_t row_;
};

/// A call as a sequence of kernels, with scratch of its own.
class HostRoutine final : public target::LibraryCall {
 public:
  HostRoutine(kernel::Routine routine, std::vector<std::shared_ptr<const target::Executable>> executables)
      : routine_(std::move(routine)), executables_(std::move(executables)) {
    for (const int64_t bytes : routine_.scratch) scratch_.emplace_back(static_cast<size_t>(bytes + 15) / 16);
  }
  std::string name() const override { return "host routine"; }
  void run(std::span<void* const> operands) const override {
    std::vector<void*> all(operands.begin(), operands.end());
    for (auto& s : scratch_) all.push_back(s.data());
    for (const kernel::Routine::Launch& launch : routine_.launches) {
      std::vector<void*> buffers;
      for (const int b : launch.buffers) buffers.push_back(all.at(static_cast<size_t>(b)));
      const target::Segment segment{buffers, launch.symbols, launch.grid};
      executables_[launch.kernel]->run(std::span(&segment, 1), 0);
    }
  }

 private:
  struct alignas(16) Line {
    char bytes[16];
  };
  kernel::Routine routine_;
  std::vector<std::shared_ptr<const target::Executable>> executables_;
  mutable std::vector<std::vector<Line>> scratch_;
};

}  // namespace

HostCuda::HostCuda(int64_t cluster, int64_t lanes, bool tensor_cores)
    : SimtTarget(cluster, cluster == 1 ? 1 : 128), library_(std::make_shared<Library>(cluster > 1)) {
  machine_.min_lanes = machine_.max_lanes = lanes;
  machine_.tensor_cores = tensor_cores;
  if (tensor_cores) machine_.shared_bytes = 227 << 10;  // of Hopper
}
HostCuda::~HostCuda() = default;

std::vector<std::shared_ptr<const target::Executable>> HostCuda::compile(std::span<const kernel::Kernel> kernels) {
  return executables(kernels);
}

std::vector<std::shared_ptr<const target::Executable>> HostCuda::executables(
    std::span<const kernel::Kernel> kernels) const {
  std::vector<std::shared_ptr<const target::Executable>> out;
  for (const kernel::Kernel& k : kernels)
    out.push_back(std::make_shared<HostExecutable>(library_, library_->add(k), k.params.size(), k.symbols.size()));
  return out;
}

std::shared_ptr<const target::LibraryCall> HostCuda::call(const kernel::CallDesc& desc) const {
  std::optional<kernel::Routine> routine = kernel::routine_for(desc, desc.name == "searchsorted" ? 256 : 4096);
  if (!routine) return desc.name.starts_with("convolution") ? nullptr : target::cpu().call(desc);
  auto code = executables(routine->kernels);
  return std::make_shared<HostRoutine>(std::move(*routine), std::move(code));
}

int HostCuda::compiled() const { return library_->loads; }

}  // namespace weft::test
