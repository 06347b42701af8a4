#include "target/cuda/handwritten/convolution/windows.h"

#include <algorithm>

namespace weft::target::cuda {

std::optional<ConvolutionWindows> windows_of(const kernel::CallDesc& desc) {
  const bool weights = desc.name == "convolution_weights";
  if ((desc.name != "convolution" && !weights) || desc.integers.empty()) return std::nullopt;
  const size_t space = (desc.integers.size() - 1) / 5;
  if (space < 1 || space > 2) return std::nullopt;
  for (const auto& a : {desc.inputs[0], desc.inputs[1], desc.outputs[0]})
    if (std::any_of(a.extents.begin(), a.extents.end(), [](int64_t e) { return e < 1; })) return std::nullopt;
  const auto &x = desc.inputs[0].extents, &second = desc.inputs[1].extents, &result = desc.outputs[0].extents,
             &w = weights ? result : second, &y = weights ? second : result;
  ConvolutionWindows f;
  for (size_t k = 0; k < space; ++k) {
    const size_t axis = 2 - space + k;
    const auto integer = [&](size_t what) { return desc.integers[1 + what * space + k]; };
    f.input[axis] = x[1 + k], f.output[axis] = y[1 + k], f.kernel[axis] = w[1 + k];
    f.stride[axis] = integer(0), f.low[axis] = integer(1), f.dilation[axis] = integer(3);
    if (f.low[axis] < 0 || integer(2) < 0 || integer(4) != 1) return std::nullopt;
  }
  return f;
}

}  // namespace weft::target::cuda
