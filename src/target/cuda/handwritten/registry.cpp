#include "target/cuda/handwritten/registry.h"

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/handwritten/convolution/convolution.h"
#include "target/cuda/handwritten/convolution/convolution_wgrad.h"
#include "target/cuda/handwritten/convolution/depthwise.h"
#include "target/cuda/handwritten/scatter_add_rows.h"

namespace weft::target::cuda {

namespace {

constexpr HandwrittenKernel table[] = {
    {"convolution", 2, "convolution/convolution.cu", match_convolution},
    {"convolution_wgrad", 2, "convolution/convolution_wgrad.cu", match_convolution_wgrad},
    {"depthwise", 2, "convolution/depthwise.cu", match_depthwise},
    {"depthwise_weights", 2, "convolution/depthwise_weights.cu", match_depthwise_weights},
    {"scatter_add_rows", 2, "scatter_add_rows.cu", match_scatter_add_rows, true},
    {"linalg", 1, "linalg.cu", nullptr},
};

}  // namespace

std::span<const HandwrittenKernel> handwritten_kernels() { return table; }

const HandwrittenKernel& handwritten_kernel(std::string_view name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.name == name; });
  if (found == std::end(table)) throw_internal("handwritten kernels", "no row " + std::string(name));
  return *found;
}

std::string source_of(const HandwrittenKernel& kernel, std::string_view parameters) {
  return std::string(parameters) + cuda_source("target/cuda/handwritten/" + std::string(kernel.file));
}

std::vector<Found> matches(const kernel::CallDesc& work, const Machine& machine,
                           std::span<const HandwrittenKernel> table) {
  std::vector<Found> out;
  for (const HandwrittenKernel& kernel : table)
    if (auto match = kernel.match ? kernel.match(work, machine) : std::nullopt; match && match->may_win)
      out.push_back({&kernel, std::move(*match)});
  return out;
}

}  // namespace weft::target::cuda
