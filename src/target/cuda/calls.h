#pragma once
// Chooses the implementation of a call by its name, from a table of libraries, routines and hand-written kernels
// (calls.cpp).
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernel/describe/attention_desc.h"
#include "kernel/describe/desc.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

class HandwrittenKernels;
class LinalgKernels;

class CallLibraries {
 public:
  /// `context` and `handwritten` are null without a device; the CPU's routines then stand in for libraries.
  CallLibraries(Target& target, Context* context, const HandwrittenKernels* handwritten)
      : target_(target), context_(context), handwritten_(handwritten) {}

  /// Returns the first provider's implementation of the call. Null if no provider takes it: a composite is then
  /// replaced by its body.
  std::shared_ptr<const LibraryCall> call(const kernel::CallDesc& desc) const;
  /// Returns what is measured beside a library's product.
  std::vector<Candidate> products(const kernel::DotDesc& desc) const;
  /// Returns a choice between the library's attention and generated kernels, which the first run measures; the
  /// library's call alone where there are no such kernels. Where the library declines, the choice does.
  std::shared_ptr<const LibraryCall> attention(const kernel::AttentionDesc& desc,
                                               std::shared_ptr<const LibraryCall> library) const;

  // The providers. Each returns null if it does not take the call.
  std::shared_ptr<const LibraryCall> generated(const kernel::CallDesc& desc) const;  // tile kernels
  std::shared_ptr<const LibraryCall> cpu_stand_in(const kernel::CallDesc& desc) const;
  std::shared_ptr<const LibraryCall> host(const kernel::CallDesc& desc) const;  // the CPU's routine, with copies
  std::shared_ptr<const LibraryCall> fft(const kernel::CallDesc& desc) const;
  std::shared_ptr<const LibraryCall> linalg(const kernel::CallDesc& desc) const;
  std::shared_ptr<const LibraryCall> convolution(const kernel::CallDesc& desc) const;
  std::shared_ptr<const LibraryCall> scatter_add(const kernel::CallDesc& desc) const;

 private:
  Target& target_;
  Context* context_;
  const HandwrittenKernels* handwritten_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const LinalgKernels> linalg_kernels_;
  mutable std::unordered_map<Digest, std::shared_ptr<const LibraryCall>> scatters_;  // by descriptor
};

}  // namespace weft::target::cuda
