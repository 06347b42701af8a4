#pragma once
// Tracks which value each buffer holds while groups overwrite one another's results. The verifiers of orders replay an
// order on it.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

class MemoryState {
 public:
  /// Inputs hold themselves, all else nothing. `buffer_owner[node]`: in whose memory it lies.
  MemoryState(const Ir& ir, const IndexedVector<NodeId, NodeId>& owner) : home_(owner), holds_(ir.nodes.size(), -1) {
    for (const NodeId id : ir.inputs) holds_[id] = id;
  }
  /// The node whose value lies in the memory of `node`; -1 before there is any.
  NodeId in_memory_of(NodeId node) const { return holds_[home_[node]]; }
  bool holds(NodeId node) const { return in_memory_of(node) == node; }
  void write(NodeId node) { store(node, node); }
  /// The value of `node` into the memory of `to`.
  void store(NodeId node, NodeId to) { holds_[home_[to]] = node; }

 private:
  const IndexedVector<NodeId, NodeId>& home_;
  IndexedVector<NodeId, NodeId> holds_;
};

}  // namespace weft::compiler
