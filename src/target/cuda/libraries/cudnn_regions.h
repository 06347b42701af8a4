#pragma once
// Builds attention and convolutions as graphs of cuDNN operations. This needs cuDNN, but no device.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/describe/attention_desc.h"
#include "kernel/describe/desc.h"
#include "target/cuda/libraries/cudnn_graph.h"

namespace weft::target::cuda {

struct AttentionGraph {
  /// Memory that the graph needs besides its operands and the plan's workspace.
  struct Extra {
    int64_t uid;
    size_t bytes;
  };
  cudnn::Graph graph;
  std::vector<int64_t> operands;  // the tensors, in the order of the descriptor's operands
  std::vector<Extra> extras;
};

/// Returns the graph. Throws cudnn::Declined if cuDNN refuses an operation. `deterministic` matters for the derivative
/// only (cudnn.h).
AttentionGraph attention_graph(const kernel::AttentionDesc& desc, bool deterministic);

/// Slices of the derivative of attention. The deterministic form keeps a 16-bit probability for each pair. Slices are
/// whole batches, or heads that share key heads, that need at most `most_bytes` (or one key head): `each` of the
/// `batches` x `heads` slices is an attention of its own.
struct AttentionSlices {
  kernel::AttentionDesc each;
  int64_t batches = 1, heads = 1;
};
AttentionSlices attention_slices(const kernel::AttentionDesc& desc, size_t most_bytes);

struct ConvolutionGraph {
  cudnn::Graph graph;
  std::vector<int64_t> operands;  // the call's inputs, then its result
};

/// Returns nothing and sets `why` where the rule in cudnn.h says no; throws as attention_graph does.
std::optional<ConvolutionGraph> convolution_graph(const kernel::CallDesc& desc, std::string& why);

}  // namespace weft::target::cuda
