#include "compiler/rewrite/distribute_reduction.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t least_rows = 4096;  // shorter columns are still in a cache when they are read again
constexpr size_t most_walked = 2048;  // nodes that a search visits at most
constexpr size_t most_terms = 4, most_sums = 32;

/// A term of a linear expression: ± the product of `factors` (one element, or one for each channel) and of `values`
/// (one element for each position and channel; may be empty).
struct Term {
  std::vector<NodeId> factors, values;
  bool negative = false;
};
using Terms = std::vector<Term>;

class DistributeReduction : Rewriter {
 public:
  explicit DistributeReduction(Ir ir)
      : Rewriter(std::move(ir)), users_(users(from_)), outputs_(from_.outputs.begin(), from_.outputs.end()) {}

  Ir run() {
    find();
    if (found_.empty()) return std::move(from_);
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      const auto terms = found_.find(id);
      return terms == found_.end() ? add(std::move(node)) : total(id, terms->second);
    });
  }

 private:
  // ---------------------------------------------------------------- analysis

  /// Returns whether a node is a float32 sum over all axes but the last, static, with at least `least_rows` rows.
  bool is_column_sum(NodeId id) const {
    const IrNode& n = from_[id];
    if (n.op != Op::reduce || n.attrs->reducer != kernel::Reducer::sum || n.type.dtype != float32 || n.gemv)
      return false;
    const graph::Type& operand = from_[n.inputs[0]].type;
    const size_t rank = operand.shape.size();
    if (operand.dtype != float32 || rank < 2 || n.attrs->axes.size() != rank - 1 ||
        n.attrs->axes.back() != static_cast<int64_t>(rank) - 2)
      return false;
    if (n.type.shape.size() != 1 ||
        std::any_of(operand.shape.begin(), operand.shape.end(), [](const Dim& d) { return !d.is_static(); }))
      return false;
    return volume(operand.shape) >= least_rows * volume(n.type.shape);
  }

  bool alike(int a, int b) const {
    return from_[from_[a].inputs[0]].type.shape == from_[from_[b].inputs[0]].type.shape;
  }

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
      const IrNode& n = from_[id];
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
    const auto direct = sums_behind(from_[sum].inputs[0], sum, false);
    if (!direct) return {};
    std::set<NodeId> last = *direct;
    for (int other : *direct) {
      const auto before = sums_behind(from_[other].inputs[0], sum, true);
      if (!before) return {};
      for (NodeId id : *before) last.erase(id);
    }
    return last;
  }

  /// Returns the operand of a broadcast of one element, or of one for each channel, to all positions; -1 for other
  /// nodes.
  NodeId channel_factors_of(NodeId id) const {
    const IrNode& n = from_[id];
    if (n.op != Op::broadcast) return -1;
    const Shape& small = from_[n.inputs[0]].type.shape;
    const int64_t size = volume(small);
    return size == 1 || (!small.empty() && size == small.back().bound() && small.back() == n.type.shape.back())
               ? n.inputs[0]
               : NodeId{};
  }

  /// Returns the terms of an expression, and collects the nodes that it expands in `inner`. `depends` marks the nodes
  /// that depend on the sums in question; any other node is a value of its own. Returns nothing if a dependent node is
  /// materialized or no float32 add, sub, mul or neg, or if there are too many terms.
  std::optional<Terms> terms_of(NodeId id, const NodeFlags& depends, std::set<NodeId>& inner) const {
    if (const int factors = channel_factors_of(id); factors >= 0) return Terms{{{factors}, {}}};
    if (!depends[id]) return Terms{{{}, {id}}};
    const IrNode& n = from_[id];
    if (n.materialized || n.type.dtype != float32 ||
        (n.op != Op::add && n.op != Op::sub && n.op != Op::mul && n.op != Op::neg))
      return std::nullopt;
    inner.insert(id);
    auto a = terms_of(n.inputs[0], depends, inner);
    auto b = n.inputs.size() > 1 ? terms_of(n.inputs[1], depends, inner) : std::optional<Terms>(Terms{});
    if (!a || !b) return std::nullopt;
    if (n.op == Op::mul) {
      Terms products;
      for (const Term& x : *a)
        for (const Term& y : *b) {
          Term both = x;
          both.factors.insert(both.factors.end(), y.factors.begin(), y.factors.end());
          both.values.insert(both.values.end(), y.values.begin(), y.values.end());
          both.negative = x.negative != y.negative;
          products.push_back(std::move(both));
        }
      return products.size() <= most_terms ? std::optional(products) : std::nullopt;
    }
    for (Term& t : n.op == Op::neg ? *a : *b) t.negative = t.negative != (n.op != Op::add);
    a->insert(a->end(), b->begin(), b->end());
    return a->size() <= most_terms ? a : std::nullopt;
  }

  /// Marks the nodes below `end` that depend on the sums.
  NodeFlags dependents(const std::set<NodeId>& sums, int end) const {
    NodeFlags depends(static_cast<size_t>(end));
    for (NodeId id : sums) depends[id] = true;
    for (NodeId id = *sums.begin(); id < end; ++id)
      for (NodeId input : from_[id].inputs) depends[id] = depends[id] || depends[input];
    return depends;
  }

  /// Finds the sums to replace and their terms (`found_`).
  void find() {
    std::map<NodeId, std::set<NodeId>> inner;  // by sum: nodes of its operand that the terms make unnecessary
    for (NodeId id = 0; id < from_.size(); ++id) {
      if (!is_column_sum(id)) continue;
      const std::set<NodeId> last = last_sums(id);
      if (last.empty()) continue;
      if (auto terms = terms_of(from_[id].inputs[0], dependents(last, id), inner[id])) found_[id] = std::move(*terms);
    }
    // A sum stays if its expression has another reader, because the expression is computed anyway.
    for (bool changed = true; changed;) {
      std::set<NodeId> unwanted;
      for (const auto& [sum, terms] : found_) unwanted.insert(inner[sum].begin(), inner[sum].end());
      changed = std::erase_if(found_, [&](const auto& entry) {
                  return std::any_of(inner[entry.first].begin(), inner[entry.first].end(), [&](NodeId id) {
                    return outputs_.contains(id) || std::any_of(users_[id].begin(), users_[id].end(), [&](NodeId user) {
                             return !unwanted.contains(user) && !found_.contains(user);
                           });
                  });
                }) > 0;
    }
    std::set<std::vector<NodeId>> sums;
    for (const auto& [sum, terms] : found_)
      for (const Term& t : terms) sums.insert(t.values);
    if (sums.size() > most_sums) found_.clear();
  }

  // ---------------------------------------------------------------- rewriting

  /// Returns what replaces a sum: the sum over its terms of factors times the column sum of the values.
  NodeId total(NodeId id, const Terms& terms) {
    const IrNode& sum = from_[id];
    int all = -1;
    for (const Term& t : terms) {
      NodeId v = sum_of(t.values, sum);
      for (int factors : t.factors) {
        const int number = renamed(factors);
        const int broadcast_row = volume(to_[number].type.shape) == 1 && !(sum.type.shape[0] == 1)
                                      ? shaped(Op::broadcast, shaped(Op::reshape, number, {1}), sum.type.shape)
                                      : shaped(Op::reshape, number, sum.type.shape);
        v = add(made(Op::mul, {v, broadcast_row}, sum.type.shape, float32));
      }
      if (all < 0) all = t.negative ? add(made(Op::neg, {v}, sum.type.shape, float32)) : v;
      else all = add(made(t.negative ? Op::sub : Op::add, {all, v}, sum.type.shape, float32));
    }
    return all;
  }

  /// Returns the column sum of the product of `values`; without values, the number of rows.
  NodeId sum_of(const std::vector<NodeId>& values, const IrNode& like) {
    const Shape& positions = from_[like.inputs[0]].type.shape;
    if (values.empty()) {
      IrNode count = made(Op::constant, {}, {}, float32);
      const int64_t rows = volume(positions) / positions.back().bound();
      count.attrs.edit().number = Number::of_real(static_cast<double>(rows));
      return shaped(Op::broadcast, shaped(Op::reshape, add(std::move(count)), {1}), like.type.shape);
    }
    const auto [known, fresh] = sums_.try_emplace({values, bounds(positions)}, -1);
    if (!fresh) return known->second;
    if (values.size() == 1)
      for (NodeId user : users_[values[0]])
        if (is_column_sum(user) && !found_.contains(user) && renamed(user) > 0 && to_[renamed(user)].op == Op::reduce)
          return known->second = renamed(user);
    NodeId product = renamed(values[0]);
    for (size_t k = 1; k < values.size(); ++k)
      product = add(made(Op::mul, {product, renamed(values[k])}, positions, float32));
    IrNode sum = like;
    sum.inputs = {product};
    sum.phase = phase_;
    return known->second = add(std::move(sum));
  }

  const Users users_;
  const std::set<NodeId> outputs_;
  std::map<NodeId, Terms> found_;  // by column sum: its terms
  // The column sums made so far, by values and extents of the positions.
  std::map<std::pair<std::vector<NodeId>, std::vector<int64_t>>, int> sums_;
};

}  // namespace

Ir distribute_reduction(Ir ir) { return DistributeReduction(std::move(ir)).run(); }

}  // namespace weft::compiler
