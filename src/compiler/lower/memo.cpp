#include "compiler/lower/memo.h"

#include <algorithm>

namespace weft::compiler {

namespace {

/// Hashes everything that lowering reads from a rows group. Nodes, buffers and variables are numbered in the order of
/// the walk, so that equal groups get equal keys.
class GroupKey {
 public:
  GroupKey(const LowerContext& cx, const Group& group, const std::optional<Schedule>& schedule)
      : cx_(cx), group_(group) {
    h_.text(schedule ? to_string(*schedule) : "");
    for (const DomainVariable& v : group.domain) {
      variables_.push_back(v.var->value);
      dim(v.extent);
      h_.number(v.inner);
    }
    for (const Root& root : group.roots) {
      h_.number(root.kind).number(root.index.size());
      for (ix::Expr e : root.index) expression(e.get());
      node(root.node);
    }
    for (const Root& root : group.roots) h_.number(position(root.node));  // which nodes are this group's own
  }

  Digest digest() const { return h_.finish(); }
  /// Returns the owners of the nodes' buffers, in the order of the walk; -1 for nodes without memory.
  const std::vector<NodeId>& owners() const { return owners_; }

 private:
  void dim(const Dim& d) { h_.number(d.bound()).number(reinterpret_cast<uintptr_t>(d.symbol())); }

  void expression(const ix::Node* e) {
    auto [it, fresh] = expressions_.try_emplace(e, static_cast<int>(expressions_.size()));
    h_.number(fresh).number(it->second);
    if (!fresh) return;
    h_.number(e->kind);
    if (e->kind == ix::Kind::variable)
      h_.number(std::find(variables_.begin(), variables_.end(), e->value) - variables_.begin());
    else h_.number(e->value);
    if (e->a) expression(e->a);
    if (e->b) expression(e->b);
  }

  int position(NodeId id) const { return nodes_.at(id); }

  /// Hashes a node, and its operands down to memory: how other groups compute their roots does not matter.
  void node(NodeId id) {
    auto [it, fresh] = nodes_.try_emplace(id, static_cast<int>(nodes_.size()));
    h_.number(it->second);
    if (!fresh) return;
    const IrNode& n = cx_.ir[id];
    auto at = static_cast<size_t>(id);
    bool root = cx_.grouping.is_root[at], in_memory = is_leaf(cx_.ir, id) || root;
    bool own = std::any_of(group_.roots.begin(), group_.roots.end(), [&](const Root& r) { return r.node == id; });
    h_.number(root).number(in_memory).number(n.type.dtype.val()).number(n.type.shape.size());
    for (const Dim& d : n.type.shape) dim(d);
    if (in_memory) {
      const NodeId owner = cx_.buffer_owner[at];
      h_.number(static_cast<bool>(cx_.has_buffer[at]))
          .number(static_cast<bool>(cx_.streamed[at]))
          .number(buffers_.try_emplace(owner, buffers_.size()).first->second);
      for (int64_t s : cx_.grouping.strides[at]) h_.number(s);
      owners_.push_back(owner);
      if (!own) return;
    } else {
      owners_.push_back(-1);
    }
    h_.number(n.op).number(n.fused);
    hash(h_, n.attrs);
    h_.number(n.inputs.size());
    for (NodeId input : n.inputs) node(input);
  }

  const LowerContext& cx_;
  const Group& group_;
  Hasher h_;
  std::vector<int64_t> variables_;
  std::unordered_map<const ix::Node*, int> expressions_;
  std::unordered_map<NodeId, int> nodes_;
  std::unordered_map<NodeId, size_t> buffers_;
  std::vector<NodeId> owners_;
};

/// Hashes the plan of a dot or attention group, with its buffers numbered in the order of the walk.
class PlanKey {
 public:
  PlanKey(const LowerContext& cx, Group::Kind kind) : cx_(cx) { h_.number(kind); }

  void schedule(const std::optional<Schedule>& schedule) { h_.text(schedule ? to_string(*schedule) : ""); }
  void dot(const DotPlan& plan, NodeId result) {
    h_.digest(plan.desc.digest()).number(plan.a.offset).number(plan.b.offset);
    for (const kernel::Epilogue* e : {&plan.epilogue, &plan.a_prologue.steps, &plan.b_prologue.steps}) e->hash(h_);
    for (const Dim& d : plan.extents) dim(d);
    for (const NodeId id : {plan.a.node, plan.b.node, plan.sum, result}) node(id);
    for (const std::vector<OperandView>* list : {&plan.operands, &plan.a_prologue.operands, &plan.b_prologue.operands})
      for (const OperandView& x : *list) {
        node(x.node);
        h_.number(x.offset);
      }
    for (const NodeId id : plan.stored) node(id);
  }

  void attention(const AttentionPlan& plan) {
    const graph::AttentionRegion& r = plan.region;
    h_.number(r.scale).number(r.causal).number(r.offset).number(r.mask).number(r.derivative).number(r.dropout);
    h_.number(plan.keyed);
    add_list(plan.batch);
    dim(plan.tq), dim(plan.tk);
    h_.number(plan.width).number(plan.value_width).number(plan.splits).number(plan.split_keys).number(plan.join);
    for (const AttentionOperand* x : {&plan.q, &plan.k, &plan.v, &plan.mask, &plan.key, &plan.o, &plan.lse, &plan.g,
                                      &plan.dq, &plan.dk, &plan.dv}) {
      node(x->node);
      h_.number(x->dtype.val()).number(x->offset).number(x->row).number(x->column);
      add_list(x->batch);
    }
  }

  Digest digest() const { return h_.finish(); }
  const std::vector<NodeId>& owners() const { return owners_; }

 private:
  void dim(const Dim& d) { h_.number(d.bound()).number(reinterpret_cast<uintptr_t>(d.symbol())); }
  void add_list(const std::vector<int64_t>& list) {
    h_.number(list.size());
    for (const int64_t n : list) h_.number(n);
  }
  void node(NodeId id) {
    if (id < 0) {
      h_.number(-1);
      return;
    }
    const NodeId owner = cx_.buffer_owner[id];
    const auto it = std::find(owners_.begin(), owners_.end(), owner);
    h_.number(it - owners_.begin()).number(cx_.ir[id].type.dtype.val());
    if (it == owners_.end()) owners_.push_back(owner);
  }

  const LowerContext& cx_;
  Hasher h_;
  std::vector<NodeId> owners_;
};

}  // namespace

std::optional<Lowering> LoweringMemo::find(const Digest& key, const std::vector<NodeId>& owners) const {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return {};
  Lowering result{it->second.code, it->second.digest, {}};
  for (int at : it->second.params) result.params.push_back(owners[at]);
  return result;
}

Lowering LoweringMemo::insert(const Digest& key, const std::vector<NodeId>& owners, Lowered lowered) {
  auto code = std::make_shared<const Lowered>(std::move(lowered));
  Entry entry{code, kernel::digest(code->kernel), {}};
  for (int param : code->params)
    entry.params.push_back(static_cast<int>(std::find(owners.begin(), owners.end(), param) - owners.begin()));
  entries_.emplace(key, entry);
  return {code, entry.digest, code->params};
}

std::optional<Lowering> LoweringMemo::rows(const LowerContext& cx, const Group& group,
                                           const std::optional<Schedule>& schedule) {
  const GroupKey key(cx, group, schedule);
  if (std::optional<Lowering> known = find(key.digest(), key.owners())) return known;
  std::optional<Lowered> lowered = lower_rows(cx, group, schedule);
  if (!lowered) return {};
  return insert(key.digest(), key.owners(), std::move(*lowered));
}

Lowering LoweringMemo::dot(const LowerContext& cx, const Group& group, const std::optional<Schedule>& schedule) {
  PlanKey key(cx, group.kind);
  key.schedule(schedule);
  key.dot(group.dot, group.roots[0].node);
  if (std::optional<Lowering> known = find(key.digest(), key.owners())) return *known;
  return insert(key.digest(), key.owners(), lower_dot(cx, group, schedule));
}

Lowering LoweringMemo::single_query(const LowerContext& cx, const Group& group) {
  PlanKey key(cx, group.kind);
  key.attention(group.attention);
  if (std::optional<Lowering> known = find(key.digest(), key.owners())) return *known;
  return insert(key.digest(), key.owners(), lower_single_query(cx, group));
}

}  // namespace weft::compiler
