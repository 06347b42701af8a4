// The class of scatter-adds of rows whose ids are sorted (rewrite/sort_scatter.h): two kernels that add up runs of
// equal ids (kernel/routines/sorted_rows.h). The first computes the rows that it adds, so that what a row is gathered
// from and multiplied with needs no array of all rows.
#include <algorithm>
#include <span>
#include <utility>

#include "compiler/lower/emit.h"
#include "kernel/routines/sorted_rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::SortedRowsProgram;
using kernel::Value;

namespace {

constexpr int64_t most_lanes = 256;  // of a program

class SortedScatterLowering {
 public:
  SortedScatterLowering(const LowerContext& cx, Group& group)
      : cx_(cx), group_(group), node_(group.roots[0].node),
        n_(cx.ir[node_]), sizes_{volume(cx.ir[n_.inputs[1]].type.shape), n_.type.shape[0].bound(),
                                 volume(n_.type.shape) / std::max<int64_t>(1, n_.type.shape[0].bound()), n_.type.dtype,
                                 most_lanes} {}

  LoweredRoutine run() { return routine_of({chunks(), runs()}, sizes_.parts() * sizes_.sum().size()); }

 private:
  /// Returns the function that loads ids, which lie in `point`'s place of the list.
  SortedRowsProgram::Key key_of(Emitter& emit, Expr point) const {
    return [this, &emit, point](Value at) {
      emit.push_scope();
      emit.bind(point, at);
      const Value id = emit.builder().cast(emit.value(n_.inputs[1], {point}), int64);
      emit.pop_scope();
      return id;
    };
  }

  Expr point() const { return group_.cx->variable("i", 0, std::max<int64_t>(0, sizes_.count - 1)); }

  Lowered chunks() {
    Emitter emit(cx_, group_, "scatter_rows_" + std::to_string(node_));
    const kernel::Ref result = emit.param(node_, true), parts = emit.scratch_param(sizes_.sum(), true);
    SortedRowsProgram program(emit.builder(), sizes_, key_of(emit, point()));
    const Expr lane = group_.cx->variable("x", 0, std::max<int64_t>(0, sizes_.width - 1));
    emit.bind_lanes(lane, program.column(), sizes_.panel(), program.left());
    program.add_chunk(result, parts, [&](std::span<const Value> at) { return rows(emit, lane, at); });
    return emit.finish(sizes_.grid(), 0);
  }

  Lowered runs() {
    Emitter emit(cx_, group_, "scatter_runs_" + std::to_string(node_));
    const kernel::Ref result = emit.param(node_, true), parts = emit.scratch_param(sizes_.sum(), false);
    SortedRowsProgram(emit.builder(), sizes_, key_of(emit, point())).add_run(result, parts);
    return emit.finish(sizes_.grid(), 0);
  }

  /// Returns the updates of several points: the indices of all are loaded before the rows of any, one gather after the
  /// other.
  std::vector<Value> rows(Emitter& emit, Expr lane, std::span<const Value> at) {
    const Shape& shape = n_.type.shape;
    const std::vector<int64_t> width{sizes_.width};
    const std::vector<Expr> slice = ix::reindex_reshape(*group_.cx, std::span<const Expr>(&lane, 1),
                                                        bounds(Shape(shape.begin() + 1, shape.end())), width);
    emit.push_scope();
    std::vector<Emitter::Gathered> wanted;
    for (const Value v : at) {
      std::vector<Expr> index{point(), group_.cx->constant(0)};
      emit.bind(index[0], v);
      index.insert(index.end(), slice.begin(), slice.end());
      wanted.push_back({n_.inputs[2], std::move(index)});
    }
    std::vector<Emitter::Gathered> next = wanted;
    while (!next.empty()) {
      std::vector<Emitter::Gathered> moved;
      for (const Emitter::Gathered& g : next) {
        std::vector<Emitter::Gathered> more = emit.begin_gathers(g.node, g.index);
        moved.insert(moved.end(), more.begin(), more.end());
      }
      for (const Emitter::Gathered& g : moved) emit.hoist(g.node, g.index, {lane});
      next = std::move(moved);
    }
    std::vector<Value> out;
    for (const Emitter::Gathered& g : wanted) {
      const Value row = emit.builder().cast(emit.value(g.node, g.index), sizes_.sum());
      out.push_back(emit.builder().broadcast(row, {sizes_.panel()}));
    }
    emit.pop_scope();
    return out;
  }

  const LowerContext& cx_;
  Group& group_;
  const NodeId node_;
  const IrNode& n_;
  kernel::SortedRows sizes_;
};

}  // namespace

LoweredRoutine lower_sorted_scatter(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return SortedScatterLowering(cx, group).run();
}

}  // namespace weft::compiler
