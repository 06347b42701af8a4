#pragma once
// The interface of rules: of simplify's, and of the algebra of reductions. A rule gets a node whose operands are
// rewritten already and returns the node that replaces it. Each family of rules is a table in its own file, one row a
// rule.
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/rewrite/framed_sums.h"
#include "compiler/rewrite/sum_terms.h"

namespace weft::compiler {

struct Rule;
/// By operator: the rules that may match it, in the order in which they are tried.
using RuleIndex = std::vector<std::vector<const Rule*>>;
RuleIndex index_rules(std::initializer_list<std::span<const Rule>> families);

/// What is known of the nodes of a graph before it is rewritten, as far as its rules ask.
struct RuleFacts {
  DistributedSums distributed;
  NodeCounts readers;  // of each node; an output is one
  FramedSums framed;
};

/// The graph that rules build, node by node. `add` returns the result of the first rule that fires, else an equal node
/// that exists, else the new node.
class RuleGraph {
 public:
  RuleGraph(Ir source, const RuleIndex& rules, RuleFacts facts = {})
      : source_(std::move(source)), rules_(rules), facts_(std::move(facts)), map_(source_.nodes.size(), -1) {}

  /// Returns the rewritten graph with all nodes of the source; replaced ones stay without readers.
  Ir run();

  NodeId add(IrNode node);
  const IrNode& operator[](NodeId id) const { return out_[id]; }

  /// Returns the terms of the sum that is being rewritten, or nullptr where it is not to be distributed, or is a node
  /// that a rule adds.
  const SumTerms* terms() const;
  /// Returns the framed sum that the node being rewritten is, or is the frame of, if they are to be joined.
  const FramedSum* framed_sum() const;
  /// Returns whether a node stands for nodes of the source with one reader in all.
  bool read_once(NodeId id) const { return int{id} < readers_.count() && readers_[id] == 1; }
  /// Returns what a node of the source became. It must come before the node that is being rewritten.
  NodeId renamed(NodeId id) const { return map_[id]; }
  /// Sets the phase of the nodes that `make` adds, until the next node of the source. At first it is that node's.
  void set_phase(int phase) { phase_ = phase; }

  // Short forms in which the rules are written.
  NodeId make(graph::Op op, std::vector<NodeId> inputs, graph::Type type, graph::Attrs attrs = {}) {
    IrNode node{op, std::move(inputs), std::move(attrs), std::move(type), true};
    node.phase = phase_;
    return add(std::move(node));
  }
  NodeId cast_to(NodeId id, Dtype dtype);  // cast_to and reshape_to: `id` itself where nothing changes
  NodeId reshape_to(NodeId id, const Shape& shape);
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
  const RuleIndex& rules_;
  const RuleFacts facts_;
  Ir out_;
  NodeId next_ = -1;  // the node of the source that the next `add` adds; -1 where a rule calls it
  NodeId own_ = -1;   // the node of the source that is being rewritten; -1 from the first node that a rule adds
  int phase_ = 0;
  IndexedVector<NodeId, NodeId> map_;  // by id in `source_`; -1 before its turn
  NodeCounts readers_;                 // by id in `out_`: of the nodes of the source that became it
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
/// The algebra of reductions, which passes of its own apply (reduction_algebra.h).
std::span<const Rule> nested_reduction_rules();
std::span<const Rule> reduction_algebra_rules();
std::span<const Rule> framed_sum_rules();

}  // namespace weft::compiler
