#pragma once
// Attention and convolutions as graphs of cuDNN's operations. Making one needs cuDNN, but no device.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/attention_desc.h"
#include "kernel/desc.h"
#include "target/cuda/cudnn_graph.h"

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

struct ConvolutionGraph {
  cudnn::Graph graph;
  std::vector<int64_t> operands;  // the call's inputs, then its result
};

/// Nothing, with a reason, where the rule in cudnn.h says no; throws as attention_graph does.
std::optional<ConvolutionGraph> convolution_graph(const kernel::CallDesc& desc, std::string& why);

}  // namespace weft::target::cuda
