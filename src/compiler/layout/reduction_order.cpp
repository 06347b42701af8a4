#include "compiler/layout/reduction_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/rewriter.h"

namespace weft::compiler {

using graph::Op;

namespace {

using Order = std::vector<int64_t>;  // of a permute: axis k of its result is axis order[k] of its operand

/// Returns the shape of a permute's operand.
Shape before(const Order& order, const Shape& shape) {
  Shape out = shape;
  for (size_t k = 0; k < order.size(); ++k) out[static_cast<size_t>(order[k])] = shape[k];
  return out;
}

Order inverse(const Order& order) {
  Order out(order.size());
  for (size_t k = 0; k < order.size(); ++k) out[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  return out;
}

/// Returns the last axis that has several elements; -1 where there is none.
int64_t innermost(const Shape& shape) {
  for (size_t k = shape.size(); k-- > 0;)
    if (!(shape[k] == 1)) return static_cast<int64_t>(k);
  return -1;
}

/// Rewrites the reductions of one graph.
class Reorderer : Rewriter {
 public:
  explicit Reorderer(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) {
      if (node.op != Op::reduce) return int{add(std::move(node))};
      const Order order = order_of(from_[id].inputs);
      return int{order.empty() ? add(std::move(node)) : reordered(id, std::move(node), order)};
    });
  }

 private:
  /// Returns the order in which all whole arrays are permuted that the operands of a reduction are computed from;
  /// nothing where they have several, or the order leaves the innermost axis where it is.
  Order order_of(const std::vector<NodeId>& operands) const {
    const Shape& shape = from_[operands[0]].type.shape;
    Order order;
    std::set<NodeId> seen;
    std::vector<NodeId> pending = operands;
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (!seen.insert(id).second) continue;
      const IrNode& n = from_[id];
      if (n.op == Op::permute) {
        if (!order.empty() && order != n.attrs->axes) return {};
        order = n.attrs->axes;
      } else if (is_elementwise(n.op)) {
        pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
      } else if (n.op != Op::broadcast && n.op != Op::iota) {
        return {};
      }
    }
    if (order.empty()) return {};
    const int64_t last = innermost(shape);
    return last < 0 || order[static_cast<size_t>(last)] == innermost(before(order, shape)) ? Order{} : order;
  }

  /// Returns a node of the source as it is before it is permuted, with everything that it is computed from.
  NodeId plain(NodeId id, const Order& order) {
    const auto known = plain_.find({id, order});
    if (known != plain_.end()) return known->second;
    const IrNode& n = from_[id];
    NodeId made = -1;
    if (n.op == Op::permute) {
      made = renamed(n.inputs[0]);
    } else if (n.op == Op::broadcast) {
      made = repeated(renamed(n.inputs[0]), before(order, n.type.shape), order);
    } else {
      IrNode node = n;
      node.type.shape = before(order, n.type.shape);
      for (NodeId& input : node.inputs) input = plain(input, order);
      if (n.op == Op::iota) {
        node.attrs.edit().axes = {order[static_cast<size_t>(n.attrs->axes[0])]};
        node.attrs.edit().shape = node.type.shape;
      }
      made = add(std::move(node));
    }
    plain_[{id, order}] = made;
    return made;
  }

  /// Returns a broadcast of v, whose axes are the last ones of the permuted shape, to the shape before that.
  NodeId repeated(NodeId v, const Shape& shape, const Order& order) {
    Shape own(order.size() - to_[v].type.shape.size(), Dim(1));
    own.insert(own.end(), to_[v].type.shape.begin(), to_[v].type.shape.end());
    return shaped(Op::broadcast, permuted(shaped(Op::reshape, v, own), inverse(order)), shape);
  }

  /// Returns a permute of v, or a reshape where that moves nothing.
  NodeId permuted(NodeId v, const Order& axes) {
    const Shape& from = to_[v].type.shape;
    Shape shape;
    std::vector<int64_t> moved;  // the axes of several elements in their new order
    for (const int64_t axis : axes) {
      shape.push_back(from[static_cast<size_t>(axis)]);
      if (!(shape.back() == 1)) moved.push_back(axis);
    }
    if (std::is_sorted(moved.begin(), moved.end())) return shaped(Op::reshape, v, shape);
    IrNode node = made(Op::permute, {v}, std::move(shape), to_[v].type.dtype);
    node.attrs.edit().axes = axes;
    return add(std::move(node));
  }

  NodeId reordered(NodeId id, IrNode node, const Order& order) {
    const IrNode& old = from_[id];
    for (size_t k = 0; k < old.inputs.size(); ++k) node.inputs[k] = plain(old.inputs[k], order);
    std::vector<int64_t> axes, kept;  // kept: the axes of the array that remain, in the order of the old result
    for (size_t k = 0; k < order.size(); ++k)
      (has_axis(old.attrs->axes, static_cast<int64_t>(k)) ? axes : kept).push_back(order[k]);
    std::sort(axes.begin(), axes.end());
    std::vector<int64_t> lying = kept;
    std::sort(lying.begin(), lying.end());
    const Shape& shape = to_[node.inputs[0]].type.shape;
    node.type.shape.clear();
    for (const int64_t axis : lying) node.type.shape.push_back(shape[static_cast<size_t>(axis)]);
    for (graph::Type& result : node.results) result.shape = node.type.shape;
    node.attrs.edit().axes = std::move(axes);
    Order back;
    for (const int64_t axis : kept) back.push_back(std::lower_bound(lying.begin(), lying.end(), axis) - lying.begin());
    return permuted(add(std::move(node)), back);
  }

  std::map<std::pair<NodeId, Order>, NodeId> plain_;
};

}  // namespace

Ir reductions_in_memory_order(Ir ir) {
  const bool permutes =
      std::any_of(ir.nodes.begin(), ir.nodes.end(), [](const IrNode& n) { return n.op == Op::permute; });
  return permutes ? eliminate_dead_code(Reorderer(std::move(ir)).run()) : ir;
}

}  // namespace weft::compiler
