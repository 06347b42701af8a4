#include "target/cpu/cpu.h"

#include <fmt/format.h>
#include <llvm-c/Core.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "base/error.h"
#include "kernel/expand/expand.h"
#include "kernel/legalize/legalize.h"
#include "kernel/rules.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "target/cpu/codegen/compile.h"
#include "target/cpu/codegen/programs.h"
#include "target/cpu/codegen/report.h"
#include "target/cpu/generator_digest.h"  // of the code generator: objects on disk of another version are not used
#include "target/cpu/libraries/onednn.h"
#include "target/cpu/routines/calls.h"
#include "target/rates.h"

namespace weft::target {
namespace {

class CpuExecutable final : public Executable {
 public:
  /// What programs of a launch have to do with each other: nothing; they begin in order; all of them meet at barriers;
  /// those of a cluster do.
  enum class Programs : uint8_t { apart, ordered, meeting, clusters };

  CpuExecutable(std::shared_ptr<Jit> jit, KernelFunction function, Programs programs, int64_t cluster)
      : jit_(std::move(jit)), function_(function), programs_(programs), cluster_(cluster) {}

  void run(std::span<const Segment> segments, double work) const override {
    launch(segments, work);
    if (const std::string failure = take_failure(); !failure.empty()) throw std::runtime_error(failure);
  }

 private:
  void launch(std::span<const Segment> segments, double work) const {
    int64_t total = 0;
    for (const Segment& s : segments) total += s.grid;
    if (total == 0) return;
    if (programs_ == Programs::meeting) return meet(segments);
    if (programs_ == Programs::clusters) return clusters(segments);
    if (total == 1 || work < least_parallel_work) return range(segments, 0, total);
    if (programs_ == Programs::ordered) return in_order(segments, total);
    const bool shared = segments.size() > 1 && total >= least_shared * static_cast<int64_t>(segments.size());
    runtime::parallel_for(total, [&](int64_t begin, int64_t end) {
      shared ? shares(segments, total, begin, end) : range(segments, begin, end);
    });
  }

  // Each thread takes the first program that none has begun, and runs it to its end: those before one that waits have
  // ended or run on threads that do not wait for it.
  void in_order(std::span<const Segment> segments, int64_t total) const {
    std::atomic<int64_t> next{0};
    runtime::parallel_for(std::min<int64_t>(runtime::num_threads(), total), [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      for (int64_t k = next++; k < total; k = next++) range(segments, k, k + 1);
    });
  }

  // All programs of a launch are under way at once, as fibers of one thread.
  void meet(std::span<const Segment> segments) const {
    constexpr int64_t most = 4096;  // stacks
    for (const Segment& s : segments) {
      if (s.grid > most)
        throw_invalid("grid_barrier",
                      fmt::format("a grid of {} programs: a CPU runs {} of them at once: launch fewer", s.grid, most));
      run_programs(s.grid, [&](int64_t k) { function_(s.buffers.data(), s.symbols.data(), k, k + 1); });
    }
  }

  // Clusters are divided among threads; the programs of one are fibers of its thread.
  void clusters(std::span<const Segment> segments) const {
    for (const Segment& s : segments)
      runtime::parallel_for(s.grid / cluster_, [&](int64_t begin, int64_t end) {
        for (int64_t first = begin * cluster_; first < end * cluster_; first += cluster_)
          run_programs(cluster_,
                       [&](int64_t k) { function_(s.buffers.data(), s.symbols.data(), first + k, first + k + 1); });
      });
  }

  // Programs of a segment, on average, from which on each thread gets a share of every segment.
  static constexpr int64_t least_shared = 8;

  // Runs programs begin … end-1. Program ids count through all segments; a range may begin in one and end in another.
  void range(std::span<const Segment> segments, int64_t begin, int64_t end) const {
    int64_t first = 0;
    for (const Segment& s : segments) {
      const int64_t from = std::max(begin - first, int64_t{0}), to = std::min(end - first, s.grid);
      if (from < to) function_(s.buffers.data(), s.symbols.data(), from, to);
      first += s.grid;
      if (first >= end) return;
    }
  }

  // Runs the same part of every segment that begin … end-1 are of all programs. A thread then has the part of each
  // array that it had in launches over that array alone, in whose course the array came into the thread's cache.
  // Remainders go to other parts from segment to segment.
  void shares(std::span<const Segment> segments, int64_t total, int64_t begin, int64_t end) const {
    int64_t first = 0;
    for (const Segment& s : segments) {
      const int64_t offset = first % total;
      const auto border = [&](int64_t at) { return (at * s.grid + offset) / total; };
      if (const int64_t from = border(begin), to = border(end); from < to)
        function_(s.buffers.data(), s.symbols.data(), from, to);
      first += s.grid;
    }
  }
  std::shared_ptr<Jit> jit_;
  KernelFunction function_;
  Programs programs_;
  int64_t cluster_;  // programs of one
};

CpuExecutable::Programs programs_of(const kernel::Kernel& kernel) {
  using Programs = CpuExecutable::Programs;
  if (kernel.cluster > 0) return Programs::clusters;
  return kernel::programs_meet(kernel) ? Programs::meeting : kernel.ordered ? Programs::ordered : Programs::apart;
}

}  // namespace

struct CpuTarget::Job {
  kernel::Kernel kernel;          // expanded
  Digest digest;                  // of the expanded kernel
  std::vector<size_t> wanted_by;  // positions in the batch
  KernelFunction function = nullptr;
  bool generated = false;
};

namespace {

kernel::VectorRegisters registers_of(const Isa& isa) { return {isa.vector_bits / 8, isa.vector_bits == 512 ? 32 : 16}; }

/// Describes this processor with the instructions that may be used.
Machine machine_of(const Isa& isa) {
  Machine m;
  m.name = isa.cpu;
  m.arch = isa.name;
  m.processors = std::max(1u, std::thread::hardware_concurrency());
  m.vector_bytes = isa.vector_bits / 8;
  m.vector_registers = registers_of(isa).count;
  m.tensor_cores = false;  // AMX is used by libraries alone
  return m;
}

}  // namespace

kernel::Kernel prepared(const kernel::Kernel& kernel, const Isa& isa) {
  kernel::Kernel expanded = kernel::expand(kernel, {.ldexp = isa.scales});
  return expanded.any_size ? kernel::legalize(expanded, registers_of(isa)) : expanded;
}

CpuTarget::CpuTarget(const CpuOptions& options) : options_(options) {
  initialise_llvm();
  isa_ = resolve(options);
  fingerprint_ = fmt::format("cpu-{} llvm-{} {} {} [{}] {}{}", generator_digest, LLVM_VERSION_STRING, isa_.name,
                             isa_.cpu, isa_.features, isa_.vector_bits, isa_.optimised ? "" : " not optimised");
  machine_ = machine_of(isa_);
  jit_ = std::make_shared<Jit>();
}

std::vector<std::shared_ptr<const Executable>> CpuTarget::compile(std::span<const kernel::Kernel> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Executable>> out(kernels.size());
  std::vector<Digest> digests(kernels.size());
  std::vector<Job> jobs;
  std::unordered_map<Digest, size_t> job_of;
  for (size_t k = 0; k < kernels.size(); ++k) {
    digests[k] = kernel::digest(kernels[k]);
    if (auto found = loaded_.find(digests[k]); found != loaded_.end()) {
      out[k] = found->second;
      ++stats_.from_memory;
      continue;
    }
    Job job{prepared(kernels[k], isa_), {}, {k}};
    job.digest = kernel::digest(job.kernel);
    const auto [found, fresh] = job_of.try_emplace(job.digest, jobs.size());
    if (fresh) jobs.push_back(std::move(job));
    else jobs[found->second].wanted_by.push_back(k);
  }
  build(jobs);
  for (const Job& job : jobs) {
    functions_.emplace(job.digest, job.function);
    stats_.from_memory += static_cast<int64_t>(job.wanted_by.size()) - 1;
    for (size_t k : job.wanted_by) {
      out[k] = std::make_shared<CpuExecutable>(jit_, job.function, programs_of(job.kernel), job.kernel.cluster);
      loaded_.emplace(digests[k], out[k]);
    }
  }
  return out;
}

// Finds the code for each job: from this process, from disk, else from the code generator, on as many threads as there
// are missing kernels.
void CpuTarget::build(std::vector<Job>& jobs) {
  std::vector<Job*> missing;
  for (Job& job : jobs) {
    if (auto found = functions_.find(job.digest); found != functions_.end()) {
      job.function = found->second;
      ++stats_.from_memory;
    } else {
      missing.push_back(&job);
    }
  }
  std::atomic<size_t> next{0};
  const int64_t threads = std::min<int64_t>(runtime::num_threads(), static_cast<int64_t>(missing.size()));
  runtime::parallel_for(threads, [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    std::optional<CodeGenerator> generator;  // created if the disk lacks a kernel
    for (size_t k = next++; k < missing.size(); k = next++) {
      Job& job = *missing[k];
      const std::string symbol = "weft_" + job.digest.hex();
      const Digest key = Hasher().text(fingerprint_).digest(job.digest).finish();
      std::vector<char> object;
      if (options_.disk_cache)
        if (auto entry = runtime::cache_get("cpu", key)) object = unseal(*entry);
      job.generated = object.empty();
      if (job.generated) {
        if (!generator) generator.emplace(isa_);
        object = generator->object(job.kernel, symbol);
        if (options_.disk_cache) {
          const std::vector<char> entry = seal(object);
          runtime::cache_put("cpu", key, entry.data(), entry.size());
        }
      }
      job.function = jit_->load(object, symbol);
    }
  });
  for (const Job* job : missing) ++(job->generated ? stats_.compiled : stats_.from_disk);
}

CompileStats CpuTarget::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

namespace {

/// Returns whether a matmul is limited by reading its matrix, and generated code reads that once: a GEMV of a few rows.
/// oneDNN reads some layouts far below the speed of memory (docs/notes/cpu-matmul.md).
bool is_gemv(const kernel::DotDesc& d, const Machine& machine) {
  constexpr int64_t most_rows = 4;
  if (d.a != float32 || !d.batch.empty() || d.sum != kernel::OperandSum::none || std::min(d.m, d.n) > most_rows)
    return false;
  const Rates rates = stated_rates(machine);
  const double m = static_cast<double>(d.m), n = static_cast<double>(d.n), k = static_cast<double>(d.k);
  const double bytes = static_cast<double>(sizeof(float)) * (m * k + k * n + m * n);
  return d.flops() / rates.peak(Arithmetic::f32) < bytes / rates.memory();
}

}  // namespace

std::shared_ptr<const LibraryCall> CpuTarget::library(const kernel::DotDesc& desc) const {
  // Without tiles (AMX) oneDNN's bfloat16 matmuls reach 92-100 GFLOP/s a core, and generated ones 159-176
  // (docs/performance.md).
  if (!libraries_enabled() || (desc.a == bfloat16 && !isa_.tiles) || is_gemv(desc, machine_)) return nullptr;
  return onednn_dot(desc);
}

std::shared_ptr<const LibraryCall> CpuTarget::call(const kernel::CallDesc& desc) const { return cpu_call(desc); }

namespace {

struct Choice {
  std::mutex mutex;
  std::string isa = "native";
  bool used = false;
};
Choice& choice() {
  static auto* const value = new Choice;
  return *value;
}

CpuTarget* make_chosen() {
  const std::lock_guard lock(choice().mutex);
  choice().used = true;
  return new CpuTarget({choice().isa, true});
}

}  // namespace

void set_cpu_isa(const std::string& isa) {
  initialise_llvm();
  resolve({isa, true});
  const std::lock_guard lock(choice().mutex);
  if (isa == choice().isa) return;
  if (choice().used)
    throw_invalid("cpu target", "code for " + choice().isa +
                                    " is in use already; choose the instruction set before anything is computed");
  limit_onednn(isa);
  choice().isa = isa;
}

namespace {

CpuTarget& chosen() {
  static CpuTarget* const target = make_chosen();  // never destroyed: executables may outlive every static
  return *target;
}

}  // namespace

Target& cpu() { return chosen(); }
const Isa& cpu_isa() { return chosen().isa(); }

}  // namespace weft::target
