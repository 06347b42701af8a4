#include "target/cuda/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>

#include "base/error.h"
#include "runtime/background.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "target/cuda/calls.h"
#include "target/cuda/codegen/executable.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/generator_digest.h"  // of the code generator: cubins on disk of another one go unused
#include "target/cuda/handwritten/loaded.h"
#include "target/cuda/inspect.h"
#include "target/cuda/libraries/cublaslt.h"
#include "target/cuda/libraries/cudnn.h"

namespace weft::target {
namespace cuda {
namespace {

constexpr size_t most_kernels_per_source = 16;

size_t instructions(const kernel::Block& block) {
  size_t count = block.insts.size();
  for (const kernel::Inst& inst : block.insts)
    for (const kernel::Block& inner : inst.blocks) count += instructions(inner);
  return count;
}

}  // namespace

CudaTarget::CudaTarget(Context* context, Machine machine, bool disk_cache)
    : context_(context), disk_cache_(disk_cache) {
  machine_ = std::move(machine);
  fingerprint_ = fmt::format("cuda-{} nvrtc-{} {}", generator_digest, nvrtc_version(), machine_.arch);
  if (context_) {
    const auto compile = [this](const std::string& source) { return cubin(source); };
    handwritten_ = std::make_unique<HandwrittenKernels>(*context_, compile, machine_);
  }
  calls_ = std::make_unique<CallLibraries>(*this, context_, handwritten_.get());
  if (!context_) return;
  memory_ = std::make_unique<CudaMemory>(*context_);
  // The library loads half a gigabyte, and nearly every program has a matmul.
  runtime::begin_in_background([context] { start_cublaslt(*context); });
}

CudaTarget::~CudaTarget() = default;

Features CudaTarget::features() const { return features_of(machine()); }

/// Returns the cubin of a source from the disk cache, else compiles it.
std::vector<char> CudaTarget::cubin(const std::string& source) {
  const Digest key = Hasher().text(fingerprint_).text(source).finish();
  if (disk_cache_)
    if (auto entry = runtime::cache_get("cuda", key)) {
      std::lock_guard lock(mutex_);
      ++stats_.from_disk;
      return std::move(*entry);
    }
  std::string log;
  std::vector<char> code = cuda::compile(source, machine().arch, {}, &log);
  if (disk_cache_) runtime::cache_put("cuda", key, code.data(), code.size());
  std::lock_guard lock(mutex_);
  ++stats_.compiled;
  for (KernelUsage& use : parse_usage(log)) usage_.push_back(std::move(use));
  return code;
}

/// Compiles without a device. Several kernels share a source, so that NVRTC parses the prelude once for all of them;
/// the sources are compiled in parallel.
void CudaTarget::only_compile(std::span<const std::shared_ptr<CudaExecutable>> kernels) {
  const auto threads = static_cast<size_t>(std::max(1, runtime::num_threads()));
  const size_t each = std::clamp<size_t>((kernels.size() + threads - 1) / threads, 1, most_kernels_per_source),
               sources = (kernels.size() + each - 1) / each;
  runtime::parallel_for(static_cast<int64_t>(sources), [&](int64_t begin, int64_t end) {
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
      std::string source(prelude());
      for (const auto& kernel : kernels.subspan(s * each, std::min(each, kernels.size() - s * each)))
        if (kernel->has_code()) kernel->cubin(kernel->rendered({}));  // alone: it may be wrong
        else source += kernel->rendered({}).source;
      cubin(source);
    }
  });
}

/// Returns the executable of a kernel, from the table if it is known; sets `fresh` if it is new.
std::shared_ptr<CudaExecutable> CudaTarget::executable(const kernel::Kernel& kernel, bool* fresh) {
  const Digest digest = kernel::digest(kernel);
  std::lock_guard lock(mutex_);
  std::shared_ptr<CudaExecutable>& known = loaded_[digest];
  *fresh = !known;
  if (known) ++stats_.from_memory;
  else known = std::make_shared<CudaExecutable>(*this, context_, kernel, "k_" + digest.hex());
  return known;
}

std::vector<std::shared_ptr<const Executable>> CudaTarget::compile(std::span<const kernel::Kernel> kernels) {
  std::vector<std::shared_ptr<const Executable>> out;
  std::vector<std::shared_ptr<CudaExecutable>> wanted;
  for (const kernel::Kernel& kernel : kernels) {
    bool fresh = false;
    const std::shared_ptr<CudaExecutable> made = executable(kernel, &fresh);
    out.push_back(made);
    if (context_ || fresh) wanted.push_back(made);
  }
  if (!context_) {
    try {
      only_compile(wanted);
    } catch (...) {
      std::lock_guard lock(mutex_);
      for (const kernel::Kernel& kernel : kernels)
        loaded_.erase(kernel::digest(kernel));  // so that a later call compiles them again
      throw;
    }
    return out;
  }
  for (const auto& kernel : wanted) kernel->begin(1);
  for (const auto& kernel : wanted) kernel->entry({});
  return out;
}

std::vector<std::shared_ptr<const Executable>> CudaTarget::begin(std::span<const kernel::Kernel> kernels,
                                                                 std::span<const std::vector<size_t>> segments) {
  if (!context_) return compile(kernels);
  std::vector<std::shared_ptr<const Executable>> out;
  std::vector<std::pair<size_t, size_t>> order;  // longest first, so that the last to begin does not take longest
  std::vector<std::shared_ptr<CudaExecutable>> made;
  for (size_t k = 0; k < kernels.size(); ++k) {
    bool fresh = false;
    made.push_back(executable(kernels[k], &fresh));
    order.emplace_back(instructions(kernels[k].body), k);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [length, k] : order)
    for (const size_t count : segments[k]) made[k]->begin(count);
  out.assign(made.begin(), made.end());
  return out;
}

std::string CudaTarget::objection(const kernel::Kernel& kernel) {
  const KernelCode code = code_of(kernel, machine());
  if (code.serialized) return "its products by warpgroups (wgmma) wait for each other";
  const int64_t spilled = code.usage.spill_store_bytes + code.usage.spill_load_bytes;
  return spilled > 0 ? fmt::format("spills {} bytes of registers", spilled) : "";
}

CompileStats CudaTarget::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<KernelUsage> CudaTarget::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

/// Returns the matmul, kept by descriptor: every layer of a model asks for the same ones, and asking reads the disk
/// cache and calls cuBLASLt. cuBLASLt has no epilogue that sums C's rows.
std::shared_ptr<const LibraryCall> CudaTarget::library(const kernel::DotDesc& desc) const {
  if (!libraries_enabled() || !context_) return nullptr;
  std::lock_guard lock(dots_mutex_);
  const auto [found, fresh] = dots_.try_emplace(desc.digest(), nullptr);
  if (!fresh) return found->second;
  std::vector<Candidate> own = calls_->products(desc);
  if (desc.sum == kernel::OperandSum::c) return found->second = own.empty() ? nullptr : own[0].call;
  return found->second = cublaslt(desc, *context_, {.tf32 = desc.numerics.tf32, .others = std::move(own)});
}

/// Returns the attention, kept by descriptor: a plan takes a second to make, and every layer asks for the same one.
std::shared_ptr<const LibraryCall> CudaTarget::attention(const kernel::AttentionDesc& desc) const {
  if (!libraries_enabled() || !context_) return nullptr;
  std::lock_guard lock(attention_mutex_);
  const auto [found, fresh] = attention_.try_emplace(desc.digest());
  LibraryAttention& known = found->second;
  if (fresh) {
    known.library = cudnn_attention_call(desc, *context_, {.deterministic = desc.numerics.deterministic});
    if (known.library) known.call = calls_->attention(desc, known.library);
  } else if (known.library && known.library->declined()) {
    known.call = nullptr;
  }
  return known.call;
}

std::shared_ptr<const LibraryCall> CudaTarget::call(const kernel::CallDesc& desc) const { return calls_->call(desc); }

}  // namespace cuda

int gpu_count() { return cuda::device_count(); }

Target& gpu(int ordinal) {
  static std::mutex mutex;
  static auto& targets =
      *new std::map<int, cuda::CudaTarget*>;  // never destroyed: compiled programs may outlive static objects
  std::lock_guard lock(mutex);
  auto [at, added] = targets.try_emplace(ordinal, nullptr);
  if (!at->second) {
    try {
      cuda::Context& context = cuda::context(ordinal);
      at->second = new cuda::CudaTarget(context);
    } catch (...) {
      targets.erase(at);
      throw;
    }
  }
  return *at->second;
}

}  // namespace weft::target
