#pragma once
// The interface of simplify's rules. A rule gets a node whose operands are simplified already and returns the node that
// replaces it. Each family of rules is a table in its own file, one row a rule.
#include <cmath>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// The graph that simplify builds, node by node. `add` returns the result of the first rule that fires, else an equal
/// node that exists, else the new node.
class RuleGraph {
 public:
  explicit RuleGraph(Ir source) : source_(std::move(source)), map_(source_.nodes.size(), -1) {}

  /// Returns the rewritten graph with all nodes of the source; replaced ones stay without readers.
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
  /// Returns the number that every element of `id` equals, if `id` is a constant, reshaped or broadcast.
  std::optional<Number> splat(NodeId id) const;
  bool is_splat(NodeId id, double value) const;

 private:
  NodeId append(IrNode node);
  std::optional<int> rewrite(const IrNode& node);  // nothing if no rule fires; `node` is not in the graph yet

  Ir source_;
  Ir out_;
  IndexedVector<NodeId, NodeId> map_;  // by id in `source_`; -1 before its turn
  std::unordered_map<Digest, NodeId> known_;
};

using RuleResult = std::optional<int>;

struct Rule {
  const char* name;
  const char* form;              // as algebra: before → after
  const char* condition;         // when it applies
  bool (*operators)(graph::Op);  // whether `apply` is called on nodes of this operator
  RuleResult (*apply)(RuleGraph&, const IrNode&);
};

template <graph::Op... ops>
bool one_of(graph::Op op) {
  return ((op == ops) || ...);
}

// The families, in the order in which they are tried. For additions, which several families match, the rules that drop
// the addition come first.
std::span<const Rule> algebra_rules();
std::span<const Rule> movement_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> scatter_rules();
std::span<const Rule> dot_rules();

}  // namespace weft::compiler
