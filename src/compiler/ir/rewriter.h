#pragma once
// What passes that replace some nodes by others share: the nodes are walked in order, those to be replaced are built
// anew from inputs that have been, the others are copied.
#include <functional>

#include "compiler/ir/ir.h"

namespace weft::compiler {

class Rewriter {
 protected:
  explicit Rewriter(Ir ir) : from_(std::move(ir)), renamed_(from_.nodes.size()) {}

  /// `visit` is given each node with its new inputs and adds what stands for it: its number. Nodes that nobody reads
  /// any more stay.
  Ir rewrite(const std::function<int(int id, IrNode node)>& visit);

  int renamed(int id) const { return renamed_[static_cast<size_t>(id)]; }
  int add(IrNode node);
  /// A node of the stage that is being rewritten; its attributes are still to be filled in.
  IrNode made(graph::Op op, std::vector<int> inputs, Shape shape, Dtype dtype) const;
  int cast(int v, Dtype dtype);                         // v itself where it has the dtype
  int shaped(graph::Op op, int v, const Shape& shape);  // reshape or broadcast; v itself where it has the shape

  Ir from_, to_;
  int phase_ = 0;

 private:
  std::vector<int> renamed_;
};

}  // namespace weft::compiler
