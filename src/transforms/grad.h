#pragma once
// Reverse accumulation over graphs: the core of grad, value_and_grad, vjp and gradients.
#include <span>

#include "graph/node.h"

namespace weft::transforms {

/// For each target the sum over outputs of cotangent · ∂output/∂target, or an empty Value where nothing flows. Cotangents may be empty (zero).
///
/// Targets are any values that the outputs were computed from, leaves or not. A value that has storage has forgotten what it was computed from:
/// nothing flows through it, unless it is itself a target.
graph::Values pull_back(std::span<const graph::Value> outputs, std::span<const graph::Value> cotangents, std::span<const graph::Value> targets);

}  // namespace weft::transforms
