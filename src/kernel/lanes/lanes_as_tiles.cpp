// Groups of lanes in other instructions: a tile becomes one of [groups, width], a mask one of bits along an axis.
#include <utility>

#include "base/error.h"
#include "kernel/lanes.h"

namespace weft::kernel {

namespace {

using Dims = std::vector<int64_t>;

class Rewriter {
 public:
  explicit Rewriter(Kernel kernel) : out_(std::move(kernel)) {}

  Kernel run() {
    block(out_.body);
    return std::move(out_);
  }

 private:
  void block(Block& b) {
    std::vector<Inst> before = std::exchange(b.insts, {});
    for (Inst& inst : before) {
      for (Block& inner : inst.blocks) block(inner);
      std::vector<Inst>* const outer = std::exchange(to_, &b.insts);
      if (inst.op == Op::lanes) rewrite(inst);
      else b.insts.push_back(std::move(inst));
      to_ = outer;
    }
  }

  const Type& type(Value v) const { return out_.types[static_cast<size_t>(v)]; }
  Value fresh(const Type& t) {
    out_.types.push_back(t);
    return static_cast<Value>(out_.types.size() - 1);
  }
  Value emit(Inst inst) {
    inst.line = line_;
    inst.results = {fresh(inst.type)};
    to_->push_back(std::move(inst));
    return to_->back().results[0];
  }
  Value scalar(ScalarOp op, std::vector<Value> args) {
    Type t = type(args.back());
    if (info(op).result == ScalarResult::boolean) t.dtype = bool_;
    return emit({.op = Op::scalar, .type = std::move(t), .args = std::move(args), .scalar_op = op});
  }
  Value constant(Dtype t, Number n, const Dims& dims) {
    return emit({.op = Op::constant, .type = {t, dims}, .number = n});
  }
  Value whole(Dtype t, int64_t n, const Dims& dims) { return constant(t, round_to(Number::of_int(n), t), dims); }
  Value shaped(Op op, Value v, const Dims& dims) {
    if (type(v).dims == dims) return v;
    return emit({.op = op, .type = {type(v).dtype, dims}, .args = {v}});
  }
  Value reshape(Value v, const Dims& dims) { return shaped(Op::reshape, v, dims); }
  Value broadcast(Value v, const Dims& dims) { return shaped(Op::broadcast, v, dims); }
  Value converted(Op op, Value v, Dtype t) {
    if (type(v).dtype == t) return v;
    return emit({.op = op, .type = {t, type(v).dims}, .args = {v}});
  }
  Value cast(Value v, Dtype t) { return converted(Op::cast, v, t); }
  Value take(Value v, Value index, int axis) {
    return emit({.op = Op::take, .type = {type(v).dtype, type(index).dims}, .args = {v, index}, .axis = axis});
  }
  /// Reduces (without the axis) or scans along the last axis by an operator.
  Value combine(Op op, ScalarOp by, Value v) {
    const Type t = type(v), one{t.dtype, {}};
    Inst inst{.op = op, .type = t, .args = {v}, .axis = t.rank() - 1};
    if (op == Op::reduce) inst.type.dims.pop_back();
    const Value low = fresh(one), high = fresh(one), made = fresh(one);
    Block body{{low, high}, {}};
    body.insts.push_back({.op = Op::scalar, .type = one, .results = {made}, .args = {low, high}, .scalar_op = by});
    body.insts.push_back({.op = Op::yield, .args = {made}});
    inst.blocks.push_back(std::move(body));
    return emit(std::move(inst));
  }

  /// The numbers of the lanes, along the last axis of `dims`.
  Value lane_numbers(Dtype t, const Dims& dims) {
    Dims line(dims.size(), 1);
    line.back() = dims.back();
    const Value n = emit({.op = Op::arange, .type = {int32, {dims.back()}}});
    return broadcast(reshape(cast(n, t), line), dims);
  }
  Value and_of(Value a, Value b) { return scalar(ScalarOp::bit_and, {a, b}); }
  /// The mask of the lanes along the last axis of a tile of bool, which goes.
  Value mask_of(Value holds) {
    const Dims dims = type(holds).dims;
    const Value bit = scalar(ScalarOp::shl, {whole(uint32, 1, dims), lane_numbers(uint32, dims)});
    return combine(Op::reduce, ScalarOp::bit_or, scalar(ScalarOp::select, {holds, bit, whole(uint32, 0, dims)}));
  }
  /// The elements as integers of the same bits.
  Value bits_of(Value v) {
    const Dtype t = type(v).dtype;
    if (!is_float(t)) return v;
    return converted(Op::bitcast, v, t.size() == 8 ? uint64 : t.size() == 4 ? uint32 : t.size() == 2 ? uint16 : uint8);
  }
  Value equal(Value a, Value b) { return scalar(ScalarOp::eq, {a, b}); }

  /// [groups, 1] or [groups] over all lanes.
  Value to_all(Value v) { return broadcast(reshape(v, {groups_, 1}), plane_); }

  void rewrite(const Inst& inst) {
    line_ = inst.line;
    const Type from = type(inst.args[0]);
    width_ = inst.axis, groups_ = from.size() / width_;
    plane_ = {groups_, width_}, cube_ = {groups_, width_, width_};
    const Value v = reshape(inst.args[0], plane_),
                other = inst.args[1] == no_value ? no_value : reshape(inst.args[1], plane_);
    const Value made = info(inst.lane_op).combines ? combined(inst, v, other) : computed(inst.lane_op, v, other);
    to_->push_back({.op = Op::reshape, .type = inst.type, .results = inst.results, .args = {made}, .line = inst.line});
  }

  Value computed(LaneOp op, Value v, Value other) {
    const auto full = [&] { return whole(uint32, static_cast<int64_t>(all_lanes(width_)), plane_); };
    const auto none = [&] { return whole(uint32, 0, plane_); };
    switch (op) {
      case LaneOp::ballot: return to_all(mask_of(v));
      case LaneOp::all: return equal(to_all(mask_of(v)), full());
      case LaneOp::any: return scalar(ScalarOp::ne, {to_all(mask_of(v)), none()});
      case LaneOp::uniform: {
        const Value mask = to_all(mask_of(v));
        return scalar(ScalarOp::bit_or, {equal(mask, none()), equal(mask, full())});
      }
      case LaneOp::match_any: {
        const Value bits = bits_of(v);
        return mask_of(equal(broadcast(reshape(bits, {groups_, width_, 1}), cube_),
                             broadcast(reshape(bits, {groups_, 1, width_}), cube_)));
      }
      case LaneOp::match_all: {
        const Value bits = bits_of(v), first = take(bits, whole(int64, 0, {groups_, 1}), 1);
        const Value mask = to_all(mask_of(equal(bits, broadcast(first, plane_))));
        return scalar(ScalarOp::select, {equal(mask, full()), full(), none()});
      }
      default: return take(v, cast(source(op, other), int64), 1);
    }
  }

  /// The lane whose element each takes.
  Value source(LaneOp op, Value by) {
    const Value lane = lane_numbers(int32, plane_), last = whole(int32, width_ - 1, plane_);
    if (op == LaneOp::shuffle) return and_of(by, last);
    if (op == LaneOp::shuffle_xor) return scalar(ScalarOp::bit_xor, {lane, and_of(by, last)});
    const bool up = op == LaneOp::shuffle_up;
    const Value room = up ? lane : scalar(ScalarOp::sub, {last, lane});
    const Value inside = and_of(scalar(ScalarOp::le, {whole(int32, 0, plane_), by}), scalar(ScalarOp::le, {by, room}));
    return scalar(ScalarOp::select, {inside, scalar(up ? ScalarOp::sub : ScalarOp::add, {lane, by}), lane});
  }

  /// Element (…, i, j): whether lane j belongs with lane i.
  Value together(Value members) {
    const Value wide = broadcast(reshape(members, {groups_, width_, 1}), cube_);
    const Value bit = scalar(ScalarOp::shr, {wide, lane_numbers(uint32, cube_)});
    return scalar(ScalarOp::ne, {and_of(bit, whole(uint32, 1, cube_)), whole(uint32, 0, cube_)});
  }

  Value combined(const Inst& inst, Value own, Value members) {
    const Dtype t = type(own).dtype, wide = is_low_float(t) ? float32 : t;
    const Number neutral = neutral_of_lanes(inst.scalar_op, wide);
    Value v = cast(own, wide);
    if (members != no_value)
      v = scalar(ScalarOp::select, {together(members), broadcast(reshape(v, {groups_, 1, width_}), cube_),
                                    constant(wide, neutral, cube_)});
    Value made = no_value;
    if (inst.lane_op == LaneOp::reduce) {
      made = combine(Op::reduce, inst.scalar_op, v);
      if (members == no_value) made = to_all(made);
    } else {
      made = up_to_own(inst, combine(Op::scan, inst.scalar_op, v), members != no_value);
    }
    made = cast(made, t);
    if (members == no_value) return made;
    const Value lane = lane_numbers(uint32, plane_), one = whole(uint32, 1, plane_);
    const Value member = equal(and_of(scalar(ScalarOp::shr, {members, lane}), one), one);
    return scalar(ScalarOp::select, {member, made, own});
  }

  /// What a scan has for each lane: the element at it or before it; `apart`: each lane has a scan of its own.
  Value up_to_own(const Inst& inst, Value scanned, bool apart) {
    if (inst.lane_op == LaneOp::scan && !apart) return scanned;
    const Value lane = lane_numbers(int64, plane_);
    Value from = lane;
    if (inst.lane_op == LaneOp::scan_exclusive)  // lane -1 is clamped, and replaced below
      from = scalar(ScalarOp::sub, {lane, whole(int64, 1, plane_)});
    Value made =
        apart ? reshape(take(scanned, reshape(from, {groups_, width_, 1}), 2), plane_) : take(scanned, from, 1);
    if (inst.lane_op == LaneOp::scan) return made;
    const Dtype t = type(made).dtype;
    return scalar(ScalarOp::select, {equal(lane, whole(int64, 0, plane_)),
                                     constant(t, neutral_of_lanes(inst.scalar_op, t), plane_), made});
  }

  Kernel out_;
  std::vector<Inst>* to_ = nullptr;
  int64_t width_ = 1, groups_ = 1;
  Dims plane_, cube_;
  int32_t line_ = 0;
};

bool has_lanes(const Block& block) {
  for (const Inst& inst : block.insts) {
    if (inst.op == Op::lanes) return true;
    for (const Block& inner : inst.blocks)
      if (has_lanes(inner)) return true;
  }
  return false;
}

}  // namespace

Kernel lanes_as_tiles(Kernel kernel) { return has_lanes(kernel.body) ? Rewriter(std::move(kernel)).run() : kernel; }

}  // namespace weft::kernel
