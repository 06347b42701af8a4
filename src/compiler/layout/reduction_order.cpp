#include "compiler/layout/reduction_order.h"

#include <algorithm>
#include <map>
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

/// Returns the order of the permute that undoes this one.
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

/// Returns whether axes follow each other.
bool adjacent(const std::vector<int64_t>& axes) {
  return axes.empty() || axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
}

/// Returns the axes of a permute's operand that `axes` of its result are, ascending.
std::vector<int64_t> before(const Order& order, const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (const int64_t axis : axes) out.push_back(order[static_cast<size_t>(axis)]);
  std::sort(out.begin(), out.end());
  return out;
}

/// What a reduction reads: the permutes between whole arrays and its operands, and their order. The order is empty
/// where there are several, where whole arrays are read without one, or where it changes nothing for the better.
struct Operands {
  Order order;
  std::set<NodeId> permutes;
};

Operands operands_of(const Ir& ir, const IrNode& reduction) {
  const Shape& shape = ir[reduction.inputs[0]].type.shape;
  Operands found;
  std::set<Order> orders;
  std::set<NodeId> seen;
  std::vector<NodeId> pending = reduction.inputs;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second) continue;
    const IrNode& n = ir[id];
    if (n.op == Op::permute) {
      found.permutes.insert(id);
      orders.insert(n.attrs->axes);
    } else if (is_elementwise(n.op)) {
      pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
    } else if (n.op != Op::broadcast && n.op != Op::iota) {
      orders.insert(Order());
    }
  }
  const int64_t last = innermost(shape);
  if (orders.size() != 1 || last < 0) return found;
  const Order& order = *orders.begin();
  // Axes with others between them take two reductions.
  const bool apart =
      !order.empty() && adjacent(reduction.attrs->axes) && !adjacent(before(order, reduction.attrs->axes));
  if (!order.empty() && !apart && order[static_cast<size_t>(last)] != innermost(before(order, shape)))
    found.order = order;
  return found;
}

/// Returns by reduction the order that it is rewritten by; all that read one permuted array are, or none: they share
/// what they read.
std::map<NodeId, Order> orders_of(const Ir& ir) {
  std::map<NodeId, Operands> all;
  for (NodeId id = 0; id < ir.size(); ++id)
    if (ir[id].op == Op::reduce)
      if (Operands found = operands_of(ir, ir[id]); !found.permutes.empty()) all[id] = std::move(found);
  std::set<NodeId> kept;  // permutes that a reduction reads which stays
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [id, operands] : all) {
      const auto stays = [&](NodeId permute) { return kept.contains(permute); };
      if (std::any_of(operands.permutes.begin(), operands.permutes.end(), stays)) operands.order.clear();
      if (!operands.order.empty()) continue;
      for (const NodeId permute : operands.permutes) changed = kept.insert(permute).second || changed;
    }
  }
  std::map<NodeId, Order> out;
  for (auto& [id, operands] : all)
    if (!operands.order.empty()) out[id] = std::move(operands.order);
  return out;
}

/// Rewrites the reductions of one graph.
class Reorderer : Rewriter {
 public:
  Reorderer(Ir ir, std::map<NodeId, Order> orders) : Rewriter(std::move(ir)), orders_(std::move(orders)) {}

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) {
      const auto order = orders_.find(id);
      return int{order == orders_.end() ? add(std::move(node)) : reordered(id, std::move(node), order->second)};
    });
  }

 private:
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
    std::vector<int64_t> kept;  // the axes of the array that remain, in the order of the old result
    for (size_t k = 0; k < order.size(); ++k)
      if (!has_axis(old.attrs->axes, static_cast<int64_t>(k))) kept.push_back(order[k]);
    std::vector<int64_t> lying = kept;
    std::sort(lying.begin(), lying.end());
    const Shape& shape = to_[node.inputs[0]].type.shape;
    node.type.shape.clear();
    for (const int64_t axis : lying) node.type.shape.push_back(shape[static_cast<size_t>(axis)]);
    for (graph::Type& result : node.results) result.shape = node.type.shape;
    node.attrs.edit().axes = before(order, old.attrs->axes);
    Order back;
    for (const int64_t axis : kept) back.push_back(std::lower_bound(lying.begin(), lying.end(), axis) - lying.begin());
    return permuted(add(std::move(node)), back);
  }

  const std::map<NodeId, Order> orders_;
  std::map<std::pair<NodeId, Order>, NodeId> plain_;
};

}  // namespace

Ir reductions_in_memory_order(Ir ir) {
  std::map<NodeId, Order> orders = orders_of(ir);
  return orders.empty() ? ir : eliminate_dead_code(Reorderer(std::move(ir), std::move(orders)).run());
}

}  // namespace weft::compiler
