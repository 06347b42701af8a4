#include "compiler/eager/stream_segments.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/layout/view.h"
#include "runtime/executor.h"

namespace weft::compiler {
namespace {

using graph::Node;

/// A node's segment is a stream and a level: the most changes of stream on a path to the node.
struct Position {
  int level, stream;
  auto operator<=>(const Position&) const = default;
};

/// Positions of nodes. Free nodes, that is leaves without data and movement of leaves, have none: they belong to their
/// readers.
using Positions = std::unordered_map<const Node*, Position>;

Position position_of(const Node& node, const Positions& positions) {
  Position at{0, node.stream()};
  for (const graph::Value& input : node.inputs())
    if (const auto found = positions.find(input.node.get()); found != positions.end())
      at.level = std::max(at.level, found->second.level + (found->second.stream != at.stream));
  return at;
}

}  // namespace

std::optional<int> only_stream(std::span<const graph::Value> values) {
  if (runtime::num_executors() == 1) return 0;
  std::optional<int> stream;
  const auto is_on_it = [&](const Node& node) {
    if (!stream) stream = node.stream();
    return *stream == node.stream();
  };
  for (const graph::Value& v : values)
    if (!v.node->storage(v.index) && !is_on_it(*v.node)) return std::nullopt;
  for (const std::shared_ptr<Node>* node : graph::reachable(values))
    if (!(*node)->storage(0) && !(*node)->inputs().empty() && !is_on_it(**node)) return std::nullopt;
  return stream;
}

std::vector<Segment> segments(std::span<const graph::Value> values) {
  graph::Values pending;
  for (const graph::Value& v : values)
    if (!v.node->storage(v.index)) pending.push_back(v);
  if (pending.empty()) return {};
  if (runtime::num_executors() == 1) return {{0, std::move(pending), {}}};
  const auto nodes = graph::topological(pending);
  Positions positions;
  const auto placed = [&](const graph::Value& v) { return positions.contains(v.node.get()); };
  for (const auto& node : nodes) {
    if (node->storage(0)) continue;
    const bool leaf = node->inputs().empty() || moves_only(node->op());
    if (leaf && std::none_of(node->inputs().begin(), node->inputs().end(), placed)) continue;
    positions.emplace(node.get(), position_of(*node, positions));
  }
  // The position of a wanted value; a free one is computed on its own stream, once.
  const auto location = [&](const graph::Value& v) {
    const auto found = positions.find(v.node.get());
    return found == positions.end() ? Position{0, v.node->stream()} : found->second;
  };

  // Ordered so that they can run one after another: a segment reads from lower levels only.
  std::map<Position, size_t> segment_ids;
  for (const auto& [node, position] : positions) segment_ids[position] = 0;
  for (const graph::Value& v : pending) segment_ids[location(v)] = 0;
  std::vector<Segment> result;
  for (auto& [position, id] : segment_ids) {
    id = result.size();
    result.push_back({position.stream, {}, {}});
  }
  for (const graph::Value& v : pending) result[segment_ids[location(v)]].wanted.push_back(v);
  for (const auto& node : nodes) {
    const auto at = positions.find(node.get());
    if (at == positions.end()) continue;
    for (const graph::Value& input : node->inputs()) {
      const auto from = positions.find(input.node.get());
      if (from == positions.end() || from->second == at->second) continue;
      const size_t source = segment_ids[from->second], reader = segment_ids[at->second];
      result[source].wanted.push_back(input);
      result[reader].after.push_back(source);
    }
  }
  for (Segment& s : result) {
    std::sort(s.after.begin(), s.after.end());
    s.after.erase(std::unique(s.after.begin(), s.after.end()), s.after.end());
  }
  return result;
}

}  // namespace weft::compiler
