#pragma once
// Attention as a graph of cuDNN's operations. Making one needs cuDNN, but no device.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/attention_desc.h"
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

}  // namespace weft::target::cuda
