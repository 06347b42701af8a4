#pragma once
// Where the windows of a convolution lie: what the hand-written kernels are specialized for.
#include <array>
#include <cstdint>
#include <optional>

#include "kernel/describe/desc.h"

namespace weft::target::cuda {

/// The space of a convolution, two axes each; one over a single axis gets a leading axis of one element.
struct ConvolutionWindows {
  using Pair = std::array<int64_t, 2>;
  Pair input = {1, 1}, output = {1, 1}, kernel = {1, 1}, stride = {1, 1}, dilation = {1, 1};
  Pair low = {0, 0};  // padding before the first element
};

/// Returns the windows of a call `convolution` or `convolution_weights` over one or two axes of space. Returns nothing
/// if it dilates its input, crops it (negative padding), or has an empty array.
std::optional<ConvolutionWindows> windows_of(const kernel::CallDesc& desc);

}  // namespace weft::target::cuda
