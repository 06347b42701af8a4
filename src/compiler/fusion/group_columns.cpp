// Reductions along the rows in a row kernel. The gradients of a norm's weights and of a bias sum over all rows values
// that the row kernel has just had in registers. Such a reduction is split in two first (schedule/splits.h);
// its first half has one value for each part of the rows and each column. If a rows group computes or reads all
// operands of that half at the same points, the half joins the group: each program takes the rows of one part one after
// the other and accumulates the sums in registers.
#include <algorithm>

#include "compiler/fusion/grouper.h"
#include "compiler/schedule/splits.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

namespace {

constexpr int64_t most_columns = 8192;  // a row held in registers
constexpr int64_t most_sums = 4;        // for each group: every sum takes registers

/// Returns whether a node is the first half of a split reduction: operand [parts, rows of a part, columns…], reduced
/// over axis 1.
bool is_column_part(const Ir& ir, NodeId node) {
  const IrNode& n = ir[node];
  if (n.op != Op::reduce || has_results(n) || n.attrs->axes != std::vector<int64_t>{1} ||
      ir[n.inputs[0]].op != Op::reshape)
    return false;
  const Shape& shape = ir[n.inputs[0]].type.shape;
  return shape.size() >= 3 && std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}

}  // namespace

/// Collects in `reads` what the value of `node` at `index` reads. Returns false if a node is read at two indices, under
/// a condition or through any operator but elementwise ones and unconditional movement.
bool Grouper::plain_reads(Group& group, NodeId node, std::vector<Expr> index, Reads& reads) const {
  std::vector<std::pair<NodeId, std::vector<Expr>>> pending{{node, std::move(index)}};
  std::map<NodeId, std::vector<Expr>> seen;
  while (!pending.empty()) {
    auto [id, at] = std::move(pending.back());
    pending.pop_back();
    if (auto [it, fresh] = seen.try_emplace(id, at); !fresh) {
      if (it->second != at) return false;
      continue;
    }
    const IrNode& n = ir_[id];
    if (is_leaf(ir_, id) || is_root(id)) {
      reads.emplace(id, std::move(at));
    } else if (is_movement(n.op) && n.op != Op::concat && n.op != Op::depends) {
      Access access = push(*group.cx, ir_, id, at);
      if (access.valid) return false;
      pending.emplace_back(access.node, std::move(access.index));
    } else if (is_elementwise(n.op) || n.op == Op::constant) {
      for (NodeId input : n.inputs) pending.emplace_back(input, at);
    } else {
      return false;
    }
  }
  return true;
}

/// Removes a group without roots from the graph of groups.
void Grouper::leave(GroupId g) {
  Work& work = *groups_[g];
  for (GroupId other : work.consumers) std::erase(groups_[other]->producers, g);
  for (GroupId other : work.producers) std::erase(groups_[other]->consumers, g);
  for (const auto& [node, request] : work.requests) std::erase(readers_[node], g);
  work.consumers.clear();
  work.producers.clear();
  work.requests.clear();
  work.inlined.clear();
  work.first_index.clear();
}

/// Moves the column reductions of group `columns` to group `rows` if that computes or reads all their large operands at
/// the same points and no cycle arises. Returns whether it did.
bool Grouper::join_columns(int columns, int rows) {
  Work &from = *groups_[columns], &to = *groups_[rows];
  Group& group = to.group;
  if (columns == rows || group.kind != Group::Kind::rows || group.roots.empty() || !group.has_reduction() ||
      phase_of(to) != phase_of(from))
    return false;
  // The reduced array is [parts, rows of a part, columns…].
  const Shape& shape = ir_[ir_[from.group.roots[0].node].inputs[0]].type.shape;
  const int64_t parts = shape[0].bound(), each = shape[1].bound();
  int64_t row_count = 1, column_count = 1;
  std::vector<Expr> row_vars, inner;
  std::vector<int64_t> inner_extents, kept;
  Shape row_extents;
  for (const DomainVariable& v : group.domain) {
    if (!v.extent.is_static() || (!v.inner && !inner.empty())) return false;
    (v.inner ? inner : row_vars).push_back(v.var);
    if (v.inner) inner_extents.push_back(v.extent.bound());
    else row_extents.push_back(v.extent);
    (v.inner ? column_count : row_count) *= v.extent.bound();
  }
  for (size_t k = 2; k < shape.size(); ++k) kept.push_back(shape[k].bound());
  int64_t width = 1;
  for (int64_t n : kept) width *= n;
  if (row_vars.empty() || inner.empty() || row_count != parts * each || column_count != width || width > most_columns ||
      !enough_beside_rows(parts, each, width))
    return false;
  const auto sums =
      std::count_if(group.roots.begin(), group.roots.end(), [](const Root& r) { return r.kind == RootKind::column; });
  if (sums + static_cast<std::ptrdiff_t>(from.group.roots.size()) > most_sums) return false;
  for (const Root& root : group.roots)
    if (ir_[root.node].gemv || (root.kind == RootKind::column && ir_[root.node].type.shape[0] != parts)) return false;

  const Expr row = ix::linear(*group.cx, row_vars, row_major_strides(row_extents));
  std::vector<Expr> at{row / each, row % each};
  for (Expr e : ix::reindex_reshape(*group.cx, inner, kept, inner_extents)) at.push_back(e);
  // The group must compute or read operands as large as the domain at this point; smaller ones may be new reads.
  bool shares = false;
  for (const Root& root : from.group.roots) {
    Reads reads;
    if (!plain_reads(group, ir_[root.node].inputs[0], at, reads)) return false;
    for (const auto& [id, index] : reads) {
      if (volume(ir_[id].type.shape) < row_count * column_count) continue;
      const auto own =
          std::find_if(group.roots.begin(), group.roots.end(), [node = id](const Root& r) { return r.node == node; });
      const auto read = to.requests.find(id);
      const bool here = own != group.roots.end()
                            ? own->kind == RootKind::full && own->index == index
                            : read != to.requests.end() && read->second.same && read->second.index == index;
      if (!here) return false;
      shares = true;
    }
  }
  if (!shares) return false;
  for (GroupId producer : from.producers)
    if (producer != rows && reaches(rows, producer)) return false;
  for (GroupId consumer : from.consumers)
    if (reaches(consumer, rows)) return false;

  const std::vector<Root> roots = std::move(from.group.roots);
  const std::vector<GroupId> consumers = from.consumers;
  from.group.roots.clear();
  leave(columns);
  for (const Root& root : roots) {
    std::vector<Expr> index(at.begin(), at.end());
    index.erase(index.begin() + 1);
    group_of_[root.node] = rows;
    group.roots.push_back({root.node, RootKind::column, std::move(index)});
    collect(rows, ir_[root.node].inputs[0], at, false);
  }
  for (const Root& root : group.roots)
    if (to.requests.erase(root.node) > 0) std::erase(readers_[root.node], rows);
  for (GroupId consumer : consumers) connect(rows, consumer);
  return true;
}

/// Joins each group of column reductions to a rows group that computes or reads their operands.
void Grouper::join_columns() {
  for (GroupId g = 0; g < groups_.count(); ++g) {
    const Work& work = *groups_[g];
    const auto& roots = work.group.roots;
    if (work.group.kind != Group::Kind::rows || roots.empty()) continue;
    const auto same_cut = [&](const Root& r) {
      return r.kind == RootKind::reduce && is_column_part(ir_, r.node) &&
             ir_[ir_[r.node].inputs[0]].type.shape == ir_[ir_[roots[0].node].inputs[0]].type.shape;
    };
    if (!std::all_of(roots.begin(), roots.end(), same_cut)) continue;
    std::vector<GroupId> candidates;  // groups that compute the operands, then groups that read them
    for (const auto& [id, request] : work.requests)
      if (group_of_[id] >= 0) candidates.push_back(group_of_[id]);
    for (const auto& [id, request] : work.requests)
      if (volume(ir_[id].type.shape) >= volume(ir_[ir_[roots[0].node].inputs[0]].type.shape))
        for (GroupId reader : readers_[id]) candidates.push_back(reader);
    for (int candidate : candidates)
      if (join_columns(g, candidate)) break;
  }
}

}  // namespace weft::compiler
