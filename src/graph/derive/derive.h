#pragma once
// Derivatives and batching of whole graphs: the walks of grad, vjp, jvp and vmap. Each visits the nodes between the
// given values and the outputs once, and applies the rules of the rows (or a composite's own).
#include <span>

#include "graph/node.h"

namespace weft::graph {

/// Returns a new node with the same value: an identity that derivatives distinguish from `value`.
Value alias(const Value& value);

/// Reverse: for each target the sum over outputs of cotangent · ∂output/∂target, or an empty Value where nothing flows.
/// Cotangents may be empty (zero).
///
/// Targets may be any values that the outputs were computed from, leaves or not. A value with storage has lost its
/// inputs: nothing flows through it, unless it is itself a target. Only `nested` targets may depend on each other.
Values pull_back(std::span<const Value> outputs, std::span<const Value> cotangents, std::span<const Value> targets,
                 bool nested = false);

/// Forward mode: returns for each output the sum over targets of ∂output/∂target · tangent, or an empty Value if none
/// arrives. Tangents may be empty (zero). No target may depend on another one.
Values push_forward(std::span<const Value> outputs, std::span<const Value> targets, std::span<const Value> tangents);

/// A value with its batch axis, or with axis -1 if it is the same for the whole batch.
struct Batched {
  Value value;
  int axis = -1;
};

/// Returns the outputs for a whole batch, where each of `from` represents one element of the value at the same position
/// of `to`. Results that depend on no batched value are unchanged; the others have their batch axis in front. All
/// batched values have the same extent.
std::vector<Batched> batch(std::span<const Value> outputs, std::span<const Value> from, std::span<const Batched> to);

/// A node as it was when a walk began: another thread may evaluate it meanwhile, which drops its inputs.
struct Step {
  std::shared_ptr<Node> node;
  Values inputs;         // empty for leaves and values with storage
  bool depends = false;  // on one of the walk's targets
  Values outputs() const;
};

/// Returns the nodes that the outputs reach without passing through a target (through them too if `nested`), inputs
/// before users.
std::vector<Step> history(std::span<const Value> outputs, std::span<const Value> targets, bool nested = false);

}  // namespace weft::graph
