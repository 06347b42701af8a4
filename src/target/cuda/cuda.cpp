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
#include "target/cuda/codegen/executable.h"
#include "target/cuda/codegen/prelude.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/driver/measured_call.h"
#include "target/cuda/handwritten/convolution.h"
#include "target/cuda/handwritten/convolution_wgrad.h"
#include "target/cuda/handwritten/gemm.h"
#include "target/cuda/handwritten/scatter_add_rows.h"
#include "target/cuda/host_call.h"
#include "target/cuda/libraries/cublaslt.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/libraries/cufft.h"
#include "target/cuda/libraries/cusolver.h"
#include "target/cuda/routine_call.h"

namespace weft::target {
namespace cuda {
namespace {

// To be raised with every change to the renderer or kernel/expand that changes code: old cubins on disk then go unused.
constexpr int generator_version = 21;

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
  fingerprint_ = fmt::format("cuda-{} nvrtc-{} {}", generator_version, nvrtc_version(), machine_.arch);
  if (!context_) return;
  memory_ = std::make_unique<CudaMemory>(*context_);
  runtime::begin_in_background(
      [context] { start_cublaslt(*context); });  // half a gigabyte: nearly every program has a product
}

CudaTarget::~CudaTarget() = default;

Features CudaTarget::features() const { return {machine().arch == "sm_90a", machine().has_clusters()}; }

/// Machine code for a source: from disk, else from the compiler.
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

/// Without a device: several kernels share a source, so that the prelude is read once for all of them, and several
/// sources are compiled side by side.
void CudaTarget::only_compile(std::span<const std::shared_ptr<CudaExecutable>> kernels) {
  const auto threads = static_cast<size_t>(std::max(1, runtime::num_threads()));
  const size_t each = std::clamp<size_t>((kernels.size() + threads - 1) / threads, 1, most_kernels_per_source),
               sources = (kernels.size() + each - 1) / each;
  runtime::parallel_for(static_cast<int64_t>(sources), [&](int64_t begin, int64_t end) {
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
      std::string source(prelude);
      for (const auto& kernel : kernels.subspan(s * each, std::min(each, kernels.size() - s * each)))
        source += kernel->rendered({}).source;
      cubin(source);
    }
  });
}

/// Its position in the table, where it may have been before.
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
      for (const kernel::Kernel& kernel : kernels) loaded_.erase(kernel::digest(kernel));  // they are looked at again
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
  std::vector<std::pair<size_t, size_t>> order;  // long ones first: what begins last should not be what takes longest
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

CompileStats CudaTarget::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<KernelUsage> CudaTarget::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

/// Every layer of a model asks for the same ones, which look for their algorithms on disk and ask cuBLASLt.
std::shared_ptr<const LibraryCall> CudaTarget::library(const kernel::DotDesc& desc) {
  if (!libraries_enabled() || !context_) return nullptr;
  const Digest key = desc.digest();
  std::lock_guard lock(table_mutex_);
  if (const auto known = dots_.find(key); known != dots_.end()) return known->second;
  const std::shared_ptr<const Product> own = product(desc);
  if (desc.sum == kernel::OperandSum::c) return dots_[key] = own;
  return dots_[key] = cublaslt(desc, *context_, {.tf32 = desc.numerics.tf32, .own = own});
}

/// Null where our own kernel is not worth a try.
std::shared_ptr<const Product> CudaTarget::product(const kernel::DotDesc& desc) {
  kernel::DotDesc merged;
  const std::optional<ProductForm> form = features().warpgroups ? product_form(desc, &merged) : std::nullopt;
  if (!form || !product_may_win(merged)) return nullptr;
  std::lock_guard lock(mutex_);
  std::shared_ptr<const ProductKernel>& kernel = products_[form->symbol()];
  if (!kernel) {
    kernel =
        std::make_shared<ProductKernel>(*context_, *form, [this](const std::string& source) { return cubin(source); });
    runtime::begin_in_background([kernel] { kernel->entry(); });
  }
  return std::make_shared<Product>(kernel, merged);
}

/// Plans take a second to make, and every layer of a model asks for the same one.
std::shared_ptr<const LibraryCall> CudaTarget::attention(const kernel::AttentionDesc& desc) {
  if (!libraries_enabled() || !context_) return nullptr;
  std::lock_guard lock(mutex_);
  const auto [found, fresh] = attention_.try_emplace(desc.digest(), nullptr);
  if (fresh) found->second = begin_cudnn_attention(desc, *context_, {.deterministic = desc.numerics.deterministic});
  else if (found->second && found->second->declined()) found->second = nullptr;
  return found->second;
}

/// A composite that neither a library nor generated kernels answer goes through its body; what has none (transforms,
/// decompositions) is computed on the host.
std::shared_ptr<const LibraryCall> CudaTarget::call(const kernel::CallDesc& desc) {
  if (desc.name.ends_with("fft")) {
    if (!context_) return cpu().call(desc);
    auto call = cufft_call(desc, *context_);
    return call ? call : host_call(desc, *context_);
  }
  if (!desc.name.starts_with("convolution")) {
    if (auto generated = routine_call(desc, *this, context_))
      return desc.name == "scatter_rows" && context_ && !desc.numerics.deterministic
                 ? row_adds(desc, std::move(generated))
                 : generated;
    if (!context_) return cpu().call(desc);
    auto call = cusolver_call(desc, *context_, linalg_kernels());
    return call ? call : host_call(desc, *context_);
  }
  if (!context_) return cpu().call(desc);  // in the place of cuDNN
  if (!libraries_enabled()) return nullptr;
  auto library =
      cudnn_convolution(desc, *context_, {.tf32 = desc.numerics.tf32, .deterministic = desc.numerics.deterministic});
  const auto own = !library ? nullptr : desc.name == "convolution" ? convolution(desc) : weight_gradient(desc);
  if (!own) return library;
  const Digest key = Hasher()
                         .digest(desc.digest())
                         .text(version(cudnn_library()))
                         .number(desc.name == "convolution" ? convolution_version : weight_gradient_version)
                         .finish();
  return measured_call(*context_, {std::move(library), own}, key, desc.to_string());
}

/// `ordered` where sums of rows in no order have no kernel.
std::shared_ptr<const LibraryCall> CudaTarget::row_adds(const kernel::CallDesc& desc,
                                                        std::shared_ptr<const LibraryCall> ordered) {
  std::lock_guard lock(table_mutex_);
  std::shared_ptr<const LibraryCall>& call = row_adds_[desc.digest()];
  if (!call)
    call = row_adds_call(
        desc, *context_, [this](const std::string& source) { return cubin(source); }, ordered);
  if (!call) call = std::move(ordered);
  return call;
}

std::shared_ptr<const LinalgKernels> CudaTarget::linalg_kernels() {
  std::lock_guard lock(mutex_);
  if (!linalg_kernels_)
    linalg_kernels_ =
        std::make_shared<LinalgKernels>(*context_, [this](const std::string& source) { return cubin(source); });
  return linalg_kernels_;
}

/// Null where our own kernel does not take it, or is not worth a try.
std::shared_ptr<const LibraryCall> CudaTarget::convolution(const kernel::CallDesc& desc) {
  const std::optional<ConvolutionForm> form =
      features().warpgroups ? convolution_form(desc, machine().tensor_core_bytes(float32)) : std::nullopt;
  const int64_t images = form ? desc.inputs[0].extents[0] : 0;
  if (!form || !convolution_may_win(*form, images)) return nullptr;
  std::lock_guard lock(mutex_);
  std::shared_ptr<const ConvolutionKernel>& kernel = convolutions_[form->symbol()];
  if (!kernel) {
    kernel = std::make_shared<ConvolutionKernel>(*context_, *form,
                                                 [this](const std::string& source) { return cubin(source); });
    runtime::begin_in_background([kernel] { kernel->entry(); });
  }
  return convolution_call(kernel, images);
}

/// Null where our own kernels do not take it, or are not worth a try.
std::shared_ptr<const LibraryCall> CudaTarget::weight_gradient(const kernel::CallDesc& desc) {
  const std::optional<WeightGradientForm> form = weight_gradient_form(desc, machine().tensor_core_bytes(float32));
  const int64_t images = form ? desc.inputs[0].extents[0] : 0;
  if (!form || !weight_gradient_may_win(*form, images)) return nullptr;
  std::lock_guard lock(mutex_);
  std::shared_ptr<const WeightGradientKernels>& kernels = weight_gradients_[form->symbol()];
  if (!kernels) {
    kernels = std::make_shared<WeightGradientKernels>(*context_, *form,
                                                      [this](const std::string& source) { return cubin(source); });
    runtime::begin_in_background([kernels] { kernels->load(); });
  }
  return weight_gradient_call(kernels, images);
}

}  // namespace cuda

int gpu_count() { return cuda::device_count(); }

Target& gpu(int ordinal) {
  static std::mutex mutex;
  static auto& targets = *new std::map<int, cuda::CudaTarget*>;  // compiled programs may outlive static objects
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
