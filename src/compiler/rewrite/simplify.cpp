#include "compiler/rewrite/simplify.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/rewrite/rules.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

Digest hash(const IrNode& node) {
  Hasher h;
  h.number(static_cast<uint64_t>(node.op) | static_cast<uint64_t>(node.type.dtype.val()) << 8 |
           static_cast<uint64_t>(node.output) << 16 | static_cast<uint64_t>(node.inputs.size()) << 32);
  h.bytes(node.inputs.data(), node.inputs.size() * sizeof(int));
  h.number(node.gemv | node.scaled << 1 | node.fused << 2 | node.materialized << 3).number(node.phase);
  for (const Dim& d : node.type.shape) h.number(d.bound()).number(reinterpret_cast<uintptr_t>(d.symbol()));
  graph::hash(h, node.attrs);
  return h.finish();
}

}  // namespace

RuleIndex index_rules(std::initializer_list<std::span<const Rule>> families) {
  RuleIndex all(graph::table().size());
  for (const std::span<const Rule> family : families)
    for (const Rule& rule : family)
      for (const graph::Row* row : graph::table())
        if (rule.operators(row->op)) all[static_cast<size_t>(row->op)].push_back(&rule);
  return all;
}

Ir RuleGraph::run() {
  out_.nodes.reserve(source_.nodes.size());
  known_.reserve(source_.nodes.size());
  auto take = [&](NodeId id) { return std::move(source_.nodes[id]); };
  auto mapped = [&](NodeId id) -> NodeId& { return map_[id]; };
  for (NodeId id : source_.inputs) out_.inputs.push_back(mapped(id) = append(take(id)));
  for (NodeId id = 0; id < source_.size(); ++id) {
    if (mapped(id) >= 0) continue;
    IrNode node = take(id);
    for (NodeId& input : node.inputs) input = mapped(input);
    next_ = id, phase_ = node.phase;
    mapped(id) = add(std::move(node));
    if (facts_.readers.empty()) continue;
    readers_.resize(out_.nodes.size());
    readers_[mapped(id)] += facts_.readers[id];
  }
  for (NodeId id : source_.outputs) out_.outputs.push_back(mapped(id));
  carry_labels(source_, out_, mapped);
  return std::move(out_);
}

NodeId RuleGraph::append(IrNode node) {
  out_.nodes.push_back(std::move(node));
  return out_.size() - 1;
}

NodeId RuleGraph::add(IrNode node) {
  own_ = std::exchange(next_, -1);  // a rule that fires calls `add` for nodes of its own
  if (const std::optional<int> better = rewrite(node)) return *better;
  Digest key = hash(node);
  auto [it, fresh] = known_.try_emplace(key, out_.size());
  if (fresh) append(std::move(node));
  return it->second;
}

std::optional<int> RuleGraph::rewrite(const IrNode& node) {
  for (const Rule* rule : rules_[static_cast<size_t>(node.op)])
    if (auto result = rule->apply(*this, node)) return result;
  return {};
}

const SumTerms* RuleGraph::terms() const {
  const auto found = facts_.distributed.find(own_);
  return found == facts_.distributed.end() ? nullptr : &found->second;
}

const FramedSum* RuleGraph::framed_sum() const {
  const auto found = facts_.framed.find(own_);
  return found == facts_.framed.end() ? nullptr : &found->second;
}

NodeId RuleGraph::cast_to(NodeId id, Dtype dtype) {
  if ((*this)[id].type.dtype == dtype) return id;
  Attrs attrs;
  attrs.dtype = dtype;
  return make(Op::cast, {id}, {(*this)[id].type.shape, dtype}, attrs);
}

NodeId RuleGraph::reshape_to(NodeId id, const Shape& shape) {
  if ((*this)[id].type.shape == shape) return id;
  Attrs attrs;
  attrs.shape = shape;
  return make(Op::reshape, {id}, {shape, (*this)[id].type.dtype}, attrs);
}

NodeId RuleGraph::broadcast_to(NodeId id, const Shape& shape) {
  Attrs attrs;
  attrs.shape = shape;
  return make(Op::broadcast, {id}, {shape, (*this)[id].type.dtype}, attrs);
}

NodeId RuleGraph::constant(Dtype dtype, Number number) {
  Attrs attrs;
  attrs.dtype = dtype;
  attrs.number = kernel::round_to(number, dtype);
  return make(Op::constant, {}, {{}, dtype}, attrs);
}

NodeId RuleGraph::constant_like(const graph::Type& type, Number number) {
  NodeId scalar = constant(type.dtype, number);
  return type.shape.empty() ? scalar : broadcast_to(scalar, type.shape);
}

std::optional<Number> RuleGraph::splat(NodeId id) const {
  while ((*this)[id].op == Op::broadcast || (*this)[id].op == Op::reshape) id = (*this)[id].inputs[0];
  if ((*this)[id].op == Op::constant) return (*this)[id].attrs->number;
  return std::nullopt;
}

bool RuleGraph::is_splat(NodeId id, double value) const {
  auto number = splat(id);
  return number && number->real() == value && !std::signbit(number->real());
}

Ir simplify(Ir ir) {
  static const RuleIndex rules =
      index_rules({algebra_rules(), movement_rules(), reduction_rules(), scatter_rules(), dot_rules()});
  return RuleGraph(std::move(ir), rules).run();
}

Ir with_plain_operands(Ir ir) {
  if (std::none_of(ir.nodes.begin(), ir.nodes.end(),
                   [](const IrNode& n) { return is_call(n.op) || writes_operand(n.op); }))
    return ir;
  Ir result;
  result.nodes.reserve(ir.nodes.size());
  IndexedVector<NodeId, NodeId> renumbered;
  std::unordered_map<NodeId, NodeId> copies;
  for (IrNode& node : ir.nodes) {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      NodeId& input = node.inputs[k];
      input = renumbered[input];
      const IrNode& operand = result[input];
      const bool whole = (is_call(node.op) && !is_attention(node)) || (writes_operand(node.op) && k == 0);
      if (!whole || operand.op != Op::parameter || operand.row_major) continue;
      auto [it, fresh] = copies.try_emplace(input, result.size());
      if (fresh) result.nodes.push_back({Op::stop_gradient, {input}, {}, graph::Type(operand.type), true});
      input = it->second;
    }
    renumbered.push_back(result.size());
    result.nodes.push_back(std::move(node));
  }
  for (NodeId id : ir.inputs) result.inputs.push_back(renumbered[id]);
  for (NodeId id : ir.outputs) result.outputs.push_back(renumbered[id]);
  carry_labels(ir, result, [&](NodeId id) { return renumbered[id]; });
  return result;
}

}  // namespace weft::compiler
