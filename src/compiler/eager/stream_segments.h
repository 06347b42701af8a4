#pragma once
// Which streams a pending graph runs on: it is cut where values pass from one stream to another.
#include <span>
#include <vector>

#include "graph/node.h"

namespace weft::compiler {

/// What one stream does at a stretch.
struct Segment {
  int stream;
  graph::Values wanted;
  std::vector<size_t> after;  // segments whose values it reads: earlier ones
};

/// The pending graph behind `values`. The caller holds graph::structure(), shared.
std::vector<Segment> segments(std::span<const graph::Value> values);

}  // namespace weft::compiler
