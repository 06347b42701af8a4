#include "compiler/ir/rewriter.h"

namespace weft::compiler {

using graph::Op;

Ir Rewriter::rewrite(const std::function<int(int id, IrNode node)>& visit) {
  for (int id = 0; id < from_.size(); ++id) {
    IrNode node = from_[id];
    for (int& input : node.inputs) input = renamed(input);
    phase_ = node.phase;
    renamed_[static_cast<size_t>(id)] = visit(id, std::move(node));
  }
  for (int id : from_.inputs) to_.inputs.push_back(renamed(id));
  for (int id : from_.outputs) to_.outputs.push_back(renamed(id));
  return std::move(to_);
}

int Rewriter::add(IrNode node) {
  to_.nodes.push_back(std::move(node));
  return to_.size() - 1;
}

IrNode Rewriter::made(Op op, std::vector<int> inputs, Shape shape, Dtype dtype) const {
  IrNode node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.type = {std::move(shape), dtype};
  node.phase = phase_;
  return node;
}

int Rewriter::cast(int v, Dtype dtype) {
  if (to_[v].type.dtype == dtype) return v;
  IrNode node = made(Op::cast, {v}, to_[v].type.shape, dtype);
  node.attrs.edit().dtype = dtype;
  return add(std::move(node));
}

int Rewriter::shaped(Op op, int v, const Shape& shape) {
  if (to_[v].type.shape == shape) return v;
  IrNode node = made(op, {v}, shape, to_[v].type.dtype);
  node.attrs.edit().shape = shape;
  return add(std::move(node));
}

}  // namespace weft::compiler
