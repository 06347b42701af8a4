#pragma once
// Activations fused into matmuls: recognised in the graph by the form that their formulas take after simplification,
// and written out again by the dot class.
#include <optional>

#include "compiler/ir/ir.h"
#include "kernel/tile.h"

namespace weft::compiler {

struct ActivationMatch {
  kernel::Activation activation;
  NodeId result;
};

/// Is everything that reads `node` part of one activation of it? float32 only: others are computed with casts in
/// between. `outputs` as escapes counts them.
std::optional<ActivationMatch> activation_of(const Ir& ir, const Users& users, const NodeCounts& outputs, NodeId node);

/// The node that is gelu_tanh of the 16-bit `node`, or -1. Others may read the node and what lies between.
NodeId gelu_of(const Ir& ir, const Users& users, NodeId node);

/// g · gelu_tanh'(argument) for the 16-bit `node` g, which nobody else reads: what comes back through gelu.
struct GeluDerivative {
  NodeId pre_activation, result;
};
std::optional<GeluDerivative> following_gelu_derivative(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                                        NodeId node);

kernel::Value activated(kernel::Builder& b, kernel::Activation activation, kernel::Value x);

}  // namespace weft::compiler
