#pragma once
// Activations fused into matmuls. They are recognised by a hash of their formula after simplification, and emitted as
// tile IR by generated matmuls.
#include <optional>

#include "compiler/ir/ir.h"
#include "kernel/tile.h"

namespace weft::compiler {

struct ActivationMatch {
  kernel::Activation activation;
  NodeId result;
};

/// Returns the activation of the float32 `node` that all readers of `node` are part of; nothing for other dtypes, whose
/// formulas contain casts. `outputs`: see escapes.
std::optional<ActivationMatch> activation_of(const Ir& ir, const Users& users, const NodeCounts& outputs, NodeId node);

/// Returns the node that is gelu_tanh of the 16-bit `node`, or -1. `node` and the values between may have other
/// readers.
NodeId gelu_of(const Ir& ir, const Users& users, NodeId node);

/// The gradient through gelu: result = g · gelu_tanh'(pre_activation), where g is the 16-bit `node` and has no other
/// reader.
struct GeluDerivative {
  NodeId pre_activation, result;
};
std::optional<GeluDerivative> following_gelu_derivative(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                                        NodeId node);

/// Emits the activation of x.
kernel::Value activated(kernel::Builder& b, kernel::Activation activation, kernel::Value x);

}  // namespace weft::compiler
