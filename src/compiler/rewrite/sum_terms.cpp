#include "compiler/rewrite/sum_terms.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/ir/index_map.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t least_rows = 4096;  // shorter columns are still in a cache when they are read again
constexpr size_t most_walked = 2048;  // nodes that a search visits at most
constexpr size_t most_terms = 4, most_sums = 32;

class Finder {
 public:
  explicit Finder(const Ir& ir) : ir_(ir), users_(users(ir)), outputs_(ir.outputs.begin(), ir.outputs.end()) {}

  /// Returns the sums to distribute with their terms.
  DistributedSums run() const {
    DistributedSums found;
    std::map<NodeId, std::set<NodeId>> inner;  // by sum: nodes of its operand that the terms make unnecessary
    for (NodeId id = 0; id < ir_.size(); ++id) {
      if (!is_column_sum(id)) continue;
      const std::set<NodeId> last = last_sums(id);
      if (last.empty()) continue;
      if (auto terms = terms_of(ir_[id].inputs[0], dependents(last, id), inner[id])) found[id] = std::move(*terms);
    }
    // A sum stays if its expression has another reader, because the expression is computed anyway.
    for (bool changed = true; changed;) {
      std::set<NodeId> unwanted;
      for (const auto& [sum, terms] : found) unwanted.insert(inner[sum].begin(), inner[sum].end());
      changed = std::erase_if(found, [&](const auto& entry) {
                  return std::any_of(inner[entry.first].begin(), inner[entry.first].end(), [&](NodeId id) {
                    return outputs_.contains(id) || std::any_of(users_[id].begin(), users_[id].end(), [&](NodeId user) {
                             return !unwanted.contains(user) && !found.contains(user);
                           });
                  });
                }) > 0;
    }
    std::set<std::vector<NodeId>> sums;
    for (const auto& [sum, terms] : found)
      for (const SumTerm& t : terms) sums.insert(t.values);
    return sums.size() <= most_sums ? found : DistributedSums{};
  }

 private:
  /// Returns whether a node is a float32 sum over all axes but the last, static, with at least `least_rows` rows.
  bool is_column_sum(NodeId id) const {
    const IrNode& n = ir_[id];
    if (n.op != Op::reduce || n.attrs->reducer != kernel::Reducer::sum || n.type.dtype != float32 || n.gemv)
      return false;
    const graph::Type& operand = ir_[n.inputs[0]].type;
    const size_t rank = operand.shape.size();
    if (operand.dtype != float32 || rank < 2 || n.attrs->axes.size() != rank - 1 ||
        n.attrs->axes.back() != static_cast<int64_t>(rank) - 2)
      return false;
    if (n.type.shape.size() != 1 ||
        std::any_of(operand.shape.begin(), operand.shape.end(), [](const Dim& d) { return !d.is_static(); }))
      return false;
    return volume(operand.shape) >= least_rows * volume(n.type.shape);
  }

  bool alike(int a, int b) const { return ir_[ir_[a].inputs[0]].type.shape == ir_[ir_[b].inputs[0]].type.shape; }

  /// Returns the column sums over positions of `like`'s shape that `node` depends on; with `through`, also those that
  /// these sums depend on. Returns nothing if the search visits too many nodes.
  std::optional<std::set<NodeId>> sums_behind(NodeId node, int like, bool through) const {
    std::set<NodeId> sums, seen;
    std::vector<NodeId> pending{node};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (!seen.insert(id).second) continue;
      if (seen.size() > most_walked) return std::nullopt;
      const IrNode& n = ir_[id];
      if (is_column_sum(id) && alike(id, like)) {
        sums.insert(id);
        if (!through) continue;
      }
      if (n.op == Op::dot || is_call(n.op)) continue;
      pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
    }
    return sums;
  }

  /// Returns the column sums that the operand of `sum` depends on, except those that another of these depends on: they
  /// are known when the last ones are computed.
  std::set<NodeId> last_sums(int sum) const {
    const auto direct = sums_behind(ir_[sum].inputs[0], sum, false);
    if (!direct) return {};
    std::set<NodeId> last = *direct;
    for (int other : *direct) {
      const auto before = sums_behind(ir_[other].inputs[0], sum, true);
      if (!before) return {};
      for (NodeId id : *before) last.erase(id);
    }
    return last;
  }

  /// Returns the operand of a broadcast of one element, or of one for each channel, to all positions; -1 for other
  /// nodes.
  NodeId channel_factors_of(NodeId id) const {
    const IrNode& n = ir_[id];
    if (n.op != Op::broadcast) return -1;
    const Shape& small = ir_[n.inputs[0]].type.shape;
    const int64_t size = volume(small);
    return size == 1 || (!small.empty() && size == small.back().bound() && small.back() == n.type.shape.back())
               ? n.inputs[0]
               : NodeId{};
  }

  /// Returns the terms of an expression, and collects the nodes that it expands in `inner`. `depends` marks the nodes
  /// that depend on the sums in question; any other node is a value of its own. Returns nothing if the expression is
  /// not linear in the sums, if a dependent node is materialized or no float32 add, sub, mul or neg, or if there are
  /// too many terms.
  std::optional<SumTerms> terms_of(NodeId id, const NodeFlags& depends, std::set<NodeId>& inner) const {
    if (const int factors = channel_factors_of(id); factors >= 0) return SumTerms{{{factors}, {}}};
    if (!depends[id]) return SumTerms{{{}, {id}}};
    const IrNode& n = ir_[id];
    if (n.materialized || n.type.dtype != float32 ||
        (n.op != Op::add && n.op != Op::sub && n.op != Op::mul && n.op != Op::neg))
      return std::nullopt;
    // Not linear in the sums: the terms of Σ (x − mean(x))² cancel (sum_terms.h).
    const auto expands = [&](NodeId input) { return depends[input] && channel_factors_of(input) < 0; };
    if (n.op == Op::mul && expands(n.inputs[0]) && expands(n.inputs[1])) return std::nullopt;
    inner.insert(id);
    auto a = terms_of(n.inputs[0], depends, inner);
    auto b = n.inputs.size() > 1 ? terms_of(n.inputs[1], depends, inner) : std::optional<SumTerms>(SumTerms{});
    if (!a || !b) return std::nullopt;
    if (n.op == Op::mul) {
      SumTerms products;
      for (const SumTerm& x : *a)
        for (const SumTerm& y : *b) {
          SumTerm both = x;
          both.factors.insert(both.factors.end(), y.factors.begin(), y.factors.end());
          both.values.insert(both.values.end(), y.values.begin(), y.values.end());
          both.negative = x.negative != y.negative;
          products.push_back(std::move(both));
        }
      return products.size() <= most_terms ? std::optional(products) : std::nullopt;
    }
    for (SumTerm& t : n.op == Op::neg ? *a : *b) t.negative = t.negative != (n.op != Op::add);
    a->insert(a->end(), b->begin(), b->end());
    return a->size() <= most_terms ? a : std::nullopt;
  }

  /// Marks the nodes below `end` that depend on the sums.
  NodeFlags dependents(const std::set<NodeId>& sums, int end) const {
    NodeFlags depends(static_cast<size_t>(end));
    for (NodeId id : sums) depends[id] = true;
    for (NodeId id = *sums.begin(); id < end; ++id)
      for (NodeId input : ir_[id].inputs) depends[id] = depends[id] || depends[input];
    return depends;
  }

  const Ir& ir_;
  const Users users_;
  const std::set<NodeId> outputs_;
};

}  // namespace

DistributedSums sums_to_distribute(const Ir& ir) { return Finder(ir).run(); }

}  // namespace weft::compiler
