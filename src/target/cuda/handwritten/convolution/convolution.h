#pragma once
// TF32 convolutions with few channels, including gradients of their inputs, which are convolutions with flipped
// weights. This is the host side; convolution.cu describes the kernel.
//
// It takes float32 that may round to TF32; one or two axes of space, one group, stride 1, no input dilation, no
// negative padding; input channels in multiples of 32, output channels in multiples of 8 up to 128; and weights that
// fit into shared memory together with the tiles.
#include <array>
#include <optional>
#include <string>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/match.h"

namespace weft::target::cuda {

/// What a kernel is specialized for, two axes of space each; the number of images is an argument.
struct ConvolutionForm {
  using Pair = std::array<int64_t, 2>;
  Pair input, output, kernel, dilation, low;
  int64_t in, out;          // channels
  Pair lines{};             // rows and columns of a padded image
  int64_t groups = 0;       // warpgroups of a block, one tile each
  int64_t plane_bytes = 0;  // of a buffer: four channels of all pixels that a tile reads
  int64_t shared_bytes = 0;

  int64_t reach() const;  // how far after a pixel, on the padded line, the last tap reads
  int64_t tiles(int64_t images) const;
  int64_t weight_bytes() const { return kernel[0] * kernel[1] * in * out * 4; }
  std::string symbol() const;  // "convolution_3x3_32_64_on_14x14_…"
};

/// Returns the form, or nothing if the kernel does not take the call. `shared_bytes`: the most that a block may have.
std::optional<ConvolutionForm> convolution_form(const kernel::CallDesc& desc, int64_t shared_bytes);
/// Returns whether the kernel may beat cuDNN, so that compiling and measuring it is worthwhile.
bool convolution_may_win(const ConvolutionForm& form, int64_t images);
std::optional<Match> match_convolution(const kernel::CallDesc& work, const Machine& machine);

}  // namespace weft::target::cuda
