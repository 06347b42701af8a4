#pragma once
// Depthwise convolutions and the gradients of their weights, for which libraries' tensor-core engines are an order of
// magnitude too slow: a group of one channel has no matrix to multiply. This is the host side; depthwise.cu and
// depthwise_weights.cu describe the kernels.
//
// They take float32, bfloat16 and float16, summed in float32; one or two axes of space, a group for each channel, of
// one output; any stride and dilation, no input dilation, no negative padding; rows of the filter that fit into
// registers. The gradient of the input at stride 1 is such a convolution too.
#include <array>
#include <optional>
#include <string>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/match.h"
#include "target/cuda/handwritten/convolution/windows.h"

namespace weft::target::cuda {

/// What a kernel is specialized for; the number of images is an argument.
struct DepthwiseForm : ConvolutionWindows {
  Dtype dtype = float32;
  int64_t images = 0, channels = 0;
  int64_t vector = 1;  // neighbouring channels of a thread
  int64_t tile = 1;    // vectors of a block
  int64_t run = 1;     // neighbouring outputs of a thread
  int64_t places = 1;  // runs of a block at a time

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t reach() const { return (run - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1; }
  int64_t runs() const { return images * output[0] * ((output[1] + run - 1) / run); }
  int64_t tiles() const { return (channels + tile * vector - 1) / (tile * vector); }
  double multiplications() const;
  std::string symbol(const std::string& name) const;  // "depthwise_bf16_7x7_160_on_14x14_…"
};

/// Returns the form, or nothing if the kernels do not take the call.
std::optional<DepthwiseForm> depthwise_form(const kernel::CallDesc& desc, int64_t processors);
std::optional<Match> match_depthwise(const kernel::CallDesc& work, const Machine& machine);
std::optional<Match> match_depthwise_weights(const kernel::CallDesc& work, const Machine& machine);

}  // namespace weft::target::cuda
