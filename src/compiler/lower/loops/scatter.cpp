// The scatter class, which also lowers assign (one update at a known position). Every program applies all updates in
// order to its own panel of the slice. Repeated indices therefore need no atomics, and sums have the same bits for any
// number of threads.
#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "compiler/lower/emit.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

namespace {

// Indices that a program tests at once for positions of its own; a block with a hit is tested again in smaller blocks.
constexpr int64_t looked_at = 64, looked_closer_at = 8;

struct Panel {
  std::vector<Expr> slice;  // index into the slice
  Expr lane, outer;
  int64_t width = 1, blocks = 1, outer_extent = 1, lane_extent = 1;
};

/// Chooses the panel of a program: lanes run along the trailing axes of the slice that are contiguous in the result, or
/// along the last axis if it has a stride.
Panel panel_of(ix::Context& icx, const Shape& sizes, const Strides& strides, int64_t lanes) {
  Panel panel;
  size_t cut = sizes.size();
  int64_t expected = 1;
  while (cut > 0 && (sizes[cut - 1] == 1 || strides[cut - 1] == expected)) {
    expected *= sizes[cut - 1].bound();
    --cut;
  }
  if (expected == 1 && cut > 0) --cut;
  std::vector<int64_t> all = bounds(sizes), outer(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cut)),
                       inner(all.begin() + static_cast<std::ptrdiff_t>(cut), all.end());
  for (int64_t n : outer) panel.outer_extent *= n;
  for (int64_t n : inner) panel.lane_extent *= n;
  panel.outer = icx.variable("o", 0, std::max<int64_t>(0, panel.outer_extent - 1));
  panel.lane = icx.variable("x", 0, std::max<int64_t>(0, panel.lane_extent - 1));
  std::vector<int64_t> flat_outer{panel.outer_extent}, flat_inner{panel.lane_extent};
  if (!outer.empty()) panel.slice = ix::reindex_reshape(icx, std::span<const Expr>(&panel.outer, 1), outer, flat_outer);
  if (!inner.empty()) {
    auto tail = ix::reindex_reshape(icx, std::span<const Expr>(&panel.lane, 1), inner, flat_inner);
    panel.slice.insert(panel.slice.end(), tail.begin(), tail.end());
  }
  while (panel.width < std::min<int64_t>(lanes * 2, panel.lane_extent)) panel.width *= 2;
  panel.blocks = (panel.lane_extent + panel.width - 1) / panel.width;
  return panel;
}

class ScatterLowering {
 public:
  ScatterLowering(const LowerContext& cx, Group& group)
      : cx_(cx), group_(group), node_(group.roots[0].node), n_(cx.ir[node_]),
        emit_(cx, group, "scatter_" + std::to_string(node_)), b_(emit_.builder()) {}

  Lowered run() {
    const graph::Type& updates = cx_.ir[n_.inputs.back()].type;
    auto rank = static_cast<std::ptrdiff_t>(index_rank(cx_.ir, node_));
    Shape points(updates.shape.begin(), updates.shape.begin() + rank),
        sizes(updates.shape.begin() + rank, updates.shape.end());
    emit_.param(node_, true);
    if (volume(updates.shape) == 0) return emit_.finish(0, 0);  // no updates
    ix::Context& icx = *group_.cx;
    Strides strides = cx_.grouping.strides[node_];
    for (size_t k = 0; k < n_.attrs->step.size(); ++k) strides[k] *= n_.attrs->step[k];
    Panel panel =
        panel_of(icx, sizes, strides, cx_.target.machine().wants_many_programs() ? 64 : cx_.target.machine().lanes(4));
    Value pid = b_.program_id();
    const int64_t owners = owners_for(points);
    if (owners > 1) {
      owner_ = b_.scalar(ScalarOp::mod, {pid, b_.index(owners)});
      pid = b_.scalar(ScalarOp::floordiv, {pid, b_.index(owners)});
      last_owner_ = b_.index(owners - 1);
    }
    emit_.bind(panel.outer, b_.scalar(ScalarOp::floordiv, {pid, b_.index(panel.blocks)}));
    Value first = b_.mul(b_.scalar(ScalarOp::mod, {pid, b_.index(panel.blocks)}), b_.index(panel.width));
    bool whole = panel.lane_extent % panel.width == 0;
    emit_.bind_lanes(panel.lane, first, panel.width, whole ? no_value : b_.sub(b_.index(panel.lane_extent), first));

    int64_t count = volume(points);
    Expr point = icx.variable("i", 0, std::max<int64_t>(0, count - 1));
    std::vector<int64_t> flat{count};
    std::vector<Expr> at = points.empty()
                               ? std::vector<Expr>{}
                               : ix::reindex_reshape(icx, std::span<const Expr>(&point, 1), bounds(points), flat);
    const auto each_point = [&](Value from, Value end) {
      b_.loop(from, end, b_.index(1), {}, [&](Value i, const std::vector<Value>&) {
        emit_.push_scope();
        emit_.bind(point, i);
        apply(points, at, panel);
        emit_.pop_scope();
        return std::vector<Value>{};
      });
    };
    const Value end = points_end(points, count);
    if (owner_ == no_value) {
      each_point(b_.index(0), end);
    } else {  // most indices belong to other programs
      const auto look = [&](Value from, Value to, int64_t count_at_once,
                            const std::function<void(Value, Value)>& found) {
        b_.loop(from, to, b_.index(count_at_once), {}, [&](Value i, const std::vector<Value>&) {
          const Value some = any_own(point, at, i, to, count_at_once);
          emit_.bind_lanes(panel.lane, first, panel.width,
                           whole ? no_value : b_.sub(b_.index(panel.lane_extent), first));
          b_.when(some, [&] { found(i, b_.min(to, b_.add(i, b_.index(count_at_once)))); });
          return std::vector<Value>{};
        });
      };
      look(b_.index(0), end, looked_at, [&](Value from, Value to) { look(from, to, looked_closer_at, each_point); });
    }
    int64_t grid = panel.blocks * panel.outer_extent * owners;
    return emit_.finish(grid, 8.0 * static_cast<double>(volume(updates.shape)));
  }

 private:
  /// Returns how many programs share the positions along the first indexed axis on a GPU, or 1. Each goes through all
  /// indices and applies its own, so that equal positions are updated in order. A power of two, since 64-bit divisions
  /// are slow there.
  int64_t owners_for(const Shape& points) const {
    if (!cx_.target.machine().wants_many_programs() || n_.attrs->axes.empty() || volume(points) < 64) return 1;
    const int64_t positions = std::min<int64_t>(1024, n_.type.shape[static_cast<size_t>(n_.attrs->axes[0])].bound());
    return std::max<int64_t>(1, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(positions))));
  }

  /// Returns whether this program owns the position of any of the `wide` points from `first` on.
  Value any_own(Expr point, const std::vector<Expr>& at, Value first, Value end, int64_t wide) {
    emit_.push_scope();
    const Value left = b_.sub(end, first);
    emit_.bind_lanes(point, first, wide, left);
    const NodeId indices = n_.inputs[1];
    Value i = b_.broadcast(b_.cast(emit_.value(indices, at), int64), {wide});
    const auto splat = [&](Value v) { return b_.broadcast(v, {wide}); };
    const Value range = splat(b_.index(n_.type.shape[static_cast<size_t>(n_.attrs->axes[0])].bound())),
                zero = splat(b_.index(0));
    if (!is_unsigned(cx_.ir[indices].type.dtype)) i = b_.select(b_.lt(i, zero), b_.add(i, range), i);
    Value own = b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::bit_and, {i, splat(last_owner_)}), splat(owner_)});
    own = b_.scalar(ScalarOp::bit_and, {own, emit_.lane_mask()});
    emit_.pop_scope();
    return b_.reduce(kernel::Reducer::any, own, 0);
  }

  /// Returns the end of the loop over points, which are laid out for the bounds of symbolic axes. An outermost symbol
  /// ends the loop; `apply` skips points past the length of any other.
  Value points_end(const Shape& points, int64_t count) {
    if (points.empty() || points[0].is_static()) return b_.index(count);
    return b_.mul(emit_.extent(points[0]), b_.index(count / points[0].bound()));
  }

  /// Applies one point: computes its address from the indices (negative ones count from the end) and updates the panel
  /// of its slice if it is inside.
  void apply(const Shape& points, const std::vector<Expr>& at, const Panel& panel) {
    std::vector<Expr> where = panel.slice;
    for (size_t k = 0; k < n_.attrs->start.size(); ++k) where[k] = where[k] * n_.attrs->step[k] + n_.attrs->start[k];
    Value inside = b_.constant(bool_, Number::of_int(1));
    for (size_t k = 1; k < points.size(); ++k)
      if (!points[k].is_static())
        inside = b_.scalar(ScalarOp::bit_and, {inside, b_.lt(emit_.index_value(at[k]), emit_.extent(points[k]))});
    const Shape& shape = n_.type.shape;
    const Shape& update_shape = cx_.ir[n_.inputs.back()].type.shape;
    for (size_t k = 0; k < n_.attrs->axes.size(); ++k) {
      auto axis = static_cast<size_t>(n_.attrs->axes[k]);
      NodeId indices = n_.inputs[k + 1];
      int64_t range = shape[axis].bound() - update_shape[at.size() + axis].bound();
      Value i = b_.cast(emit_.value(indices, at), int64);
      if (!is_unsigned(cx_.ir[indices].type.dtype))
        i = b_.select(b_.lt(i, b_.index(0)), b_.add(i, b_.index(shape[axis].bound())), i);
      Value ok = b_.scalar(ScalarOp::bit_and,
                           {b_.scalar(ScalarOp::le, {b_.index(0), i}), b_.scalar(ScalarOp::le, {i, b_.index(range)})});
      inside = b_.scalar(ScalarOp::bit_and, {inside, ok});
      Expr variable = group_.cx->variable("target", 0, std::max<int64_t>(0, range));
      emit_.bind(variable, i);
      if (k == 0 && owner_ != no_value)
        inside = b_.scalar(ScalarOp::bit_and,
                           {inside, b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::bit_and, {i, last_owner_}), owner_})});
      where[axis] = where[axis] + variable;
    }
    b_.when(inside, [&] {
      emit_.push_scope();
      std::vector<Expr> from = at;
      from.insert(from.end(), panel.slice.begin(), panel.slice.end());
      Value v = emit_.value(n_.inputs.back(), from);
      if (n_.attrs->mode != graph::ScatterMode::set)
        v = b_.scalar(graph::combine(n_.attrs->mode), {emit_.load_result(node_, where), v});
      emit_.store(node_, where, v, false);
      emit_.pop_scope();
    });
  }

  const LowerContext& cx_;
  Group& group_;
  int node_;
  const IrNode& n_;
  Emitter emit_;
  kernel::Builder& b_;
  Value owner_ = no_value, last_owner_ = no_value;
};

}  // namespace

Lowered lower_scatter(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return ScatterLowering(cx, group).run();
}

}  // namespace weft::compiler
