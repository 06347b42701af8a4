#pragma once
// The base of passes that replace some nodes by others. Nodes are visited in order; each is copied, or replaced by new
// nodes built from inputs that are rewritten already.
#include <functional>

#include "compiler/ir/ir.h"

namespace weft::compiler {

class Rewriter {
 protected:
  explicit Rewriter(Ir ir) : from_(std::move(ir)), renamed_(from_.nodes.size()) {}

  /// Calls `visit` on each node with its rewritten inputs; it adds the node or its replacement and returns the id.
  /// Replaced nodes stay in the graph without readers.
  Ir rewrite(const std::function<int(NodeId id, IrNode node)>& visit);

  NodeId renamed(NodeId id) const { return renamed_[id]; }
  NodeId add(IrNode node);
  /// Returns a new node without attributes, in the phase of the node being rewritten.
  IrNode made(graph::Op op, std::vector<NodeId> inputs, Shape shape, Dtype dtype) const;
  NodeId cast(NodeId v, Dtype dtype);                         // v itself where it has the dtype
  NodeId shaped(graph::Op op, NodeId v, const Shape& shape);  // reshape or broadcast; v itself where it has the shape

  Ir from_, to_;
  int phase_ = 0;

 private:
  IndexedVector<NodeId, NodeId> renamed_;
};

}  // namespace weft::compiler
