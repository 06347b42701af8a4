// Keeps the components of a reducer's state (kernel/reducer.h) in one group, and what is computed from each of them
// once a row: one reduction gives all of them.
#include <algorithm>

#include "compiler/fusion/grouper.h"
#include "compiler/ir/index_map.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

/// Returns the components of the state that `node` is a component of, itself included.
std::vector<NodeId> Grouper::components_with(NodeId node) const {
  std::vector<NodeId> components;
  const IrNode& n = ir_[node];
  for (const NodeId user : users_[n.inputs[0]]) {
    const IrNode& other = ir_[user];
    if (other.op == Op::reduce && other.inputs == n.inputs && other.attrs->axes == n.attrs->axes &&
        other.attrs->reducer == n.attrs->reducer && other.phase == n.phase)
      components.push_back(user);
  }
  return components;
}

/// Returns the groups that compute one of these reductions, or read it where they compute a map of its size, with the
/// index at which they do.
std::vector<std::pair<GroupId, std::vector<Expr>>> Grouper::groups_at(const std::vector<NodeId>& reductions) const {
  std::vector<std::pair<GroupId, std::vector<Expr>>> found;
  for (const NodeId id : reductions) {
    if (const GroupId g = group_of_[id]; g >= 0) {
      for (const Root& root : groups_[g]->group.roots)
        if (root.node == id && root.kind == RootKind::reduce) found.emplace_back(g, root.index);
      continue;
    }
    for (const GroupId g : readers_[id]) {
      const Work& work = *groups_[g];
      const Request& request = work.requests.at(id);
      if (work.group.kind == Group::Kind::rows && request.same &&
          extent_of(work.group.domain) == volume(ir_[id].type.shape))
        found.emplace_back(g, request.index);
    }
  }
  return found;
}

/// Joins a component of a state to the group that computes another one. Returns whether it did.
bool Grouper::join_state(NodeId node) {
  if (ir_[node].op != Op::reduce || !has_results(ir_[node])) return false;
  for (const NodeId other : components_with(node)) {
    const GroupId g = group_of_[other];
    if (g < 0 || !takes_reduction(groups_[g]->group, node)) continue;
    Work& work = *groups_[g];
    const auto root =
        std::find_if(work.group.roots.begin(), work.group.roots.end(), [&](const Root& r) { return r.node == other; });
    const auto request = work.requests.find(node);
    const bool elsewhere =
        request != work.requests.end() && (!request->second.same || request->second.index != root->index);
    const std::vector<GroupId>& read_by = readers_[node];
    if (root->kind != RootKind::reduce || elsewhere ||
        std::any_of(read_by.begin(), read_by.end(), [&](GroupId reader) { return reader != g && reaches(reader, g); }))
      continue;
    if (request != work.requests.end()) work.requests.erase(request);
    append_root(g, {node, RootKind::reduce, root->index});
    return true;
  }
  return false;
}

/// Joins a value that is computed from components of a state, element by element, to the group of another component or
/// of what is computed from one. Returns whether it did.
bool Grouper::join_state_reader(NodeId node) {
  const IrNode& n = ir_[node];
  const int64_t size = volume(n.type.shape);
  if (!is_elementwise(n.op)) return false;
  SortedSet<NodeId> seen;
  std::vector<NodeId> pending{node}, components;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const NodeId input : ir_[id].inputs) {
      if (volume(ir_[input].type.shape) != size || !seen.insert(input).second) continue;
      if (ir_[input].op == Op::reduce && has_results(ir_[input])) components.push_back(input);
      else if (!is_root(input) && (is_elementwise(ir_[input].op) || ir_[input].op == Op::reshape))
        pending.push_back(input);
    }
  }
  const std::vector<GroupId>& read_by = readers_[node];
  for (const NodeId component : components) {
    if (ir_[component].phase != n.phase) continue;
    for (const auto& [g, rows] : groups_at(components_with(component))) {
      Work& work = *groups_[g];
      if (phase_of(work) != n.phase ||
          std::any_of(read_by.begin(), read_by.end(), [&, g = g](GroupId reader) { return reaches(reader, g); }))
        continue;
      // A reshape keeps the elements' order.
      const std::vector<Expr> index =
          ix::reindex_reshape(*work.group.cx, rows, bounds(n.type.shape), bounds(ir_[component].type.shape));
      Root root;
      std::vector<DomainVariable> domain;
      if (!aligned(work.group, node, index, root, domain)) continue;
      append_root(g, std::move(root));
      return true;
    }
  }
  return false;
}

}  // namespace weft::compiler
