#pragma once
// The user's functions as closed graphs: values that they capture become inputs.
#include <span>

#include "graph/node.h"
#include "weft/array.h"

namespace weft::transforms {

/// A function that was run: its arguments (placeholders or aliases) and its results.
struct Body {
  graph::Values arguments, results;
};

/// Returns the id of the next node: later ones have larger ids.
uint64_t next_node_id();

/// Returns the bodies as graphs over new parameters: each body's own arguments, then everything that any of them
/// captured. Captured are data, nodes from before `first_id`, and placeholders of enclosing functions; they are
/// appended to `captured`. Numbers stay in the graphs.
std::vector<graph::Graph> close(std::span<const Body> bodies, uint64_t first_id, graph::Values& captured);

/// Returns a text that names the graph: equal texts mean equal graphs.
std::string graph_key(const graph::Graph& graph);

graph::Values values_of(const std::vector<array>& arrays);
std::vector<array> arrays_of(std::span<const graph::Value> values);

}  // namespace weft::transforms
