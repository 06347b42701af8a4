// The cumulative class: an axis reduced up to each of its elements. If the axis is innermost in memory, lanes run along
// it: a block is reduced in registers, by doubling or by a butterfly, and the total of all earlier blocks is carried.
// Otherwise lanes run along the axes inside it, and the loop along the axis carries a tile. Each row or panel is one
// program, so the bits depend on the shape alone. The operand's expression is computed inline. What is combined are
// states of the reducer (kernel/states.h): of sums of what the elements are logarithms of, maxima and scaled sums.
#include <algorithm>

#include "base/error.h"
#include "compiler/lower/emit.h"
#include "kernel/states.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::State;
using kernel::Value;

namespace {

class CumulativeLowering {
 public:
  CumulativeLowering(const LowerContext& cx, Group& group)
      : cx_(cx), node_(group.roots[0].node), n_(cx.ir[node_]), icx_(*group.cx),
        emit_(cx, group, "prefix_" + std::to_string(node_)), b_(emit_.builder()),
        axis_(static_cast<size_t>(n_.attrs->axes[0])), reverse_(n_.attrs->integers[0] != 0),
        exclusive_(n_.attrs->integers[1] != 0), logs_(n_.attrs->integers[2] != 0),
        reducer_(logs_ ? Reducer::logsumexp : n_.attrs->reducer), dtype_(compute_dtype(n_.type.dtype)),
        components_(logs_ ? 2 : 1, dtype_) {}

  Lowered run() {
    emit_.param(node_, true);
    const Shape& shape = n_.type.shape;
    outer_ = bounds(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis_)));
    inner_ = bounds(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis_) + 1, shape.end()));
    for (int64_t n : outer_) outer_volume_ *= n;
    for (int64_t n : inner_) inner_volume_ *= n;
    along_ = icx_.variable("k", 0, std::max<int64_t>(0, shape[axis_].bound() - 1));
    const int64_t grid = inner_volume_ == 1 ? along_rows() : across_rows();
    return emit_.finish(grid, 8.0 * static_cast<double>(volume(shape)));
  }

 private:
  /// Returns the index of the element at (outer, along, inner).
  std::vector<Expr> index_at(Expr outer, Expr inner) const {
    std::vector<Expr> index;
    const auto unroll = [&](Expr flat, const std::vector<int64_t>& extents, int64_t count) {
      if (extents.empty()) return;
      const std::vector<int64_t> all{count};
      for (Expr e : ix::reindex_reshape(icx_, std::span<const Expr>(&flat, 1), extents, all)) index.push_back(e);
    };
    unroll(outer, outer_, outer_volume_);
    index.push_back(n_.type.shape[axis_].bound() <= 1 ? icx_.constant(0) : along_);
    unroll(inner, inner_, inner_volume_);
    return index;
  }

  int64_t width_for(int64_t extent, int64_t lanes) const {
    int64_t width = 1;
    while (width < std::min(lanes, extent)) width *= 2;
    return width;
  }
  int64_t lanes() const { return cx_.target.machine().lanes(dtype_.size()); }

  State combine(const State& a, const State& x) { return kernel::combine_states(b_, reducer_, a, x); }
  State identity(const std::vector<int64_t>& dims) { return kernel::identity_state(b_, reducer_, components_, dims); }
  State select(Value condition, const State& x, const State& y) {
    State out;
    for (size_t k = 0; k < x.size(); ++k) out.push_back(b_.select(condition, x[k], y[k]));
    return out;
  }
  State shift(const State& v, const State& into, int64_t by) {
    State out;
    for (size_t k = 0; k < v.size(); ++k) out.push_back(b_.shift(v[k], into[k], by));
    return out;
  }

  /// Returns the states of the elements themselves.
  State operand(const std::vector<Expr>& index, int64_t width) {
    const Value v = b_.broadcast(emit_.value(n_.inputs[0], index), {width});
    return logs_ ? State{v, b_.real(dtype_, 1, {width})} : State{v};
  }

  /// Stores what states come to: of logarithms m + log s, or m where that is infinite.
  void store(const std::vector<Expr>& index, const State& state) {
    Value v = state[0];
    if (logs_) {
      const Value infinite =
          b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::abs, {v}), b_.real(dtype_, INFINITY, b_.type(v).dims)});
      v = b_.select(infinite, v, b_.add(v, b_.scalar(ScalarOp::log, {state[1]})));
    }
    emit_.store(node_, index, v, false);
  }

  /// A block's cumulative reduction (lane l combines the lanes up to it), and its total in all lanes if it was
  /// computed.
  struct Block {
    State upto, total;
  };

  /// Returns whether blocks are reduced by a butterfly: where lanes are threads, which shift a tile through shared
  /// memory behind barriers. It combines twice a step, so states with a frame keep to doubling.
  bool by_butterfly() const { return cx_.target.machine().simt && kernel::cost_of_frame(reducer_) == 0; }

  /// Reduces a block by doubling (Hillis and Steele 1986).
  Block doubled(State v, int64_t width) {
    const Value lanes = b_.arange(width);
    for (int64_t far = 1; far < width; far *= 2) {
      const State next = combine(shift(v, identity({width}), reverse_ ? -far : far), v);
      const Value reached = reverse_ ? b_.lt(lanes, b_.broadcast(b_.index(width - far), {width}))
                                     : b_.lt(b_.broadcast(b_.index(far - 1), {width}), lanes);
      v = select(reached, next, v);
    }
    return {v, {}};
  }

  /// Reduces a block by a butterfly. A step exchanges the totals of neighbouring runs of lanes, after which every lane
  /// has the total of the run of both; on a GPU it stays within a thread or a warp.
  Block exchanged(const State& v, int64_t width) {
    const Value lanes = b_.arange(width, int32), none = b_.constant(int32, Number::of_int(0), {width});
    Block block{v, v};
    for (int64_t run = 1; run < width; run *= 2) {
      State other;
      for (const Value total : block.total) other.push_back(b_.exchange(total, run));
      const Value bit = b_.scalar(ScalarOp::bit_and, {lanes, b_.constant(int32, Number::of_int(run), {width})});
      const Value behind = b_.scalar(reverse_ ? ScalarOp::eq : ScalarOp::ne, {bit, none});
      block.upto = select(behind, combine(other, block.upto), block.upto);
      block.total = combine(other, block.total);
    }
    return block;
  }

  /// Emits the form with lanes along the axis; returns the grid.
  int64_t along_rows() {
    // On a GPU a block is what one warp holds with several loads of each thread in flight.
    constexpr int64_t widest_of_a_warp = 512;
    const int64_t width = width_for(n_.type.shape[axis_].bound(), by_butterfly() ? widest_of_a_warp : lanes());
    const Expr outer = icx_.variable("o", 0, std::max<int64_t>(0, outer_volume_ - 1));
    const std::vector<Expr> index = index_at(outer, icx_.constant(0));
    emit_.bind(outer, b_.program_id());
    const Value length = emit_.extent(n_.type.shape[axis_]), step = b_.index(width);
    const Value blocks = b_.scalar(ScalarOp::floordiv, {b_.add(length, b_.index(width - 1)), step});
    b_.loop(b_.index(0), blocks, b_.index(1), identity({width}), [&](Value i, const std::vector<Value>& carried) {
      emit_.push_scope();
      const Value block = reverse_ ? b_.sub(b_.sub(blocks, b_.index(1)), i) : i, first = b_.mul(block, step);
      const bool whole = n_.type.shape[axis_].is_static() && n_.type.shape[axis_].bound() % width == 0;
      emit_.bind_lanes(along_, first, width, whole ? no_value : b_.sub(length, first));
      State v = operand(index, width);
      if (reverse_ && !whole)
        v = select(emit_.lane_mask(), v, identity({width}));  // lanes past the end would be combined into all others
      const Block own = by_butterfly() ? exchanged(v, width) : doubled(v, width);
      const State upto = combine(carried, own.upto);
      store(index, exclusive_ ? shift(upto, carried, reverse_ ? -1 : 1) : upto);
      // The last lane has the carried total already; a butterfly's total saves waiting for it.
      State next;
      if (own.total.empty())
        for (const Value component : upto)
          next.push_back(b_.broadcast(b_.extract(component, reverse_ ? 0 : width - 1), {width}));
      else next = combine(carried, own.total);
      emit_.pop_scope();
      return next;
    });
    return outer_volume_;
  }

  /// Emits the form with lanes along the axes inside the axis; returns the grid.
  int64_t across_rows() {
    const int64_t width = width_for(inner_volume_, lanes()), blocks = (inner_volume_ + width - 1) / width;
    const Expr outer = icx_.variable("o", 0, std::max<int64_t>(0, outer_volume_ - 1)),
               inner = icx_.variable("x", 0, std::max<int64_t>(0, inner_volume_ - 1));
    const std::vector<Expr> index = index_at(outer, inner);
    const Value pid = b_.program_id(), count = b_.index(blocks);
    emit_.bind(outer, b_.scalar(ScalarOp::floordiv, {pid, count}));
    const Value first = b_.mul(b_.scalar(ScalarOp::mod, {pid, count}), b_.index(width));
    emit_.bind_lanes(inner, first, width,
                     inner_volume_ % width == 0 ? no_value : b_.sub(b_.index(inner_volume_), first));
    const Value length = emit_.extent(n_.type.shape[axis_]);
    b_.loop(b_.index(0), length, b_.index(1), identity({width}), [&](Value i, const std::vector<Value>& carried) {
      emit_.push_scope();
      emit_.bind(along_, reverse_ ? b_.sub(b_.sub(length, b_.index(1)), i) : i);
      const State total = combine(carried, operand(index, width));
      store(index, exclusive_ ? carried : total);
      emit_.pop_scope();
      return total;
    });
    return outer_volume_ * blocks;
  }

  const LowerContext& cx_;
  int node_;
  const IrNode& n_;
  ix::Context& icx_;
  Emitter emit_;
  kernel::Builder& b_;
  size_t axis_;
  bool reverse_, exclusive_, logs_;
  Reducer reducer_;
  Dtype dtype_;
  std::vector<Dtype> components_;  // of a state
  std::vector<int64_t> outer_, inner_;
  int64_t outer_volume_ = 1, inner_volume_ = 1;
  Expr along_;
};

}  // namespace

Lowered lower_cumulative(const LowerContext& cx, const Group& fused) {
  Group group = fused.copy();
  return CumulativeLowering(cx, group).run();
}

}  // namespace weft::compiler
