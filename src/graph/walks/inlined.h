#pragma once
// Expands composites and says which values they became.
#include <functional>
#include <string>
#include <vector>

#include "graph/node.h"

namespace weft::graph {

/// A composite of one input and one result that was replaced by its body: `result` = name(`input`).
struct InlinedComposite {
  std::string name;
  Value input, result;
};

/// Replaces composites as inline_composites in graph/node.h does, and appends to `inlined` what it replaced, so that a
/// composite can still be named by its two values.
Graph inline_composites(const Graph& graph, const std::function<bool(const Node&)>& kept,
                        std::vector<InlinedComposite>& inlined);

/// Returns whether a node is a composite whose value is not known yet.
bool is_region(const Node& node);
/// Returns the body of a composite on its inputs, or on others of their types, checked against the composite's types.
Values body_of(const Node& node, const Values& inputs);
/// Returns the nodes that `outputs` need, inputs before users, without those where `stops` holds and those that are
/// reached through them only.
NodeRefs reachable(std::span<const Value> outputs, const std::function<bool(const Node&)>& stops);

}  // namespace weft::graph
