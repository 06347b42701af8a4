#pragma once
// Convolutions of few channels by a kernel of our own, and with them gradients of such convolutions' inputs, which are
// convolutions with turned weights. A library call like others: measured_call.h holds it against cuDNN's engines.
//
// In TF32 (wgmma). A block keeps all weights in shared memory and goes through the positions of all images as if they
// were one long line: the zeros behind a row are those before the next one, so that every tap is one distance along
// that line. A tile of 128 positions is multiplied where it lies, once for each tap, at that tap's distance.
//
// Its rule: float32 that may round to TF32; one or two axes of space, one group, stride 1, no input dilation, no
// negative padding; channels of the input in multiples of 32, of the output in multiples of 8 up to 128; weights that
// fit into shared memory beside the tiles.
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/codegen/executable.h"
#include "target/cuda/codegen/render.h"
#include "target/target.h"

namespace weft::target::cuda {

/// To be raised where another kernel may win: choices that were measured with the old one then go unused.
inline constexpr int convolution_version = 1;

/// What code is made for, two axes of space each; the number of images is an argument.
struct ConvolutionForm {
  using Pair = std::array<int64_t, 2>;
  Pair input, output, kernel, dilation, low;
  int64_t in, out;          // channels
  Pair lines{};             // rows and columns of an image on the long line, zeros included
  int64_t groups = 0;       // of four warps, in a block: a tile each
  int64_t plane_bytes = 0;  // of a tile: four channels of all its positions, and of those that its taps reach
  int64_t shared_bytes = 0;

  int64_t reach() const;  // of a position: how much further the last tap reads
  int64_t tiles(int64_t images) const;
  int64_t weight_bytes() const { return kernel[0] * kernel[1] * in * out * 4; }
  std::string symbol() const;  // "convolution_3x3_32_64_on_14x14_…"
};

/// The form, or nothing where the rule says no. `shared_bytes`: of a multiprocessor.
std::optional<ConvolutionForm> convolution_form(const kernel::CallDesc& desc, int64_t shared_bytes);
/// Whether it is likely to beat cuDNN, so that it is worth compiling and measuring.
bool convolution_may_win(const ConvolutionForm& form, int64_t images);

/// The source without the prelude. Arguments: x, weights, result, images (32 bits).
Rendered render_convolution(const ConvolutionForm& form);

/// The kernel of a form on a device.
class ConvolutionKernel {
 public:
  using Compile = std::function<std::vector<char>(const std::string& source)>;
  ConvolutionKernel(Context& context, const ConvolutionForm& form, Compile compile)
      : context_(context), form_(form), compile_(std::move(compile)) {}
  /// Compiled and loaded, where that has not been done.
  const Entry& entry() const;
  Context& context() const { return context_; }
  const ConvolutionForm& form() const { return form_; }

 private:
  Context& context_;
  ConvolutionForm form_;
  Compile compile_;
  mutable std::once_flag once_;
  mutable Entry entry_;
};

/// A convolution of so many images by it.
std::shared_ptr<const LibraryCall> convolution_call(std::shared_ptr<const ConvolutionKernel> kernel, int64_t images);

}  // namespace weft::target::cuda
