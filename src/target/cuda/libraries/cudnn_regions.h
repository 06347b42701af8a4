#pragma once
// Attention and convolutions as graphs of cuDNN's operations. Making one needs cuDNN, but no device.
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
  /// Memory that the graph needs beside its operands and the plan's workspace.
  struct Extra {
    int64_t uid;
    size_t bytes;
  };
  cudnn::Graph graph;
  std::vector<int64_t> operands;  // the tensors, in the order of the descriptor's operands
  std::vector<Extra> extras;
};

/// Throws cudnn::Declined where cuDNN refuses an operation. `deterministic` matters for the derivative alone (cudnn.h).
AttentionGraph attention_graph(const kernel::AttentionDesc& desc, bool deterministic);

/// The deterministic derivative of attention keeps a 16-bit probability for each pair. Slices of whole batches, or of
/// heads that share their key heads, that keep at most `most_bytes` of them (or one key head's): `each` of `batches` x
/// `heads` slices is an attention of its own.
struct AttentionSlices {
  kernel::AttentionDesc each;
  int64_t batches = 1, heads = 1;
};
AttentionSlices attention_slices(const kernel::AttentionDesc& desc, size_t most_bytes);

struct ConvolutionGraph {
  cudnn::Graph graph;
  std::vector<int64_t> operands;  // the call's inputs, then its result
};

/// Nothing, with a reason, where the rule in cudnn.h says no; throws as attention_graph does.
std::optional<ConvolutionGraph> convolution_graph(const kernel::CallDesc& desc, std::string& why);

}  // namespace weft::target::cuda
