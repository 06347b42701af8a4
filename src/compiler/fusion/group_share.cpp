// Materializes values that several groups would otherwise compute again, where storing them is cheaper.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "compiler/fusion/grouper.h"
#include "compiler/schedule/work.h"
#include "graph/table.h"
#include "target/rates.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

namespace {

// A value that several groups read is stored if recomputing it reads more arrays than this, or takes longer than to
// write and read a float.
constexpr double recompute_loads = 2;
constexpr double stored_bytes = 2 * sizeof(float), usual_operations = 64;  // usual: where there is no machine
constexpr size_t recompute_scalars = 4;
// Longer chains of operators are cut, so that kernels stay of a size that compiles quickly.
constexpr int longest_chain = 256;
// On a GPU, one thread computes a scalar that depends on so many operators (the norm of all gradients); a longer chain
// costs compile time.
constexpr int longest_scalar_chain = 64;
// An array this much smaller than the values computed from it (statistics of rows, one number a channel) costs as
// little to read as a scalar.
constexpr int64_t broadcast_ratio = 64;
// A value that is computed once and read this often is stored, however small it is.
constexpr double many_repeats = 4096, repeated_flops = 8;
constexpr int64_t short_reduction = 16;  // a value computed once for each shorter reduction is computed often
constexpr double least_instead = 4;      // with so many operations on a reduction's result, theirs is stored instead
constexpr size_t recompute_broadcasts = 8, most_loads = 16;
constexpr double largest_expression = 2000;
constexpr int many_readers = 16;

struct Cost {
  double flops = 0;
  std::vector<NodeId> loads;    // of arrays, ascending
  std::vector<NodeId> scalars;  // of single elements, ascending
  int depth = 0;
};

void unite(std::vector<NodeId>& all, const std::vector<NodeId>& more) {
  if (all.empty()) return all.assign(more.begin(), more.end());
  for (const NodeId id : more)
    if (const auto at = std::lower_bound(all.begin(), all.end(), id); at == all.end() || *at != id) all.insert(at, id);
}

}  // namespace

/// Returns how many basic operations take as long as writing and reading a float, at the machine's stated rates.
double Grouper::operations_of_storing() const {
  if (!target_) return usual_operations;
  const target::Rates rates = target::stated_rates(target_->machine());
  return stored_bytes * rates.vector / rates.memory();
}

/// Returns whether the node is the only use of a reduction, through single-reader elementwise operators with constants
/// (one over a sum), and is computed inline outside the reduction's group. It may then be stored in place of the
/// reduction.
bool Grouper::replaces_reduction(NodeId node) const {
  if (!is_elementwise(ir_[node].op)) return false;
  for (NodeId id = node;;) {
    int next = -1;
    for (const NodeId input : ir_[id].inputs) {
      int v = input;
      while (ir_[v].op == Op::broadcast && !is_root(v)) v = ir_[v].inputs[0];
      if (ir_[v].op == Op::constant) continue;
      if (next >= 0 || v != input) return false;
      next = v;
    }
    if (next < 0 || users_[next].size() != 1) return false;
    if (ir_[next].op == Op::reduce) {
      if (volume(ir_[next].type.shape) <= 1) return false;
      const std::span<const GroupId> groups = inlining_[node];
      return std::any_of(groups.begin(), groups.end(), [&](GroupId g) { return g != group_of_[next]; });
    }
    if (is_root(next) || !is_elementwise(ir_[next].op)) return false;
    id = next;
  }
}

/// Returns how often each element is read by broadcasting, at least: 1 if a reader reads it once.
int64_t Grouper::repeats_of(NodeId node) const {
  int64_t least = INT64_MAX;
  for (const NodeId user : users_[node]) {
    const int64_t size = std::max<int64_t>(1, volume(ir_[node].type.shape));
    int64_t repeats = 1;
    if (ir_[user].op == Op::broadcast) repeats = volume(ir_[user].type.shape) / size;
    else if (ir_[user].op == Op::reshape) repeats = repeats_of(user);
    least = std::min(least, std::max<int64_t>(1, repeats));
  }
  return least == INT64_MAX ? 1 : least;
}

/// Lists for each node the groups that compute it inline.
void Grouper::list_inlining_groups() {
  inlining_ = Lists<NodeId, GroupId>(ir_.nodes.size(), [&](const auto& add) {
    IndexedVector<NodeId, GroupId> last(ir_.nodes.size());  // by node: the group that was met last
    for (GroupId g = 0; g < groups_.count(); ++g)
      for (const NodeId id : groups_[g]->inlined)
        if (std::exchange(last[id], g) != g) add(id, g);
  });
}

/// Returns by node how many groups compute it inline.
NodeCounts Grouper::count_uses() const {
  NodeCounts groups_using(ir_.nodes.size());
  for (NodeId id = 0; id < ir_.size(); ++id) groups_using[id] = static_cast<int>(inlining_[id].size());
  return groups_using;
}

/// Estimates, before groups exist, how many groups would compute each node: counts its readers through scalars and
/// movement, up to many_readers; 0 for fewer. The factor that clips gradients depends on as many sums as there are
/// parameters and is read by as many updates; groups that each walked that expression would take quadratic time.
NodeCounts Grouper::count_readers_of_scalars() const {
  NodeCounts readers(ir_.nodes.size());
  const auto passed_on = [&](NodeId id) {
    return !is_root(id) && (is_movement(ir_[id].op) || (volume(ir_[id].type.shape) == 1 && is_elementwise(ir_[id].op)));
  };
  for (NodeId id = ir_.size(); id-- > 0;)
    for (const NodeId user : users_[id]) {
      int& count = readers[id];
      count = std::min(many_readers, count + (passed_on(user) ? readers[static_cast<size_t>(user)] : 1));
    }
  for (int& count : readers)
    if (count < many_readers) count = 0;
  return readers;
}

/// Promotes to roots the nodes that several groups would recompute from more than a few loads or operations, that are
/// computed once and broadcast often, that replace a reduction, or that end too long an expression. `groups_using`: by
/// node, how many groups compute it. `scalars_only`: only shared nodes of one element. Returns whether any was
/// promoted.
bool Grouper::promote_shared(const NodeCounts& groups_using, bool scalars_only) {
  std::vector<Cost> costs(ir_.nodes.size());
  const double most_operations = operations_of_storing();
  bool any = false;
  for (NodeId id = 0; id < ir_.size(); ++id) {
    const IrNode& n = ir_[id];
    Cost& cost = costs[static_cast<size_t>(id)];
    if (is_leaf(ir_, id) || is_root(id)) {
      (volume(n.type.shape) > 1 ? cost.loads : cost.scalars) = {id};
      continue;
    }
    for (NodeId input : std::span(n.inputs).first(n.op == Op::depends ? 1 : n.inputs.size())) {
      const Cost& c = costs[static_cast<size_t>(input)];
      cost.flops += c.flops;
      cost.depth = std::max(cost.depth, c.depth + 1);
      if (cost.loads.size() <= most_loads) unite(cost.loads, c.loads);
      if (cost.scalars.size() <= recompute_scalars) unite(cost.scalars, c.scalars);
    }
    cost.flops += operations_of(n);
    // A value that is computed once and broadcast to many readers is worth storing, too.
    double repeats = 1;
    for (NodeId user : users_[id])
      if (ir_[user].op == Op::broadcast)
        repeats = std::max(repeats, static_cast<double>(volume(ir_[user].type.shape)) /
                                        static_cast<double>(std::max<int64_t>(1, volume(n.type.shape))));
    // An array smaller than the readers' points counts as a fraction of a load.
    const auto points = static_cast<double>(volume(n.type.shape) * repeats_of(id));
    size_t broadcasts = 0;
    double loads = 0;
    for (const int load : cost.loads) {
      const auto read = static_cast<double>(volume(ir_[load].type.shape));
      if (read * broadcast_ratio <= points) ++broadcasts;
      else loads += std::min(1.0, read / points);
    }
    bool costly = cost.flops > most_operations || loads > recompute_loads || broadcasts > recompute_broadcasts ||
                  cost.scalars.size() > recompute_scalars;
    bool shared = groups_using[id] > 1 && costly && !narrowed_later(id, groups_using);
    if (scalars_only && (!shared || volume(n.type.shape) != 1)) continue;
    bool repeated = repeats >= 64 && cost.flops >= repeated_flops &&
                    (volume(n.type.shape) >= 64 || repeats >= many_repeats) && !rows_compute(id);
    const bool instead = cost.flops >= least_instead && groups_using[id] > 0 && replaces_reduction(id);
    bool computes = is_elementwise(n.op) || n.op == Op::gather || n.op == Op::random_bits;
    const bool is_scalar = volume(n.type.shape) == 1 && target_ && target_->machine().wants_many_programs();
    bool too_long = cost.depth >= (is_scalar ? longest_scalar_chain : longest_chain) || cost.flops > largest_expression;
    if (n.compute == Compute::where_read) continue;
    if (((shared || repeated || instead) && computes) || (too_long && !n.inputs.empty())) {
      if (volume(n.type.shape) == 0) continue;
      promoted_[id] = any = true;
      if (too_long) cut_.insert(id);
      cost = volume(n.type.shape) > 1 ? Cost{0, {id}, {}, 0} : Cost{0, {}, {id}, 0};
    }
  }
  return any;
}

/// Returns whether each group that inlines the node computes it once a row: the group has reductions of some length,
/// and the node does not vary along them.
bool Grouper::rows_compute(NodeId node) const {
  for (const GroupId g : inlining_[node]) {
    const Work* const work = groups_[g].get();
    int64_t inner = 1;
    for (const DomainVariable& v : work->group.domain) inner *= v.inner ? v.extent.bound() : 1;
    if (!work->group.has_reduction() || inner < short_reduction) return false;
    const auto found = work->first_index.find(node);
    if (found == work->first_index.end()) continue;
    for (const DomainVariable& v : work->group.domain)
      if (v.inner &&
          std::any_of(found->second.begin(), found->second.end(), [&](Expr e) { return ix::depends_on(e, v.var); }))
        return false;
  }
  return true;
}

}  // namespace weft::compiler
