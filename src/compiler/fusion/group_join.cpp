// Decides which roots join which groups: the group that reads the root at its own point, or a sibling over the same
// domain.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "compiler/fusion/grouper.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

/// Returns the groups reachable from `from` along the edges (or against them), itself included, with ranks up to (down
/// to) `limit`.
std::vector<GroupId> Grouper::search(GroupId from, bool forward, int64_t limit) const {
  const int64_t mark = ++searches_;
  std::vector<GroupId> found{from};
  groups_[from]->seen = mark;
  for (size_t k = 0; k < found.size(); ++k) {
    const Work& work = *groups_[found[k]];
    for (int next : forward ? work.consumers : work.producers) {
      const Work& w = *groups_[next];
      if (w.seen == mark || (forward ? w.rank > limit : w.rank < limit)) continue;
      w.seen = mark;
      found.push_back(next);
    }
  }
  return found;
}

/// Returns whether some path of edges leads from group `from` to group `to`.
bool Grouper::reaches(GroupId from, GroupId to) const {
  if (from == to) return true;
  const int64_t limit = groups_[to]->rank;
  if (groups_[from]->rank > limit) return false;
  search(from, true, limit);
  return groups_[to]->seen == searches_;
}

/// Adds an edge and keeps the ranks in topological order: only groups between the two are moved (Pearce and Kelly, "A
/// dynamic topological sort algorithm for directed acyclic graphs", 2007).
void Grouper::connect(GroupId producer, GroupId consumer) {
  if (producer == consumer) return;
  Work &p = *groups_[producer], &c = *groups_[consumer];
  if (std::find(p.consumers.begin(), p.consumers.end(), consumer) != p.consumers.end()) return;
  if (p.rank > c.rank) {
    std::vector<GroupId> before = search(producer, false, c.rank), after = search(consumer, true, p.rank);
    auto by_rank = [&](int a, int b) { return groups_[a]->rank < groups_[b]->rank; };
    std::sort(before.begin(), before.end(), by_rank);
    std::sort(after.begin(), after.end(), by_rank);
    before.insert(before.end(), after.begin(), after.end());
    std::vector<int64_t> ranks;
    for (GroupId g : before) ranks.push_back(groups_[g]->rank);
    std::sort(ranks.begin(), ranks.end());
    for (size_t k = 0; k < before.size(); ++k) groups_[before[k]]->rank = ranks[k];
  }
  p.consumers.push_back(consumer);
  c.producers.push_back(producer);
}

/// Returns whether `index` visits each element of `shape` exactly once as `vars` run over their extents. The index may
/// hold the variables in any order, or split their row-major number.
bool Grouper::covers(const std::vector<Expr>& index, const Shape& shape, const std::vector<DomainVariable>& vars,
                     ix::Context& cx) const {
  int64_t count = 1;
  for (const DomainVariable& v : vars) count *= v.extent.bound();
  if (count != volume(shape)) return false;
  std::set<const ix::Node*> used;
  bool plain = true;
  for (size_t k = 0; k < index.size(); ++k) {
    if (index[k].is_constant()) {
      plain = plain && shape[k] == 1;
      continue;
    }
    auto v = std::find_if(vars.begin(), vars.end(), [&](const DomainVariable& d) { return d.var == index[k]; });
    plain = plain && v != vars.end() && v->extent == shape[k] && used.insert(index[k].get()).second;
  }
  if (plain) return true;
  std::vector<Expr> all;
  Shape extents;
  for (const DomainVariable& v : vars) {
    if (!v.extent.is_static()) return false;
    all.push_back(v.var);
    extents.push_back(v.extent);
  }
  return ix::linear(cx, index, row_major_strides(shape)) == ix::linear(cx, all, row_major_strides(extents));
}

namespace {

/// Returns the extents of the axes that a reduction runs over, except those of 1.
std::vector<Dim> reduced_extents(const Ir& ir, NodeId reduction) {
  std::vector<Dim> extents;
  for (int64_t axis : ir[reduction].attrs->axes) {
    Dim extent = ir[ir[reduction].inputs[0]].type.shape[static_cast<size_t>(axis)];
    if (!(extent == 1)) extents.push_back(extent);
  }
  return extents;
}

}  // namespace

/// Returns whether a value of one element a row is computed from reductions over as many elements as the domain has.
/// Those reductions are then computed with the domain's rows.
bool Grouper::depends_on_reduction(NodeId node, const std::vector<DomainVariable>& domain) const {
  constexpr size_t looked_at = 16;
  int64_t points = 1;
  for (const DomainVariable& v : domain) points *= v.extent.bound();
  SortedSet<NodeId> seen;
  std::vector<NodeId> pending{node};
  while (!pending.empty() && seen.size() < looked_at) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second || is_leaf(ir_, id)) continue;
    if (ir_[id].op == Op::reduce) {
      if (volume(ir_[ir_[id].inputs[0]].type.shape) == points) return true;
    } else if (is_elementwise(ir_[id].op) || ir_[id].op == Op::reshape) {
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
    }
  }
  return false;
}

/// Returns whether a group that reads `node` at `index` can compute it there. Fills in the root, and the domain that
/// the group then has.
bool Grouper::aligned(Group& group, NodeId node, const std::vector<Expr>& index, Root& root,
                      std::vector<DomainVariable>& domain) const {
  const Shape& shape = ir_[node].type.shape;
  bool is_reduction = ir_[node].op == Op::reduce;
  domain = group.domain;
  bool split =
      group.has_reduction() || std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
  auto part = [&](bool inner) {
    std::vector<DomainVariable> vars;
    std::copy_if(domain.begin(), domain.end(), std::back_inserter(vars),
                 [&](const auto& v) { return v.inner == inner; });
    return vars;
  };
  root = {node, is_reduction ? RootKind::reduce : RootKind::full, index};
  if (!is_reduction) {
    if (covers(index, shape, domain, *group.cx)) return true;
    root.kind = RootKind::row;
    if (!split && !depends_on_reduction(node, domain)) return false;
    if (!split)
      for (DomainVariable& v : domain)
        v.inner = std::none_of(index.begin(), index.end(), [&](Expr e) { return ix::depends_on(e, v.var); });
    return covers(index, shape, part(false), *group.cx);
  }
  std::vector<Dim> extents = reduced_extents(ir_, node);
  if (!split) {  // the variables that the reduction does not depend on become the inner domain
    for (DomainVariable& v : domain)
      v.inner = std::none_of(index.begin(), index.end(), [&](Expr e) { return ix::depends_on(e, v.var); });
    bool none = std::none_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
    if (none)  // a map over rows alone: the reduction brings its own inner domain
      for (size_t k = 0; k < extents.size(); ++k)
        domain.push_back({group.cx->variable("k" + std::to_string(k), 0, extents[k].bound() - 1), extents[k], true});
  }
  std::vector<DomainVariable> inner = part(true);
  bool same =
      inner.size() == extents.size() && std::equal(inner.begin(), inner.end(), extents.begin(),
                                                   [](const DomainVariable& v, const Dim& d) { return v.extent == d; });
  return same && covers(index, shape, part(false), *group.cx);
}

namespace {

/// Returns whether reductions of the group over outer axes would compute the array column by column. An array that is
/// stored anyway is computed faster along its rows and read again.
bool against_the_grain(const std::vector<DomainVariable>& domain, const std::vector<Expr>& index) {
  bool has_inner = std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
  auto last = std::find_if(index.rbegin(), index.rend(), [](Expr e) { return !e.is_constant(); });
  if (!has_inner || last == index.rend()) return false;
  return std::none_of(domain.begin(), domain.end(),
                      [&](const auto& v) { return v.inner && ix::depends_on(*last, v.var); });
}

/// Returns whether a map would store its own result along the domain's last axis and this array along another one, both
/// at least 16 long. On a GPU a kernel for each is faster; the one that transposes goes through tiles.
bool across_the_grain(const std::vector<DomainVariable>& domain, const std::vector<Expr>& index, const Shape& shape) {
  constexpr int64_t least_extent = 16, least_points = 4096;
  const bool has_inner = std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; });
  size_t last = index.size();
  while (last > 0 && index[last - 1].is_constant()) --last;
  if (has_inner || last == 0 || domain.empty() || volume(shape) < least_points) return false;
  return !ix::depends_on(index[last - 1], domain.back().var) && shape[last - 1].bound() >= least_extent &&
         domain.back().extent.bound() >= least_extent;
}

}  // namespace

/// Returns whether rows on a SIMT machine are one to four warps long and the node depends on no reduction over rows. A
/// program's columns are then whole rows or long parts of them: threads that go down columns still read memory in
/// order.
bool Grouper::short_rows(NodeId node, const std::vector<DomainVariable>& domain) const {
  constexpr int64_t least = 32, most = 128;
  if (!target_ || !target_->machine().simt || domain.empty() || domain.back().inner) return false;
  const int64_t length = domain.back().extent.bound();
  if (length < least || length > most) return false;
  const SortedSet<NodeId> from = sources(node);
  return std::none_of(from.begin(), from.end(), [&](NodeId id) {
    return ir_[id].op == Op::reduce && volume(ir_[id].type.shape) * length == volume(ir_[node].type.shape);
  });
}

/// Returns whether the group may take `node`. It refuses reductions beyond the eighth: one kernel for very many
/// reductions (the norm of all gradients) would grow with the model, and separate ones are launched together.
bool Grouper::takes_reduction(const Group& group, NodeId node) const {
  constexpr int most = 8;
  if (ir_[node].op != Op::reduce) return true;
  return std::count_if(group.roots.begin(), group.roots.end(),
                       [](const Root& r) { return r.kind == RootKind::reduce; }) < most;
}

/// Returns whether group g stores the new value of a state while another group of `readers` still reads the old one.
/// `readers` (ids descending) read the root that would join g, so they would wait for g: the new value would need a
/// buffer of its own and a copy at the end.
bool Grouper::overwrites_early(GroupId g, const std::vector<GroupId>& readers) const {
  return std::any_of(groups_[g]->group.roots.begin(), groups_[g]->group.roots.end(), [&](const Root& root) {
    const auto old = updated_.find(root.node);
    if (old == updated_.end()) return false;
    const std::vector<GroupId>& of_old =
        readers_[old->second];  // few, whereas `readers` of a scalar may be all groups of an optimizer
    return std::any_of(of_old.begin(), of_old.end(), [&](GroupId other) {
      return other != g && std::binary_search(readers.rbegin(), readers.rend(), other) &&
             groups_[other]->requests.contains(old->second);
    });
  });
}

/// Returns whether one root is the new value of a state and another root reads the old one. A group with a reduction
/// cannot do both in one buffer (may_overwrite).
bool Grouper::reads_overwritten(const Group& group) const {
  constexpr size_t most = 8;  // larger groups are maps of an optimizer, which wait for no reduction of their own
  if (group.roots.size() > most) return false;
  std::map<NodeId, NodeId> old;  // old value → the root that replaces it
  for (const Root& root : group.roots)
    if (const auto known = updated_.find(root.node); known != updated_.end()) old.emplace(known->second, root.node);
  return !old.empty() && std::any_of(group.roots.begin(), group.roots.end(), [&](const Root& root) {
    const SortedSet<NodeId> read = sources(root.node);
    return std::any_of(old.begin(), old.end(),
                       [&](const auto& o) { return o.second != root.node && read.contains(o.first); });
  });
}

namespace {

/// Returns whether the root's index depends on an inner variable; true without inner variables.
bool on_inner(const Root& root, const std::vector<DomainVariable>& domain) {
  bool inner = false;
  for (const DomainVariable& v : domain) {
    if (!v.inner) continue;
    inner = true;
    if (std::any_of(root.index.begin(), root.index.end(), [&](Expr e) { return ix::depends_on(e, v.var); }))
      return true;
  }
  return !inner;
}

}  // namespace

/// Joins the root to a group that reads it at the point where the group computes. Returns whether one was found.
bool Grouper::join_consumer(NodeId node) {
  // The nearest reader first: groups are formed backwards, so it has the largest id.
  std::vector<GroupId> candidates = readers_[node];
  std::sort(candidates.rbegin(), candidates.rend());
  for (GroupId g : candidates) {
    Work& work = *groups_[g];
    if (work.group.kind != Group::Kind::rows || phase_of(work) != ir_[node].phase ||
        !takes_reduction(work.group, node) || overwrites_early(g, candidates))
      continue;
    if (ir_[node].op == Op::reduce && reads_overwritten(work.group)) continue;
    const Request& request = work.requests.at(node);
    Root root;
    std::vector<DomainVariable> domain;
    if (!request.same || !aligned(work.group, node, request.index, root, domain)) continue;
    const bool asked = ir_[node].compute == Compute::where_read;
    if (!asked && root.kind == RootKind::full && against_the_grain(domain, request.index) && !short_rows(node, domain))
      continue;
    if (!asked && root.kind == RootKind::full && target_ && target_->machine().simt &&
        across_the_grain(domain, request.index, ir_[node].type.shape))
      continue;
    if (root.kind == RootKind::full && gemv_results_.contains(node) &&
        std::any_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; }))
      continue;
    bool cycle = std::any_of(candidates.begin(), candidates.end(),
                             [&](GroupId other) { return other != g && reaches(other, g); });
    if (cycle) continue;
    // The index of a map over the old domain stays valid. If it depends on no inner variable, the root becomes a row
    // map.
    bool was_split =
        std::any_of(work.group.domain.begin(), work.group.domain.end(), [](const auto& v) { return v.inner; });
    work.group.domain = domain;
    if (!was_split) offer_to_reductions(g);
    if (!was_split)
      for (Root& other : work.group.roots)
        if (other.kind == RootKind::full && !on_inner(other, domain)) other.kind = RootKind::row;
    work.requests.erase(node);
    append_root(g, std::move(root));
    return true;
  }
  return false;
}

std::string Grouper::signature_of(NodeId node) const {
  const IrNode& n = ir_[node];
  if (n.op != Op::reduce) return "map " + to_string(n.type.shape);
  std::string text = "reduce " + to_string(ir_[n.inputs[0]].type.shape) + " over";
  for (int64_t axis : n.attrs->axes) text += fmt::format(" {}", axis);
  return text;
}

/// Returns the roots and leaves that the value of `node` is computed from, and adds the nodes between to `inlined`.
SortedSet<NodeId> Grouper::sources(NodeId node, std::vector<NodeId>* inlined) const {
  const int walk = ++walks_;
  std::vector<NodeId> found, pending{node};
  while (!pending.empty()) {
    const NodeId reader = pending.back();
    pending.pop_back();
    for (const NodeId id : ir_[reader].inputs) {
      if (std::exchange(visited_[id], walk) == walk) continue;
      if (is_leaf(ir_, id) || is_root(id)) {
        found.push_back(id);
        continue;
      }
      pending.push_back(id);
      if (inlined) inlined->push_back(id);
    }
  }
  return {found.begin(), found.end()};
}

/// Registers a map that became rows × inner as a sibling of reductions over the same inner axes.
void Grouper::offer_to_reductions(GroupId g) {
  const Group& group = groups_[g]->group;
  Shape shape;
  std::string axes;
  for (size_t axis = 0; axis < group.seed_index.size(); ++axis) {
    auto v = std::find_if(group.domain.begin(), group.domain.end(),
                          [&](const auto& d) { return d.var == group.seed_index[axis]; });
    shape.push_back(v == group.domain.end() ? Dim(1) : v->extent);
    if (v != group.domain.end() && v->inner) axes += fmt::format(" {}", axis);
  }
  if (!axes.empty()) by_signature_["reduce " + to_string(shape) + " over" + axes].push_back(g);
}

/// Joins an elementwise node, computed row by row from a reduction, to another group that reads the reduction at its
/// own rows, so that the reduction and all its readers can be one group. Returns whether it did.
bool Grouper::join_reduction_reader(NodeId node) {
  const IrNode& n = ir_[node];
  if (!is_elementwise(n.op)) return false;
  // `here`: reductions that the node reads at its own index; `elsewhere`: those that it reads at another index as well.
  SortedSet<NodeId> here, elsewhere, seen;
  std::vector<NodeId> pending{node};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const NodeId input : ir_[id].inputs) {
      if (is_root(input) && ir_[input].op == Op::reduce) here.insert(input);
      else if (is_root(input) || is_leaf(ir_, input) || !seen.insert(input).second) continue;
      else if (is_elementwise(ir_[input].op)) pending.push_back(input);
      else elsewhere.merge(sources(input));
    }
  }
  const std::vector<GroupId>& read_by = readers_[node];
  for (const NodeId reduction : here) {
    if (elsewhere.contains(reduction) || ir_[reduction].phase != n.phase) continue;
    for (const GroupId g : readers_[reduction]) {
      Work& work = *groups_[g];
      const auto request = work.requests.find(reduction);
      if (work.group.kind != Group::Kind::rows || !work.group.has_reduction() || phase_of(work) != n.phase ||
          !request->second.same)
        continue;
      Root root, of_reduction;
      std::vector<DomainVariable> domain;
      if (!aligned(work.group, reduction, request->second.index, of_reduction, domain) ||
          !aligned(work.group, node, request->second.index, root, domain) || root.kind != RootKind::row)
        continue;
      if (std::any_of(read_by.begin(), read_by.end(), [&](GroupId reader) { return reaches(reader, g); })) continue;
      append_root(g, std::move(root));
      return true;
    }
  }
  return false;
}

/// Returns the groups over the domain of `node`, the nearest first; data shared with a farther one has often left the
/// cache. A reduction also fits a map over its operand's shape, which then becomes rows × inner.
std::vector<GroupId> Grouper::sibling_candidates(NodeId node) const {
  constexpr size_t considered = 8;
  std::vector<GroupId> candidates;
  auto add = [&](const std::string& signature, bool maps) {
    auto it = by_signature_.find(signature);
    if (it == by_signature_.end()) return;
    for (size_t k = 0; k < std::min(considered, it->second.size()); ++k) {
      GroupId g = it->second[it->second.size() - 1 - k];
      const auto& domain = groups_[g]->group.domain;
      if (!maps || std::none_of(domain.begin(), domain.end(), [](const auto& v) { return v.inner; }))
        candidates.push_back(g);
    }
  };
  const IrNode& n = ir_[node];
  add(signature_of(node), false);
  if (n.op == Op::reduce) add("map " + to_string(ir_[n.inputs[0]].type.shape), true);
  return candidates;
}

/// Returns whether a group has a GEMV of the matrix of the GEMV `node`, of another vector.
bool Grouper::multiplies_matrix_of(const Group& group, NodeId node) const {
  const auto matrix = [&](NodeId sum) { return ir_[ir_[sum].inputs[0]].inputs[1]; };
  return std::any_of(group.roots.begin(), group.roots.end(),
                     [&](const Root& r) { return ir_[r.node].gemv && matrix(r.node) == matrix(node); });
}

/// Joins the root to a group over the same domain that reads some of the same arrays. Returns whether one was found.
bool Grouper::join_sibling(NodeId node) {
  const IrNode& n = ir_[node];
  std::vector<GroupId> candidates = sibling_candidates(node);
  if (candidates.empty()) return false;
  const SortedSet<NodeId> reads = sources(node);
  const std::vector<GroupId>& read_by = readers_[node];
  for (GroupId g : candidates) {
    Work& work = *groups_[g];
    if (phase_of(work) != n.phase) continue;
    // GEMVs of one vector with several matrices are segments of one launch, whatever their row counts.
    if (n.gemv && !multiplies_matrix_of(work.group, node)) continue;
    bool shares = volume(n.type.shape) == 1 && n.op != Op::reduce;
    shares = shares || std::any_of(reads.begin(), reads.end(), [&](NodeId id) {
               return work.requests.contains(id) && volume(ir_[id].type.shape) > 1;
             });
    // The group's roots come after `node` in the graph, so only a reader of `node` could create a cycle.
    if (!shares || std::any_of(read_by.begin(), read_by.end(), [&](GroupId reader) { return reaches(reader, g); }))
      continue;
    Root root{node, n.op == Op::reduce ? RootKind::reduce : RootKind::full, {}};
    bool split = false;
    for (size_t axis = 0; axis < work.group.seed_index.size(); ++axis) {
      bool reduced =
          n.op == Op::reduce && std::count(n.attrs->axes.begin(), n.attrs->axes.end(), static_cast<int64_t>(axis));
      if (!reduced) root.index.push_back(work.group.seed_index[axis]);
      for (DomainVariable& v : work.group.domain)
        if (reduced && v.var == work.group.seed_index[axis] && !v.inner) v.inner = split = true;
    }
    if (split) offer_to_reductions(g);
    if (n.op != Op::reduce && !on_inner(root, work.group.domain)) root.kind = RootKind::row;
    append_root(g, std::move(root));
    return true;
  }
  return false;
}

/// Returns whether all users read the node through a chain of single readers that ends in a narrower dtype: that value
/// is materialized instead.
bool Grouper::narrowed_later(NodeId node, const NodeCounts& groups_using) const {
  for (NodeId id = node; users_[id].size() == 1;) {
    const NodeId reader = users_[id][0];
    const IrNode& n = ir_[reader];
    if (!is_elementwise(n.op) || is_root(reader) || n.type.shape != ir_[node].type.shape ||
        groups_using[reader] != groups_using[node])
      return false;
    if (n.type.dtype.size() < ir_[node].type.dtype.size()) return true;
    id = reader;
  }
  return false;
}

}  // namespace weft::compiler
