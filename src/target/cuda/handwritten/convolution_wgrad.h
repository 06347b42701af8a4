#pragma once
// Gradients of a convolution's weights by kernels of our own: few results (taps x channels), each a sum over all
// positions of all images. A library call like others: measured_call.h holds it against cuDNN's engines.
//
// A product [taps · channels of the input, positions] x [positions, channels of the output] in TF32 (mma.sync). A block
// goes through tiles of an image: both arrays' elements lie in a ring in shared memory, where every tap reads them at
// its own distance. Blocks take disjoint parts of the images; a second kernel adds up what they leave, in a fixed
// order.
//
// Its rule: float32 that may round to TF32; one or two axes of space, one group, no input dilation, no negative
// padding; channels in multiples of 32.
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
#include "target/cuda/driver/workspace.h"
#include "target/target.h"

namespace weft::target::cuda {

/// To be raised where another kernel may win: choices that were measured with the old one then go unused.
inline constexpr int weight_gradient_version = 1;

/// What code is made for, two axes of space each; the number of images is an argument.
struct WeightGradientForm {
  using Pair = std::array<int64_t, 2>;
  Pair input, output, kernel, stride, dilation, low;
  int64_t in, out;  // channels
  // How the work is dealt out.
  Pair tile{};         // of the output, at a time
  int64_t taps = 0;    // of one warp
  int64_t sets = 0;    // of taps, in a block
  int64_t halves = 0;  // of 32 output channels, in a block
  int64_t parts = 0;   // of a tile's positions, in a block
  int64_t stages = 0;  // of the ring
  int64_t stage_bytes = 0, shared_bytes = 0;

  int64_t depth() const;   // positions of a tile, with what fills it up
  int64_t blocks() const;  // that go through the same images: for other channels, other taps
  int64_t tiles_of_image() const;
  int64_t results() const { return kernel[0] * kernel[1] * in * out; }
  int64_t threads() const { return sets * halves * parts * 32; }
  std::string symbol() const;  // of the kernel: "weight_gradient_3x3_32_64_on_14x14_…"
};

/// The form, or nothing where the rule says no. `shared_bytes`: of a multiprocessor, which runs two blocks.
std::optional<WeightGradientForm> weight_gradient_form(const kernel::CallDesc& desc, int64_t shared_bytes);
/// Parts of the images, a block each (or form.blocks()).
int64_t weight_gradient_parts(const WeightGradientForm& form, int64_t images, int64_t multiprocessors);
/// Whether it is likely to beat cuDNN, so that it is worth compiling and measuring.
bool weight_gradient_may_win(const WeightGradientForm& form, int64_t images);

/// Sources without the prelude; both kernels stand in the first one's. Arguments: x, g, partial sums [parts, taps, in,
/// out], images (32 bits); partial sums, result, parts (32 bits).
struct RenderedWeightGradient {
  Rendered parts, fold;
};
RenderedWeightGradient render_weight_gradient(const WeightGradientForm& form);

/// The kernels of a form on a device.
class WeightGradientKernels {
 public:
  using Compile = std::function<std::vector<char>(const std::string& source)>;
  WeightGradientKernels(Context& context, const WeightGradientForm& form, Compile compile)
      : context_(context), form_(form), compile_(std::move(compile)) {}
  /// Compiles and loads them, where that has not been done.
  void load() const;
  const Entry& parts() const { return load(), parts_; }
  const Entry& fold() const { return load(), fold_; }
  Context& context() const { return context_; }
  const WeightGradientForm& form() const { return form_; }

 private:
  Context& context_;
  WeightGradientForm form_;
  Compile compile_;
  mutable std::once_flag once_;
  mutable Entry parts_, fold_;
};

/// A gradient by them, for so many images. Throws where the device has no memory for the partial sums.
std::shared_ptr<const LibraryCall> weight_gradient_call(std::shared_ptr<const WeightGradientKernels> kernels,
                                                        int64_t images);

}  // namespace weft::target::cuda
