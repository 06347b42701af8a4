#include "compiler/fusion/scatter_rows.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/fusion/grouper.h"
#include "compiler/region/dot_plan.h"
#include "compiler/rewrite/sort_scatter.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

std::optional<ScatterRowsForm> scatter_rows_form(const Ir& ir, NodeId scatter, const target::Target& target,
                                                 const Numerics& numerics) {
  const auto sizes = row_scatter(ir, scatter);
  if (!sizes || numerics.deterministic || !target.machine().wants_many_programs()) return std::nullopt;
  const IrNode& n = ir[scatter];
  ScatterRowsForm form;
  form.ids = n.inputs[1];
  form.updates = n.inputs[2];
  if (const IrNode& cast = ir[form.updates];
      cast.op == Op::cast && is_low_float(ir[cast.inputs[0]].type.dtype) && n.type.dtype == float32)
    form.updates = cast.inputs[0];
  form.desc = {"scatter_rows",
               {{ir[form.ids].type.dtype, {sizes->count}}, {ir[form.updates].type.dtype, {sizes->count, sizes->width}}},
               {{n.type.dtype, {sizes->rows, sizes->width}}},
               {},
               {.deterministic = false}};
  if (!target.call(form.desc)) return std::nullopt;
  return form;
}

/// Marks the operands of scatter routines as roots: the routines read them from memory.
void Grouper::mark_scatter_rows() {
  for (NodeId id = 0; id < ir_.size(); ++id) {
    if (ir_[id].op != Op::scatter) continue;
    const auto form = scatter_rows_form(ir_, id, *target_, policy_.numerics);
    if (!form) continue;
    const ScatterRows sums{form->desc, memory_of(ir_, strides_, base_root_, form->ids, true),
                           memory_of(ir_, strides_, base_root_, form->updates, true)};
    for (const NodeId node : {sums.ids, sums.updates})
      if (!is_leaf(ir_, node)) base_root_[node] = true;
    scatter_rows_[id] = sums;
  }
}

namespace {

/// Walks through what the rows of a sorted scatter are computed from.
class RowWalk {
 public:
  RowWalk(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots)
      : ir_(ir), strides_(strides), roots_(roots) {}

  /// Returns whether the kernel that adds the rows should compute them itself. It reads them in the order of their ids,
  /// so every array must have its rows in one piece. What is stored is written once and read once; what is computed
  /// instead reads arrays of as many rows, which another kernel may hold in registers. Rows of a table that are
  /// gathered are read in any case.
  bool inlines(NodeId rows) {
    const graph::Type& type = ir_[rows].type;
    std::vector<Expr> index = domain(cx_, type.shape, "i");
    row_ = index[0];
    lane_ = index.back();
    columns_.assign(index.begin() + 1, index.end());
    visit(rows, std::move(index), false);
    return whole_ && bytes_ < 2.0 * static_cast<double>(type.dtype.size());
  }

 private:
  bool varies(const std::vector<Expr>& index) const {
    return std::any_of(index.begin(), index.end(), [&](Expr e) {
      return std::any_of(columns_.begin(), columns_.end(),
                         [&](Expr c) { return !c.is_constant() && ix::depends_on(e, c); });
    });
  }

  void visit(NodeId node, std::vector<Expr> index, bool gathered) {
    std::vector<std::tuple<NodeId, int, bool>> pending{{node, tuples_.of(std::move(index)), gathered}};
    while (!pending.empty() && whole_) {
      const auto [id, tuple, moved] = pending.back();
      pending.pop_back();
      if (!tuples_.visit(id, tuple, moved)) continue;
      const std::vector<Expr>& at = tuples_[tuple];
      const IrNode& n = ir_[id];
      whole_ = std::all_of(n.type.shape.begin(), n.type.shape.end(), [](const Dim& d) { return d.is_static(); });
      if (is_leaf(ir_, id) || roots_[id]) {
        read(id, at, moved);
      } else if (n.op == Op::concat) {
        for (Access& access : push_concat(cx_, ir_, id, at))
          pending.emplace_back(access.node, tuples_.of(std::move(access.index)), moved);
      } else if (is_movement(n.op)) {
        Access access = push(cx_, ir_, id, at);
        pending.emplace_back(access.node, tuples_.of(std::move(access.index)), moved);
      } else if (n.op == Op::gather) {
        gather(n, id, at, moved, pending);
      } else if (n.op != Op::random_bits) {
        for (const NodeId input : n.inputs) pending.emplace_back(input, tuple, moved);
      }
    }
  }

  void gather(const IrNode& n, NodeId id, const std::vector<Expr>& at, bool moved,
              std::vector<std::tuple<NodeId, int, bool>>& pending) {
    const auto rank = static_cast<std::ptrdiff_t>(index_rank(ir_, id));
    std::vector<Expr> prefix(at.begin(), at.begin() + rank), inside(at.begin() + rank, at.end());
    whole_ = whole_ && !varies(prefix);  // else each lane has an address of its own
    for (size_t k = 0; k < n.attrs->axes.size(); ++k) {
      pending.emplace_back(n.inputs[k + 1], tuples_.of(prefix), moved);
      const auto axis = static_cast<size_t>(n.attrs->axes[k]);
      const int64_t range = ir_[n.inputs[0]].type.shape[axis].bound() - n.attrs->shape[axis].bound();
      inside[axis] = inside[axis] + cx_.variable("gathered", 0, std::max<int64_t>(0, range));
    }
    pending.emplace_back(n.inputs[0], tuples_.of(std::move(inside)), true);
  }

  /// Counts a read of an array's rows, which must be contiguous along the last axis, or the same for all of it.
  void read(NodeId id, const std::vector<Expr>& at, bool moved) {
    if (!varies(at)) return;
    const graph::Type& type = ir_[id].type;
    const Strides strides = strides_[id].empty() ? row_major_strides(type.shape) : strides_[id];
    const Expr offset = ix::linear(cx_, at, strides);
    const auto form = ix::affine(offset, std::span<const Expr>(&lane_, 1));
    whole_ = whole_ && (lane_.is_constant() || (form && (form->coefficients[0] == 0 || form->coefficients[0] == 1)));
    if (!moved && ix::depends_on(offset, row_)) bytes_ += type.dtype.size();
  }

  const Ir& ir_;
  const NodeStrides& strides_;
  const NodeFlags& roots_;
  ix::Context cx_;
  IndexTuples tuples_;
  Expr row_, lane_;
  std::vector<Expr> columns_;
  double bytes_ = 0;  // read of arrays of as many rows, for each element
  bool whole_ = true;
};

}  // namespace

/// Finds the gathers of rows that sorted scatters alone read.
void Grouper::find_sorted_rows() {
  for (const IrNode& n : ir_.nodes) {
    if (!n.sorted) continue;
    NodeId rows = n.inputs[2];
    while (ir_[rows].op == Op::cast && users_[rows].size() == 1) rows = ir_[rows].inputs[0];
    const std::span<const NodeId> readers = users_[rows];
    const bool alone = rows == n.inputs[2] ? std::all_of(readers.begin(), readers.end(),
                                                         [&](NodeId reader) { return ir_[reader].sorted; })
                                           : readers.size() == 1;
    if (alone && ir_[rows].op == Op::gather) sorted_rows_.insert(rows);
  }
}

/// Marks the rows of sorted scatters that do not compute them.
void Grouper::mark_sorted_rows() {
  for (const NodeId gather : sorted_rows_) {
    const NodeId rows = ir_[gather].inputs[0];
    if (!RowWalk(ir_, strides_, base_root_).inlines(rows)) mark(memory_of(ir_, strides_, base_root_, rows, true));
  }
}

}  // namespace weft::compiler
