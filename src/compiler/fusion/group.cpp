#include "compiler/fusion/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "compiler/fusion/grouper.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"
#include "graph/table.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

Grouper::Grouper(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy, const target::Target* target,
                 const std::vector<Update>& updates)
    : ir_(ir), policy_(policy), target_(target), users_(users(ir)), strides_(ir.nodes.size()),
      base_root_(ir.nodes.size()), promoted_(ir.nodes.size()), visited_(ir.nodes.size()),
      call_of_(ir.nodes.size(), -1) {
  for (size_t k = 0; k < ir.inputs.size(); ++k) {
    auto id = static_cast<size_t>(ir.inputs[k]);
    bool given = k < layouts.size() && !layouts[k].strides.empty();
    strides_[id] = given ? layouts[k].strides : row_major_strides(ir.nodes[id].type.shape);
  }
  for (const Update& u : updates)
    updated_[output_node(ir, ir.outputs[static_cast<size_t>(u.output)])] = ir.inputs[static_cast<size_t>(u.input)];
  find_roots();
}

Grouping Grouper::run() {
  promote_shared(count_readers_of_scalars(), true);
  form();
  list_inlining_groups();
  if (promote_shared(count_uses(), false)) form();
  return finish();
}

// ---------------------------------------------------------------- groups

/// Forms all groups from the outputs to the inputs. Starts anew when it is called again.
void Grouper::form() {
  groups_.clear();
  readers_.assign(ir_.nodes.size(), {});
  by_signature_.clear();
  group_of_.assign(ir_.nodes.size(), -1);
  for (NodeId id = ir_.size(); id-- > 0;)
    if (is_root(id)) assign(id);
  if (target_ && target_->machine().wants_many_programs()) join_columns();
}

/// Adds a group with the lowest rank: it computes what the groups before it read. Returns its id.
GroupId Grouper::add_group(std::unique_ptr<Work> work) {
  work->rank = -static_cast<int64_t>(groups_.size());
  groups_.push_back(std::move(work));
  return groups_.count() - 1;
}

/// Assigns a root to a group: to that of its dot, call or attention, to a rows group that it can join, or to a new one.
void Grouper::assign(NodeId node) {
  if (auto it = dot_of_.find(node); it != dot_of_.end()) {
    // With the first of its results: all readers of all of them have groups by then.
    const DotRegion& region = dots_[it->second];
    NodeId first = region.sum >= 0 ? std::min(region.sum, region.result) : region.result;
    for (const NodeId id : region.stored) first = std::min(first, id);
    if (node == first) assign_dot(it->second);
    return;
  }
  if (auto it = packs_.find(node); it != packs_.end()) return assign_attention(it->second);
  if (appends_.contains(node)) return;  // assigned with the attention that reads it
  if (writes_operand(ir_[node].op) || ir_[node].op == Op::cumulative) return assign_alone(node);
  if (is_call(ir_[node].op)) return is_attention(ir_[node]) ? assign_attention(node) : assign_call(node);
  const bool alone = ir_[node].compute == Compute::root;
  if (!cut_.contains(node) && !alone &&
      (join_state(node) || join_consumer(node) || join_reduction_reader(node) || join_state_reader(node) ||
       join_sibling(node)))
    return;
  begin_group(node);
}

/// Records that group g reads a root or leaf at an index; `conditional`: not at every point of the domain.
void Grouper::request(GroupId g, NodeId node, const std::vector<Expr>& index, bool conditional) {
  Work& work = *groups_[g];
  const auto it = work.requests.lower_bound(node);
  if (it == work.requests.end() || it->first != node) {
    work.requests.emplace_hint(it, node, Request{index, !conditional});
    readers_[node].push_back(g);
    if (GroupId producer = group_of_[node]; producer >= 0) connect(producer, g);
  } else if (conditional || it->second.index != index) {
    it->second.same = false;
  }
}

/// Requests the roots that a `depends` node waits for: no kernel reads them, but the group runs after theirs.
void Grouper::wait_for(GroupId g, int depends) {
  const std::vector<NodeId>& inputs = ir_[depends].inputs;
  for (size_t k = 1; k < inputs.size(); ++k) {
    if (is_root(inputs[k]) || is_leaf(ir_, inputs[k])) request(g, inputs[k], {}, true);
    else
      for (NodeId id : sources(inputs[k])) request(g, id, {}, true);
  }
}

/// Does the same for the `depends` nodes of a view from `view` to `base`.
void Grouper::wait_along(GroupId g, int view, NodeId base) {
  for (NodeId id = view; id != base && is_movement(ir_[id].op) && !is_root(id); id = ir_[id].inputs[0])
    if (ir_[id].op == Op::depends) wait_for(g, id);
}

/// Records in group g what the value of `node` at `index` is computed from, down to roots and leaves.
void Grouper::collect(GroupId g, NodeId node, std::vector<Expr> index, bool conditional) {
  IndexTuples tuples;
  std::vector<std::tuple<int, int, bool>> pending{{node, tuples.of(std::move(index)), conditional}};
  ix::Context& cx = *groups_[g]->group.cx;
  bool first = true;
  while (!pending.empty()) {
    const auto [id, tuple, guarded] = pending.back();
    pending.pop_back();
    bool body = std::exchange(first, false);
    if (!tuples.visit(id, tuple, guarded)) continue;
    const std::vector<Expr>& at = tuples[tuple];
    if (!body && (is_leaf(ir_, id) || is_root(id))) {
      request(g, id, at, guarded);
      continue;
    }
    groups_[g]->inlined.push_back(id);
    const IrNode& n = ir_[id];
    if (is_elementwise(n.op) &&
        std::any_of(users_[id].begin(), users_[id].end(), [&](NodeId user) { return ir_[user].op == Op::broadcast; }))
      groups_[g]->first_index.try_emplace(id, at);
    if (n.op == Op::concat) {
      for (Access& access : push_concat(cx, ir_, id, at))
        pending.emplace_back(access.node, tuples.of(std::move(access.index)), true);
    } else if (is_movement(n.op)) {
      if (n.op == Op::depends) wait_for(g, id);
      Access access = push(cx, ir_, id, at);
      pending.emplace_back(access.node, tuples.of(std::move(access.index)), guarded || access.valid);
    } else if (n.op == Op::gather) {
      size_t rank = index_rank(ir_, id);
      std::vector<Expr> prefix(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank));
      for (size_t k = 0; k < n.attrs->axes.size(); ++k)
        pending.emplace_back(n.inputs[k + 1], tuples.of(prefix), guarded);
      std::vector<Expr> inside(at.begin() + static_cast<std::ptrdiff_t>(rank), at.end());
      for (int64_t axis : n.attrs->axes) {
        int64_t range = ir_[n.inputs[0]].type.shape[static_cast<size_t>(axis)].bound() -
                        n.attrs->shape[static_cast<size_t>(axis)].bound();
        inside[static_cast<size_t>(axis)] =
            inside[static_cast<size_t>(axis)] + cx.variable("gathered", 0, std::max<int64_t>(0, range));
      }
      pending.emplace_back(n.inputs[0], tuples.of(std::move(inside)), true);
    } else if (n.op == Op::random_bits) {
      std::vector<Expr> word(at.begin(), at.end() - static_cast<std::ptrdiff_t>(n.attrs->shape.size()));
      word.push_back(cx.constant(0));
      pending.emplace_back(n.inputs[0], tuples.of(std::move(word)), true);
    } else {
      if (!is_elementwise(n.op) && !n.inputs.empty())
        throw_internal("group", "cannot be computed inline: " + print(ir_, id));
      for (NodeId input : n.inputs) pending.emplace_back(input, tuple, guarded);
    }
  }
}

/// Adds a root to a group and records what it reads.
void Grouper::append_root(GroupId g, Root root) {
  Work& work = *groups_[g];
  group_of_[root.node] = g;
  for (GroupId reader : readers_[root.node]) connect(g, reader);
  const IrNode& node = ir_[root.node];
  if (root.kind == RootKind::reduce) {
    // The operand's index is the reduction's own, with the inner variables inserted at the reduced axes.
    std::vector<Expr> inner;
    for (const DomainVariable& v : work.group.domain)
      if (v.inner) inner.push_back(v.var);
    std::vector<Expr> index;
    size_t next_inner = 0, next_kept = 0;
    const Shape& shape = ir_[node.inputs[0]].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      bool reduced = std::count(node.attrs->axes.begin(), node.attrs->axes.end(), static_cast<int64_t>(axis)) > 0;
      if (!reduced) index.push_back(root.index[next_kept++]);
      else index.push_back(shape[axis] == 1 ? work.group.cx->constant(0) : inner.at(next_inner++));
    }
    for (const NodeId input : node.inputs) {
      if (is_leaf(ir_, input) || is_root(input)) request(g, input, index, false);
      else collect(g, input, index, false);
    }
  } else {
    collect(g, root.node, root.index, false);
  }
  work.group.roots.insert(work.group.roots.begin(), std::move(root));
}

/// Starts a rows group with `node` as its only root.
void Grouper::begin_group(NodeId node) {
  auto work = std::make_unique<Work>();
  work->group.signature = signature_of(node);
  const IrNode& n = ir_[node];
  bool is_reduction = n.op == Op::reduce;
  const Shape& shape = is_reduction ? ir_[n.inputs[0]].type.shape : n.type.shape;
  work->group.seed_index = domain(*work->group.cx, shape, "i");
  Root root{node, is_reduction ? RootKind::reduce : RootKind::full, {}};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool reduced =
        is_reduction && std::count(n.attrs->axes.begin(), n.attrs->axes.end(), static_cast<int64_t>(axis)) > 0;
    if (!work->group.seed_index[axis].is_constant())
      work->group.domain.push_back({work->group.seed_index[axis], shape[axis], reduced});
    if (!reduced) root.index.push_back(work->group.seed_index[axis]);
  }
  by_signature_[work->group.signature].push_back(groups_.count());
  GroupId g = add_group(std::move(work));
  append_root(g, std::move(root));
}

/// Returns the plan of a dot, which is the same however groups form.
const DotPlan& Grouper::plan_of(size_t dot) {
  dot_plans_.resize(dots_.size());
  std::optional<DotPlan>& made = dot_plans_[dot];
  if (made) return *made;
  const DotRegion& region = dots_[dot];
  made = plan_dot(ir_, strides_, base_root_, region, policy_.numerics);
  const bool known = made->asked && region.asked && made->asked->digest() == region.asked->digest();
  if (target_) made->library = known ? region.library : library_for(*made, *target_, policy_);
  return *made;
}

/// Adds the group of a dot with its epilogue.
void Grouper::assign_dot(size_t number) {
  const DotRegion& region = dots_[number];
  auto work = std::make_unique<Work>();
  work->group.kind = Group::Kind::dot;
  work->group.dot = plan_of(number);
  const DotPlan& plan = work->group.dot;
  std::vector<NodeId> results{region.result};
  const std::vector<NodeId> operands = plan.reads();
  if (plan.sum >= 0) results.push_back(plan.sum);
  results.insert(results.end(), plan.stored.begin(), plan.stored.end());
  const NodeId a = plan.a.node, b = plan.b.node;
  const GroupId g = assign_results(std::move(work), results, operands);
  const IrNode& dot = ir_[region.dot];
  wait_along(g, dot.inputs[0], a);
  wait_along(g, dot.inputs[1], b);
}

/// Adds a group of one root, a cumulative reduction or a scatter.
void Grouper::assign_alone(NodeId node) {
  auto work = std::make_unique<Work>();
  work->group.kind = ir_[node].op == Op::cumulative ? Group::Kind::cumulative : Group::Kind::scatter;
  work->group.roots.push_back({node, RootKind::full, {}});
  if (const auto sums = scatter_rows_.find(node); sums != scatter_rows_.end()) work->group.scatter_rows = sums->second;
  GroupId g = add_group(std::move(work));
  group_of_[node] = g;
  for (GroupId reader : readers_[node]) connect(g, reader);
  std::vector<NodeId> inlined;
  for (NodeId id : sources(node, &inlined)) request(g, id, {}, true);
  groups_[g]->inlined = std::move(inlined);
}

/// Adds the group of a call when its first result is visited. All results have the same inputs, and nodes are visited
/// from last to first, so every reader of every result has its group by then.
void Grouper::assign_call(NodeId node) {
  const std::vector<NodeId>& results = calls_[static_cast<size_t>(call_of_[node])];
  if (node != results.front()) return;
  auto work = std::make_unique<Work>();
  work->group.kind = Group::Kind::call;
  CallPlan& plan = work->group.call;
  const IrNode& n = ir_[node];
  std::vector<graph::Type> types;
  for (NodeId input : n.inputs) types.push_back(ir_[input].type);
  plan.operands = call_operands_[static_cast<size_t>(call_of_[node])];
  plan.op = n.op;
  plan.control = n.attrs->control;
  plan.kernel = n.attrs->kernel;
  plan.desc = call_desc(n.attrs, types, n.results, policy_.numerics);
  if (plan.control) plan.desc.name = graph::row(n.op).name;
  plan.results.assign(n.results.size(), -1);
  for (NodeId id : results) plan.results[static_cast<size_t>(ir_[id].output)] = id;
  for (size_t k = 0; k < plan.results.size(); ++k) plan.desc.outputs[k].used = plan.results[k] >= 0;
  const std::vector<NodeId> operands = plan.operands;
  assign_results(std::move(work), results, operands);
}

/// Adds the group of an attention when its first result is visited.
void Grouper::assign_attention(NodeId node) {
  const std::vector<NodeId>& results = calls_[static_cast<size_t>(call_of_[node])];
  if (node != results.front()) return;
  auto work = std::make_unique<Work>();
  work->group.kind = Group::Kind::attention;
  std::vector<NodeId> by_output(ir_[node].results.size(), -1);
  for (NodeId id : results) by_output[static_cast<size_t>(ir_[id].output)] = id;
  const auto appended = kv_caches_.find(node);
  work->group.attention = plan_attention(ir_, strides_, base_root_, by_output, packed_,
                                         appended == kv_caches_.end() ? NodeId{} : appended->second);
  if (appended != kv_caches_.end()) return assign_with_kv_append(std::move(work), results, appended->second);
  const AttentionPlan& plan = work->group.attention;
  std::vector<NodeId> operands{plan.q.node, plan.k.node, plan.v.node, plan.mask.node, plan.key.node};
  if (plan.region.derivative)
    for (NodeId id : {plan.o.node, plan.lse.node, plan.g.node}) operands.push_back(id);
  const auto pack = packed_.find(node);
  assign_results(std::move(work), pack != packed_.end() ? std::vector<NodeId>{pack->second.node} : results, operands);
}

/// Adds the group of decode attention with a fused KV append, which computes the query and the appended row itself.
void Grouper::assign_with_kv_append(std::unique_ptr<Work> work, std::vector<NodeId> results, NodeId cache) {
  std::vector<NodeId> inlined;
  SortedSet<NodeId> read = sources(cache, &inlined);
  const NodeId query = ir_[results[0]].inputs[0];
  if (is_leaf(ir_, query) || is_root(query)) {
    read.insert(query);
  } else {
    inlined.push_back(query);
    read.merge(sources(query, &inlined));
  }
  read.insert(work->group.attention.mask.node);
  results.push_back(cache);
  work->inlined = std::move(inlined);
  assign_results(std::move(work), results, {read.begin(), read.end()});
}

/// Adds a group whose roots are `results` and which reads `operands` (-1: absent). Returns its id.
GroupId Grouper::assign_results(std::unique_ptr<Work> work, const std::vector<NodeId>& results,
                                const std::vector<NodeId>& operands) {
  for (NodeId id : results) work->group.roots.push_back({id, RootKind::full, {}});
  GroupId g = add_group(std::move(work));
  for (NodeId id : results) {
    group_of_[id] = g;
    for (GroupId reader : readers_[id]) connect(g, reader);
  }
  for (NodeId operand : operands)
    if (operand >= 0) request(g, operand, {}, true);
  return g;
}

// ---------------------------------------------------------------- result

/// Returns the groups in an order in which they can run, with what they read.
Grouping Grouper::finish() {
  Grouping result;
  // Groups were formed consumers first, and joins have moved roots since. Of the groups whose producers all come
  // before, the one with the first root in the graph is next.
  const auto taken_over =
      std::count_if(groups_.begin(), groups_.end(), [](const auto& work) { return work->group.roots.empty(); });
  IndexedVector<GroupId, int> waiting(groups_.size());
  for (const auto& work : groups_)
    for (GroupId consumer : work->consumers) ++waiting[consumer];
  auto first_root = [&](GroupId g) {
    NodeId id = ir_.size();
    for (const Root& root : groups_[g]->group.roots) id = std::min(id, root.node);
    return id;
  };
  std::set<std::pair<int, GroupId>> ready;
  for (size_t g = 0; g < groups_.size(); ++g)
    if (waiting[g] == 0 && !groups_[g]->group.roots.empty())
      ready.insert({first_root(static_cast<int>(g)), static_cast<int>(g)});
  IndexedVector<GroupId, int> new_value(groups_.size(), -1);
  result.groups.reserve(groups_.size());
  while (!ready.empty()) {
    GroupId g = ready.begin()->second;
    ready.erase(ready.begin());
    new_value[g] = static_cast<int>(result.groups.size());
    Work& work = *groups_[g];
    for (const auto& [id, request] : work.requests) work.group.reads.push_back(id);
    for (GroupId consumer : work.consumers)
      if (--waiting[consumer] == 0) ready.insert({first_root(consumer), consumer});
    result.groups.push_back(std::move(work.group));
  }
  check(result.groups.size() + static_cast<size_t>(taken_over) == groups_.size(), "group",
        "groups wait for each other");
  result.is_root.resize(ir_.nodes.size());
  for (NodeId id = 0; id < ir_.size(); ++id) result.is_root[id] = is_root(id);
  result.group_of = group_of_;
  for (GroupId& g : result.group_of)
    if (g >= 0) g = new_value[g];
  result.strides = strides_;
  return result;
}

Grouping group(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy, const target::Target* target,
               const std::vector<Update>& updates) {
  return Grouper(ir, layouts, policy, target, updates).run();
}

}  // namespace weft::compiler
