#include "compiler/schedule/concat_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/split_axes.h"

namespace weft::compiler {

namespace {

using graph::Op;
using ix::Expr;

constexpr int64_t most_values = 32;     // elements of results and loads that a thread computes at one position
constexpr int64_t narrowest_part = 32;  // lanes of a GPU's tile, where parts do not consist of whole words
constexpr int64_t word_elements = 4;    // of float32: a load of 16 bytes
constexpr int most_axis_splits = 4;

/// Where a concat is read along its axis, and the extents of its operands there.
struct ConcatRead {
  Expr at;
  std::vector<int64_t> extents;
};

/// What a map reads: its concats, and how many values of leaves and other groups.
struct Reads {
  std::vector<ConcatRead> concats;
  int64_t loads = 0;
};

Reads reads_of(const Ir& ir, const Grouping& grouping, Group& group) {
  Reads reads;
  IndexTuples tuples;
  std::vector<std::pair<NodeId, int>> pending;
  const auto look = [&](NodeId id, int tuple, bool body) {
    if (!tuples.visit(id, tuple, body)) return;
    const IrNode& n = ir[id];
    const std::vector<Expr>& at = tuples[tuple];
    if (!body && (is_leaf(ir, id) || grouping.is_root[id])) {
      ++reads.loads;
    } else if (n.op == Op::concat) {
      const auto axis = static_cast<size_t>(n.attrs->axes[0]);
      ConcatRead read{at[axis], {}};
      for (const NodeId input : n.inputs) read.extents.push_back(ir[input].type.shape[axis].bound());
      reads.concats.push_back(std::move(read));
      for (Access& access : push_concat(*group.cx, ir, id, at))
        pending.emplace_back(access.node, tuples.of(std::move(access.index)));
    } else if (is_movement(n.op)) {
      Access access = push(*group.cx, ir, id, at);
      pending.emplace_back(access.node, tuples.of(std::move(access.index)));
    } else if (n.op != Op::gather && n.op != Op::random_bits) {  // what is read at loaded indices is not looked at
      for (const NodeId input : n.inputs) pending.emplace_back(input, tuple);
    }
  };
  for (const Root& root : group.roots) {
    look(root.node, tuples.of(root.index), true);
    while (!pending.empty()) {
      const auto [id, tuple] = pending.back();
      pending.pop_back();
      look(id, tuple, false);
    }
  }
  return reads;
}

/// Returns the position in the domain of the variable that e is, plus a constant, and that constant.
std::optional<std::pair<size_t, int64_t>> shifted_variable(const Group& group, Expr e) {
  for (size_t k = 0; k < group.domain.size(); ++k) {
    if (!ix::depends_on(e, group.domain[k].var)) continue;
    const auto form = ix::affine(e, std::span<const Expr>(&group.domain[k].var, 1));
    if (!form || form->coefficients[0] != 1 || !form->base.is_constant()) return {};
    return std::pair(k, form->base->value);
  }
  return {};
}

/// Returns the extents of parts that lie in one operand of every concat, by position in the domain.
std::map<size_t, int64_t> extents_of_parts(const Group& group, const std::vector<ConcatRead>& concats) {
  std::map<size_t, int64_t> parts;
  for (const ConcatRead& read : concats) {
    const auto axis = shifted_variable(group, read.at);
    if (!axis) continue;
    const int64_t extent = group.domain[axis->first].extent.bound();
    int64_t& part = parts.try_emplace(axis->first, extent).first->second;
    int64_t border = -axis->second;
    for (const int64_t operand : read.extents) {
      if (border > 0 && border < extent) part = std::gcd(part, border);
      border += operand;
    }
  }
  return parts;
}

/// Returns whether tiles of lanes have room in a part: on a CPU a vector, on a GPU words of threads.
bool wide_enough(const Group& group, size_t axis, int64_t part, const target::Machine& machine) {
  int64_t within = part;
  for (size_t k = axis + 1; k < group.domain.size(); ++k) within *= group.domain[k].extent.bound();
  const bool last = axis + 1 == group.domain.size();
  if (machine.simt) return within >= narrowest_part || (within % word_elements == 0 && (last || part == 1));
  return within >= machine.lanes(sizeof(float));
}

}  // namespace

bool reads_concat(const Ir& ir, const Grouping& grouping, const Group& group) {
  std::set<NodeId> seen;
  std::vector<NodeId> pending;
  for (const Root& root : group.roots) {
    if (ir[root.node].op == Op::concat) return true;
    pending.insert(pending.end(), ir[root.node].inputs.begin(), ir[root.node].inputs.end());
  }
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (is_leaf(ir, id) || grouping.is_root[id] || !seen.insert(id).second) continue;
    if (ir[id].op == Op::concat) return true;
    pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
  }
  return false;
}

int cut_at_concats(const Ir& ir, const Grouping& grouping, Group& group, const target::Machine& machine) {
  if (!is_static_map(group) || !reads_concat(ir, grouping, group)) return -1;
  const std::vector<DomainVariable> domain = group.domain;
  const std::vector<Root> roots = group.roots;
  const std::vector<Expr> seed_index = group.seed_index;
  Reads reads = reads_of(ir, grouping, group);
  for (int splits = 0; splits < most_axis_splits; ++splits) {
    const bool split = std::any_of(reads.concats.begin(), reads.concats.end(), [&](const ConcatRead& read) {
      return !shifted_variable(group, read.at) && split_divided(group, read.at);
    });
    if (!split) break;
    reads = reads_of(ir, grouping, group);
  }
  int64_t best = 1;
  size_t axis = 0;
  for (const auto& [k, part] : extents_of_parts(group, reads.concats)) {
    const int64_t parts = group.domain[k].extent.bound() / part;
    const int64_t values = parts * static_cast<int64_t>(roots.size()) + reads.loads;
    if (parts <= best || values > 2 * most_values || parts > most_values || !wide_enough(group, k, part, machine))
      continue;
    best = parts, axis = k;
  }
  if (best > 1) {
    split_variable(group, axis, group.domain[axis].extent.bound() / best);
    return static_cast<int>(axis);
  }
  group.domain = domain, group.roots = roots, group.seed_index = seed_index;
  return -1;
}

}  // namespace weft::compiler
