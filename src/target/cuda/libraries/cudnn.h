#pragma once
// Attention with its derivative, and convolutions with their gradients, by cuDNN.
//
// It takes attention
//   - in bf16 or f16, with float32 sums, on devices from compute capability 8.0 on;
//   - with widths that are multiples of 8, up to 256 forward and 128 backward (what the engines of the device allow
//     decides);
//   - with columns of stride 1 and other strides that are multiples of 8, so that heads may lie inside of packed rows;
//     addresses are multiples of 16 bytes;
//   - causal only where there are at least as many keys as queries.
// It takes convolutions in bf16, f16 or f32 with one to three axes of space, channels last, and f32 without TF32 unless
// that is asked for.
#include <memory>
#include <string>

#include "kernel/describe/attention_desc.h"
#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

struct CudnnOptions {
  bool tf32 = false;  // float32 convolutions may round their operands to TF32
  // The same bits in every run. For the derivative of attention this needs memory: a 16-bit probability for each pair.
  bool deterministic = true;
  // Bytes of these probabilities at a time: a derivative that needs more is computed in slices of batches and heads.
  size_t most_probabilities = size_t{2} << 30;
  // Unless the cache folder has a choice, the first run outside of a capture measures engines of a convolution, or two
  // forms of a large attention's plan.
  bool search = true;
  double least_searched_flops = 1e10;  // of attention: some ten microseconds of work
};

/// Attention whose plan is made in the background.
class CudnnAttention : public LibraryCall {
 public:
  /// Returns whether cuDNN is known not to take it; `ready` then returned false.
  virtual bool declined() const = 0;
  virtual const std::string& why() const = 0;
};
/// Returns a call whose plan is made by `begin`, or else by its first use. Null where the rule above says no.
std::shared_ptr<const CudnnAttention> cudnn_attention_call(const kernel::AttentionDesc& desc, Context& context,
                                                           const CudnnOptions& options = {},
                                                           std::string* why = nullptr);

/// Returns a call with plan and workspace made. Null if it is not taken; `why` then says why. Operands as listed in
/// kernel::AttentionDesc.
std::shared_ptr<const LibraryCall> cudnn_attention(const kernel::AttentionDesc& desc, Context& context,
                                                   const CudnnOptions& options = {}, std::string* why = nullptr);
/// Returns "convolution" (x, w, y), "convolution_input" (g, w, dx) or "convolution_weights" (x, g, dw), with the
/// integers of graph/regions/convolution.h.
std::shared_ptr<const LibraryCall> cudnn_convolution(const kernel::CallDesc& desc, Context& context,
                                                     const CudnnOptions& options = {}, std::string* why = nullptr);

}  // namespace weft::target::cuda
