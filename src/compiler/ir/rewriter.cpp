#include "compiler/ir/rewriter.h"

namespace weft::compiler {

using graph::Op;

Ir Rewriter::rewrite(const std::function<int(NodeId id, IrNode node)>& visit) {
  to_.nodes.reserve(from_.nodes.size());
  for (NodeId id = 0; id < from_.size(); ++id) {
    IrNode node = from_[id];
    for (NodeId& input : node.inputs) input = renamed(input);
    phase_ = node.phase;
    renamed_[id] = visit(id, std::move(node));
  }
  for (NodeId id : from_.inputs) to_.inputs.push_back(renamed(id));
  for (NodeId id : from_.outputs) to_.outputs.push_back(renamed(id));
  carry_labels(from_, to_, [&](NodeId id) { return renamed(id); });
  return std::move(to_);
}

NodeId Rewriter::add(IrNode node) {
  to_.nodes.push_back(std::move(node));
  return to_.size() - 1;
}

IrNode Rewriter::made(Op op, std::vector<NodeId> inputs, Shape shape, Dtype dtype) const {
  IrNode node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.type = {std::move(shape), dtype};
  node.phase = phase_;
  return node;
}

NodeId Rewriter::cast(NodeId v, Dtype dtype) {
  if (to_[v].type.dtype == dtype) return v;
  IrNode node = made(Op::cast, {v}, to_[v].type.shape, dtype);
  node.attrs.edit().dtype = dtype;
  return add(std::move(node));
}

NodeId Rewriter::shaped(Op op, NodeId v, const Shape& shape) {
  if (to_[v].type.shape == shape) return v;
  IrNode node = made(op, {v}, shape, to_[v].type.dtype);
  node.attrs.edit().shape = shape;
  return add(std::move(node));
}

}  // namespace weft::compiler
