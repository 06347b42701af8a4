#pragma once
// What simplify's rules are written in: a rule sees a node whose operands are simplified already, and returns the node
// that it is replaced by. Each family of rules is a table in a file of its own, one row a rule.
#include <cmath>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// The graph that is built anew, node by node. `add` returns an existing equal node, what a rule makes of the node, or
/// the node itself.
class RuleGraph {
 public:
  explicit RuleGraph(Ir source) : source_(std::move(source)), map_(source_.nodes.size(), -1) {}

  /// All nodes of the source; those that were replaced stay, without readers.
  Ir run();

  NodeId add(IrNode node);
  const IrNode& operator[](NodeId id) const { return out_[id]; }

  // Short forms in which the rules are written.
  NodeId make(graph::Op op, std::vector<NodeId> inputs, graph::Type type, graph::Attrs attrs = {}) {
    return add({op, std::move(inputs), std::move(attrs), std::move(type), true});
  }
  NodeId broadcast_to(NodeId id, const Shape& shape);
  NodeId constant(Dtype dtype, Number number);
  NodeId constant_like(const graph::Type& type, Number number);
  /// The number of which every element of `id` is a copy.
  std::optional<Number> splat(NodeId id) const;
  bool is_splat(NodeId id, double value) const;

 private:
  NodeId append(IrNode node);
  std::optional<int> rewrite(const IrNode& node);  // `node` is not in the graph yet: rules append to that

  Ir source_;
  Ir out_;
  IndexedVector<NodeId, NodeId> map_;  // by id in `source_`; -1: not yet
  std::unordered_map<Digest, NodeId> known_;
};

using RuleResult = std::optional<int>;

struct Rule {
  const char* name;
  const char* form;              // as algebra: what → what
  const char* condition;         // where it holds
  bool (*operators)(graph::Op);  // those of the nodes that `apply` is called with
  RuleResult (*apply)(RuleGraph&, const IrNode&);
};

template <graph::Op... ops>
bool one_of(graph::Op op) {
  return ((op == ops) || ...);
}

// The families, in the order in which they are tried. Rules of different families match different operators, but for
// those that begin with an addition: what changes nothing goes first.
std::span<const Rule> algebra_rules();
std::span<const Rule> movement_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> scatter_rules();
std::span<const Rule> dot_rules();

}  // namespace weft::compiler
