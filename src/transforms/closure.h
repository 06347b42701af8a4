#pragma once
// Functions of the user as closed graphs: what they capture becomes input.
#include <span>

#include "graph/node.h"
#include "weft/array.h"

namespace weft::transforms {

/// A function that was run: its arguments (placeholders or aliases), and what it returned.
struct Body {
  graph::Values arguments, results;
};

/// Nodes that are made from here on have this id or a larger one.
uint64_t next_node_id();

/// The bodies as graphs over fresh parameters: each its own arguments, then everything that any of them captured.
/// Captured is what was there before `first_id`, data, and placeholders of functions around this one; it is appended to
/// `captured`. Numbers stay in the graphs.
std::vector<graph::Graph> close(std::span<const Body> bodies, uint64_t first_id, graph::Values& captured);

/// Names the graph: equal texts, equal graphs.
std::string graph_key(const graph::Graph& graph);

graph::Values values_of(const std::vector<array>& arrays);
std::vector<array> arrays_of(std::span<const graph::Value> values);

}  // namespace weft::transforms
