#pragma once
// TF32 gradients of a convolution's weights. This is the host side; convolution_wgrad.cu describes the kernel.
//
// It takes float32 that may round to TF32; one or two axes of space, one group, no input dilation, no negative padding;
// channels in multiples of 32.
#include <array>
#include <optional>
#include <string>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/match.h"
#include "target/cuda/handwritten/convolution/windows.h"

namespace weft::target::cuda {

/// What a kernel is specialized for; the number of images is an argument.
struct WgradForm : ConvolutionWindows {
  int64_t in = 0, out = 0;  // channels
  // How the work is split.
  Pair tile{};         // of the output
  int64_t taps = 0;    // taps of one warp
  int64_t sets = 0;    // sets of taps in a block
  int64_t halves = 0;  // groups of 32 output channels in a block
  int64_t parts = 0;   // parts of a tile's pixels in a block
  int64_t stages = 0;  // pipeline stages
  int64_t stage_bytes = 0, shared_bytes = 0;

  int64_t depth() const;   // pixels of a tile, rounded up to whole steps
  int64_t blocks() const;  // that read the same images, for different channels and taps
  int64_t tiles_of_image() const;
  int64_t results() const { return kernel[0] * kernel[1] * in * out; }
  int64_t threads() const { return sets * halves * parts * 32; }
  std::string symbol() const;  // of the kernel: "convolution_wgrad_3x3_32_64_on_14x14_…"
};

/// Returns the form, or nothing if the kernel does not take the call. `shared_bytes`: of an SM, which runs two blocks.
std::optional<WgradForm> wgrad_form(const kernel::CallDesc& desc, int64_t shared_bytes);
/// Returns the number of parts that the images are split into; each part has form.blocks() blocks.
int64_t wgrad_parts(const WgradForm& form, int64_t images, int64_t sms);
/// Returns whether the kernel may beat cuDNN, so that compiling and measuring it is worthwhile.
bool wgrad_may_win(const WgradForm& form, int64_t images, int64_t sms);
std::optional<Match> match_convolution_wgrad(const kernel::CallDesc& work, const Machine& machine);

}  // namespace weft::target::cuda
