#pragma once
// Divides a pending graph into segments, at the values that pass from one stream to another.
#include <optional>
#include <span>
#include <vector>

#include "graph/node.h"

namespace weft::compiler {

/// Values that one stream computes by one Program.
struct Segment {
  int stream;
  graph::Values wanted;
  std::vector<size_t> after;  // earlier segments whose values it reads
};

/// Returns the stream on which the pending graph of `values` runs as one segment; nothing where values may pass between
/// streams. The caller holds graph::structure(), shared.
std::optional<int> only_stream(std::span<const graph::Value> values);
/// Returns the segments of the pending graph of `values`, in an order in which they can run. The caller holds
/// graph::structure(), shared.
std::vector<Segment> segments(std::span<const graph::Value> values);

}  // namespace weft::compiler
