#pragma once
// Tracks which value each buffer holds while groups overwrite each other's results. The verifiers of orders replay an
// order with it.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

class MemoryState {
 public:
  /// Starts with the inputs in their buffers and nothing in the others. `owner[node]`: the node whose buffer it lies
  /// in.
  MemoryState(const Ir& ir, const IndexedVector<NodeId, NodeId>& owner) : owner_(owner), holds_(ir.nodes.size(), -1) {
    for (const NodeId id : ir.inputs) holds_[id] = id;
  }
  /// Returns the node whose value the buffer of `node` holds, or -1 before the first store.
  NodeId in_memory_of(NodeId node) const { return holds_[owner_[node]]; }
  bool holds(NodeId node) const { return in_memory_of(node) == node; }
  void write(NodeId node) { store(node, node); }
  /// Stores the value of `node` in the buffer of `to`.
  void store(NodeId node, NodeId to) { holds_[owner_[to]] = node; }

 private:
  const IndexedVector<NodeId, NodeId>& owner_;
  IndexedVector<NodeId, NodeId> holds_;
};

}  // namespace weft::compiler
