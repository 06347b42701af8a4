#pragma once
// cuDNN's answers: attention with its derivative, and convolutions with their gradients.
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
  bool tf32 = false;          // float32 convolutions may round their operands to TF32
  bool deterministic = true;  // the same bits on every run; for the derivative of attention this costs memory: a
                              // probability for each pair, in 16 bits
  size_t most_probabilities =
      size_t{2} << 30;  // bytes of them at a time: where a derivative has more, its batches and heads alternate
  bool search = true;  // the first run outside of a capture measures engines of a convolution, and two forms of a large
                       // attention's, unless the cache folder knows the winner
  double least_searched_flops = 1e10;  // of attention: some ten microseconds
};

/// Attention whose plan is made in the background.
class CudnnAttention : public LibraryCall {
 public:
  /// Whether cuDNN is known not to take it: `ready` has been false.
  virtual bool declined() const = 0;
  virtual const std::string& why() const = 0;
};
/// A call whose plan is made by `begin`, or by whoever needs it first. Null where the rule says no.
std::shared_ptr<const CudnnAttention> cudnn_attention_call(const kernel::AttentionDesc& desc, Context& context,
                                                           const CudnnOptions& options = {},
                                                           std::string* why = nullptr);

/// A call with plan and workspace made, or null, and then `why` says what was not taken. Operands as
/// kernel::AttentionDesc lists them.
std::shared_ptr<const LibraryCall> cudnn_attention(const kernel::AttentionDesc& desc, Context& context,
                                                   const CudnnOptions& options = {}, std::string* why = nullptr);
/// "convolution" (x, w, y) and "convolution_weights" (x, g, dw): their integers are those of
/// graph/regions/convolution.h.
std::shared_ptr<const LibraryCall> cudnn_convolution(const kernel::CallDesc& desc, Context& context,
                                                     const CudnnOptions& options = {}, std::string* why = nullptr);

}  // namespace weft::target::cuda
