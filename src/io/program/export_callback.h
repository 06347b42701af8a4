#pragma once
// The values that an ExportCallback gets for one traced signature (weft/export.h).
#include <map>
#include <set>

#include "graph/node.h"
#include "weft/export.h"
#include "weft/graph_utils.h"

namespace weft::io {

/// Names and constants over all signatures of one exporter.
struct CallbackState {
  NodeNamer namer;
  std::set<std::pair<const graph::Node*, int>> told;  // constants
  std::vector<array> kept;  // constants and named arrays: while they live, their addresses are not reused
};

/// Calls the callback for a graph with inputs: arguments, keyword arguments (as many as `keywords`), then the arrays
/// `captured`. Throws std::invalid_argument for control flow.
void tell(const ExportCallback& callback, const graph::Graph& graph, const std::vector<std::string>& keywords,
          const std::vector<array>& captured, CallbackState& state);

}  // namespace weft::io
