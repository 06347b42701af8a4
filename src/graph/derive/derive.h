#pragma once
// Derivatives and batching of whole graphs: the walks behind grad, vjp, jvp and vmap. Each visits what leads from the
// given values to the outputs once, and asks the rows (or a composite's own rules) for the rest.
#include <span>

#include "graph/node.h"

namespace weft::graph {

/// A new node with the same value: an identity that derivatives can tell from `value` itself.
Value alias(const Value& value);

/// Reverse: for each target the sum over outputs of cotangent · ∂output/∂target, or an empty Value where nothing flows.
/// Cotangents may be empty (zero).
///
/// Targets are any values that the outputs were computed from, leaves or not. A value that has storage has forgotten
/// what it was computed from: nothing flows through it, unless it is itself a target. Only `nested` targets may have
/// been computed from one another.
Values pull_back(std::span<const Value> outputs, std::span<const Value> cotangents, std::span<const Value> targets,
                 bool nested = false);

/// Forward: for each output the sum over targets of ∂output/∂target · tangent, or an empty Value where nothing arrives.
/// Tangents may be empty (zero). No target may have been computed from another one.
Values push_forward(std::span<const Value> outputs, std::span<const Value> targets, std::span<const Value> tangents);

/// A value with a batch axis, or (axis -1) one that is the same for the whole batch.
struct Batched {
  Value value;
  int axis = -1;
};

/// The outputs for a whole batch, where each of `from` stands for one element of the value in `to` at the same
/// position. Results that depend on no batched value are unchanged; the others carry their batch axis in front. All
/// batched values have the same extent.
std::vector<Batched> batch(std::span<const Value> outputs, std::span<const Value> from, std::span<const Batched> to);

/// What one node was when a walk began: another thread may evaluate it meanwhile, which drops its inputs.
struct Step {
  std::shared_ptr<Node> node;
  Values inputs;         // empty for leaves and values with storage
  bool depends = false;  // on one of the values that the walk asks about
  Values outputs() const;
};

/// Everything that the outputs reach without passing through a target (if `nested`, through them as well), inputs
/// before users.
std::vector<Step> history(std::span<const Value> outputs, std::span<const Value> targets, bool nested = false);

}  // namespace weft::graph
