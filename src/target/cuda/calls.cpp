#include "target/cuda/calls.h"

#include <span>
#include <string_view>

#include "kernels/attention/desc.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/handwritten/linalg_kernels.h"
#include "target/cuda/handwritten/loaded.h"
#include "target/cuda/host_call.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/libraries/cufft.h"
#include "target/cuda/libraries/cusolver.h"
#include "target/cuda/routine_call.h"

namespace weft::target::cuda {

namespace {

using Provider = std::shared_ptr<const LibraryCall> (CallLibraries::*)(const kernel::CallDesc&) const;
using Calls = CallLibraries;

/// Providers in the order in which they are asked.
constexpr Provider transforms[] = {&Calls::cpu_stand_in, &Calls::fft, &Calls::host};
constexpr Provider convolutions[] = {&Calls::cpu_stand_in, &Calls::convolution};
constexpr Provider scatters[] = {&Calls::scatter_add, &Calls::cpu_stand_in, &Calls::host};
constexpr Provider others[] = {&Calls::generated, &Calls::cpu_stand_in, &Calls::linalg, &Calls::host};

struct Row {
  std::string_view name;
  std::span<const Provider> providers;
};
constexpr Row table[] = {
    {"fft", transforms},
    {"rfft", transforms},
    {"irfft", transforms},
    {"convolution", convolutions},
    {"convolution_input", convolutions},
    {"convolution_weights", convolutions},
    {"scatter_rows", scatters},
};

std::span<const Provider> providers_of(std::string_view name) {
  for (const Row& row : table)
    if (row.name == name) return row.providers;
  return others;
}

}  // namespace

std::shared_ptr<const LibraryCall> CallLibraries::call(const kernel::CallDesc& desc) const {
  for (const Provider provider : providers_of(desc.name))
    if (auto made = (this->*provider)(desc)) return made;
  return nullptr;
}

std::vector<Candidate> CallLibraries::products(const kernel::DotDesc& desc) const {
  return generated_products(desc, target_);
}

std::shared_ptr<const LibraryCall> CallLibraries::attention(const kernel::AttentionDesc& desc,
                                                            std::shared_ptr<const LibraryCall> library) const {
  constexpr int64_t library_alignment = 16;
  if (!context_ || !kernels::attention_may_win(desc)) return library;
  const std::string library_version = version(cudnn_library());
  if (library_version.empty()) return library;  // it will decline, and the compiler then makes the kernels
  std::vector<Candidate> all = generated_attention(desc, target_, context_);
  if (all.empty()) return library;
  all.insert(all.begin(), Candidate{std::move(library), "cudnn " + library_version, library_alignment});
  const Digest key = Hasher().digest(device_digest(*context_)).digest(desc.digest()).finish();
  return std::make_shared<Candidates>(std::make_unique<EventTimer>(*context_, desc.to_string()), std::move(all),
                                      Candidates::Choose::by_measurement, key);
}

std::shared_ptr<const LibraryCall> CallLibraries::generated(const kernel::CallDesc& desc) const {
  return routine_call(desc, target_, context_);
}

std::shared_ptr<const LibraryCall> CallLibraries::cpu_stand_in(const kernel::CallDesc& desc) const {
  return context_ ? nullptr : cpu().call(desc);
}

std::shared_ptr<const LibraryCall> CallLibraries::host(const kernel::CallDesc& desc) const {
  return context_ ? host_call(desc, *context_) : nullptr;
}

std::shared_ptr<const LibraryCall> CallLibraries::fft(const kernel::CallDesc& desc) const {
  return context_ ? cufft_call(desc, *context_) : nullptr;
}

std::shared_ptr<const LibraryCall> CallLibraries::linalg(const kernel::CallDesc& desc) const {
  if (!context_) return nullptr;
  std::lock_guard lock(mutex_);
  if (!linalg_kernels_) linalg_kernels_ = std::make_shared<LinalgKernels>(*context_, handwritten_->compiler());
  return cusolver_call(desc, *context_, linalg_kernels_);
}

/// Returns a choice between cuDNN and hand-written kernels where cuDNN takes the call; the first run measures them.
std::shared_ptr<const LibraryCall> CallLibraries::convolution(const kernel::CallDesc& desc) const {
  if (!context_ || !libraries_enabled()) return nullptr;
  auto library =
      cudnn_convolution(desc, *context_, {.tf32 = desc.numerics.tf32, .deterministic = desc.numerics.deterministic});
  if (!library) return nullptr;
  std::vector<Candidate> own = handwritten_->candidates(desc);
  if (own.empty()) return library;
  std::vector<Candidate> all = {{std::move(library), "cudnn"}};
  all.insert(all.end(), own.begin(), own.end());
  const Digest key =
      Hasher().digest(device_digest(*context_)).digest(desc.digest()).text(version(cudnn_library())).finish();
  return std::make_shared<Candidates>(std::make_unique<EventTimer>(*context_, desc.to_string()), std::move(all),
                                      Candidates::Choose::by_measurement, key);
}

/// Returns atomic additions if sums may differ between runs and operands are aligned to 16 bytes, else sorted
/// additions.
std::shared_ptr<const LibraryCall> CallLibraries::scatter_add(const kernel::CallDesc& desc) const {
  auto sorted = generated(desc);
  if (!context_ || !sorted) return sorted;
  std::vector<Candidate> all = handwritten_->candidates(desc, true);
  if (all.empty()) return sorted;
  std::lock_guard lock(mutex_);
  std::shared_ptr<const LibraryCall>& known = scatters_[desc.digest()];
  if (known) return known;
  all.push_back({std::move(sorted), "sorted"});
  return known = std::make_shared<Candidates>(std::make_unique<EventTimer>(*context_, desc.to_string()), std::move(all),
                                              Candidates::Choose::in_order, desc.digest());
}

}  // namespace weft::target::cuda
