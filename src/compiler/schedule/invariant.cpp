#include "compiler/schedule/invariant.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/index_map.h"
#include "compiler/schedule/work.h"

namespace weft::compiler {

namespace {

using graph::Op;
using ix::Expr;

// Operations an element that must repeat before a loop over them pays: a broadcast operand that is only loaded again
// comes from a cache, and rows in order are read faster than rows with a stride.
constexpr double least_repeated = 8;
constexpr double gathered_load = 12;  // operations: lanes that are not contiguous are loaded one by one
constexpr int64_t least_programs_of_loop = 256, least_iterations = 8;
constexpr int64_t most_tiles = 4;  // each has values of its own in registers

/// Walks a map, and adds the operations of each value at each index by the outer axes that the index varies along.
class RepeatedWork {
 public:
  RepeatedWork(const Ir& ir, const Grouping& grouping, Group& group, std::span<const DomainVariable> outer,
               std::span<const DomainVariable> lanes)
      : ir_(ir), grouping_(grouping), group_(group), outer_(outer) {
    for (const DomainVariable& v : lanes) lanes_.push_back(v.var);
    alignment = lanes.back().extent.bound();
    for (const Root& root : group.roots) walk(root);
  }

  /// The largest tiles, from the first lane on, that lie in one operand of every concat.
  int64_t alignment = 1;

  /// By a set of outer axes (bit k: axis k): operations of the values that vary along these axes and no others.
  std::map<uint64_t, double> operations;

 private:
  uint64_t axes_of(const std::vector<Expr>& index) const {
    uint64_t axes = 0;
    for (size_t k = 0; k < outer_.size(); ++k)
      for (const Expr e : index)
        if (ix::depends_on(e, outer_[k].var)) axes |= uint64_t{1} << k;
    return axes;
  }

  double cost_of_load(NodeId node, const std::vector<Expr>& index) const {
    const Expr offset = ix::linear(*group_.cx, index, grouping_.strides[node]);
    const bool varies = std::any_of(lanes_.begin(), lanes_.end(), [&](Expr v) { return ix::depends_on(offset, v); });
    if (!varies) return 0;
    const auto form = ix::affine(offset, lanes_);
    return form && form->coefficients.back() == 1 ? 1 : gathered_load;
  }

  /// Adds the borders between the operands of a concat along the last lane axis.
  void align(const IrNode& concat, const std::vector<Expr>& at) {
    const auto axis = static_cast<size_t>(concat.attrs->axes[0]);
    const auto form = ix::affine(at[axis], lanes_);
    if (!form || !form->base.is_constant() || form->coefficients.back() != 1) return;
    int64_t border = -form->base->value;
    for (const NodeId input : concat.inputs) {
      alignment = std::gcd(alignment, border);
      border += ir_[input].type.shape[axis].bound();
    }
  }

  void walk(const Root& root) {
    std::vector<std::pair<NodeId, int>> pending{{root.node, tuples_.of(root.index)}};
    for (bool body = true; !pending.empty(); body = false) {
      const auto [id, tuple] = pending.back();
      pending.pop_back();
      if (!tuples_.visit(id, tuple)) continue;
      const std::vector<Expr>& at = tuples_[tuple];
      const IrNode& n = ir_[id];
      if (!body && (is_leaf(ir_, id) || grouping_.is_root[id])) {
        operations[axes_of(at)] += cost_of_load(id, at);
      } else if (n.op == Op::concat) {
        align(n, at);
        for (Access& access : push_concat(*group_.cx, ir_, id, at))
          pending.emplace_back(access.node, tuples_.of(std::move(access.index)));
      } else if (is_movement(n.op)) {
        Access access = push(*group_.cx, ir_, id, at);
        pending.emplace_back(access.node, tuples_.of(std::move(access.index)));
      } else if (n.op != Op::gather) {  // what is read at loaded indices is not looked at
        operations[axes_of(at)] += operations_of(n);
        if (n.op == Op::random_bits) continue;
        for (const NodeId input : n.inputs) pending.emplace_back(input, tuple);
      }
    }
  }

  const Ir& ir_;
  const Grouping& grouping_;
  Group& group_;
  const std::span<const DomainVariable> outer_;
  std::vector<Expr> lanes_;
  IndexTuples tuples_;
};

/// Returns how many of `iterations` one program runs: fewer where there would be too few programs.
int64_t iterations_of_program(int64_t iterations, int64_t programs) {
  int64_t best = iterations;
  for (int64_t n = iterations; n >= least_iterations && programs * (iterations / best) < least_programs_of_loop; --n)
    if (iterations % n == 0) best = n;
  return best;
}

}  // namespace

MapLoop choose_map_loop(const Ir& ir, const Grouping& grouping, Group& group, std::span<const DomainVariable> outer,
                        std::span<const DomainVariable> lanes, const TileWidths& widths) {
  if (outer.empty() || outer.size() > 32) return {};
  const RepeatedWork work(ir, grouping, group, outer, lanes);
  int64_t extent = 1, width = widths.most, tiles = most_tiles;
  for (const DomainVariable& v : lanes) extent *= v.extent.bound();
  while (width > widths.least && (extent % width != 0 || work.alignment % width != 0)) width /= 2;
  if (extent % width != 0) return {};
  while (extent / width % tiles != 0) --tiles;
  // Candidates are the axes that some value does not vary along. A loop over them saves all values that vary along none
  // of them.
  double most = least_repeated;
  MapLoop best;
  for (const auto& [candidate, own] : work.operations) {
    MapLoop loop;
    loop.width = width, loop.tiles = tiles;
    int64_t repeats = 1, programs = extent / (width * tiles);
    for (size_t k = 0; k < outer.size(); ++k) {
      const bool varies = (candidate >> k & 1) != 0;
      (varies ? programs : repeats) *= outer[k].extent.bound();
      if (!varies) loop.axes.push_back(static_cast<int>(k));
    }
    if (repeats < 2) continue;
    loop.iterations = iterations_of_program(repeats, programs);
    double repeated = 0;
    for (const auto& [axes, operations] : work.operations)
      if ((axes & ~candidate) == 0) repeated += operations;
    const double saved = repeated * (1 - 1 / static_cast<double>(loop.iterations));
    if (saved < most) continue;
    most = saved;
    best = std::move(loop);
  }
  return best;
}

}  // namespace weft::compiler
