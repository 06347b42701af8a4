// What groups of lanes compute, lane by lane.
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/checked_memory.h"
#include "kernel/lanes.h"

namespace weft::kernel {

namespace {

/// One group: its elements, and what the second argument says of each lane.
class Group {
 public:
  Group(const Inst& inst, Dtype t, const TileValue& v, const TileValue* other, size_t begin)
      : inst_(inst), dtype_(t), width_(static_cast<size_t>(inst.axis)) {
    for (size_t k = 0; k < width_; ++k) {
      own_.push_back(v[begin + k]);
      said_.push_back(other ? (*other)[begin + k].i : static_cast<int64_t>(all_lanes(inst.axis)));
    }
    if (info(inst.lane_op).combines) check_members();
  }

  Number result(size_t lane) const {
    switch (inst_.lane_op) {
      case LaneOp::shuffle: return own_[static_cast<size_t>(said_[lane]) & (width_ - 1)];
      case LaneOp::shuffle_up: return neighbour(lane, static_cast<int64_t>(lane) - said_[lane], said_[lane]);
      case LaneOp::shuffle_down: return neighbour(lane, static_cast<int64_t>(lane) + said_[lane], said_[lane]);
      case LaneOp::shuffle_xor: return own_[lane ^ (static_cast<size_t>(said_[lane]) & (width_ - 1))];
      case LaneOp::all: return Number::of_int(where_true() == all_lanes(inst_.axis));
      case LaneOp::any: return Number::of_int(where_true() != 0);
      case LaneOp::uniform: {
        const uint32_t m = where_true();
        return Number::of_int(m == 0 || m == all_lanes(inst_.axis));
      }
      case LaneOp::ballot: return Number::of_int(where_true());
      case LaneOp::match_any: return Number::of_int(where_equal(lane));
      case LaneOp::match_all: {
        const uint32_t m = where_equal(0);
        return Number::of_int(m == all_lanes(inst_.axis) ? m : 0);
      }
      case LaneOp::reduce: return member(lane) ? rounded(reduced(taking_part(lane))) : own_[lane];
      case LaneOp::scan: return member(lane) ? rounded(scanned(taking_part(lane))[lane]) : own_[lane];
      case LaneOp::scan_exclusive:
        if (!member(lane)) return own_[lane];
        return lane == 0 ? neutral_of_lanes(inst_.scalar_op, dtype_) : rounded(scanned(taking_part(lane))[lane - 1]);
    }
    throw_internal("interpret", "there is no such function of lanes");
  }

 private:
  Number neighbour(size_t lane, int64_t from, int64_t by) const {
    return by < 0 || from < 0 || from >= static_cast<int64_t>(width_) ? own_[lane] : own_[static_cast<size_t>(from)];
  }

  uint32_t where_true() const {
    uint32_t out = 0;
    for (size_t k = 0; k < width_; ++k) out |= own_[k].i != 0 ? 1U << k : 0;
    return out;
  }
  static uint64_t bits_of(const Number& n) {
    return n.integral ? static_cast<uint64_t>(n.i) : std::bit_cast<uint64_t>(n.f);
  }
  uint32_t where_equal(size_t lane) const {
    uint32_t out = 0;
    for (size_t k = 0; k < width_; ++k) out |= bits_of(own_[k]) == bits_of(own_[lane]) ? 1U << k : 0;
    return out;
  }

  uint32_t members(size_t lane) const { return static_cast<uint32_t>(said_[lane]); }
  bool member(size_t lane) const { return members(lane) >> lane & 1; }
  void check_members() const {
    for (size_t a = 0; a < width_; ++a)
      for (size_t b = 0; b < width_; ++b)
        if (member(a) && (members(a) >> b & 1) && members(a) != members(b))
          throw MemoryFault(
              fmt::format("lane {} belongs with {:#x}, lane {} with {:#x}: lanes that belong together "
                          "have one mask",
                          a, members(a), b, members(b)));
  }

  /// Low floats are combined in float32 and rounded once.
  Dtype wide() const { return is_low_float(dtype_) ? float32 : dtype_; }
  Number rounded(const Number& n) const { return round_to(n, dtype_); }
  Number combined(const Number& low, const Number& high) const {
    const Number pair[] = {low, high};
    return round_to(reference(inst_.scalar_op, wide(), pair), wide());
  }
  std::vector<Number> taking_part(size_t lane) const {
    std::vector<Number> out(width_, neutral_of_lanes(inst_.scalar_op, wide()));
    for (size_t k = 0; k < width_; ++k)
      if (members(lane) >> k & 1) out[k] = own_[k];
    return out;
  }
  Number reduced(std::vector<Number> n) const {
    for (size_t half = width_ / 2; half > 0; half /= 2)
      for (size_t k = 0; k < half; ++k) n[k] = combined(n[k], n[k + half]);
    return n[0];
  }
  std::vector<Number> scanned(std::vector<Number> n) const {
    for (size_t d = 1; d < width_; d *= 2)
      for (size_t k = width_; k-- > d;) n[k] = combined(n[k - d], n[k]);
    return n;
  }

  const Inst& inst_;
  Dtype dtype_;
  size_t width_;
  std::vector<Number> own_;
  std::vector<int64_t> said_;
};

}  // namespace

bool lanes_combine(ScalarOp op, Dtype t) {
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::mul:
    case ScalarOp::min:
    case ScalarOp::max: return t != bool_;
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor: return is_integer(t);
    default: return false;
  }
}

Number neutral_of_lanes(ScalarOp op, Dtype t) {
  const double most = std::numeric_limits<double>::infinity();
  switch (op) {
    case ScalarOp::mul: return round_to(is_float(t) ? Number::of_real(1) : Number::of_int(1), t);
    case ScalarOp::min: return is_float(t) ? Number::of_real(most) : reference_cast(Number::of_real(most), float64, t);
    case ScalarOp::max:
      return is_float(t) ? Number::of_real(-most) : reference_cast(Number::of_real(-most), float64, t);
    case ScalarOp::bit_and: return round_to(Number::of_int(-1), t);
    default: return is_float(t) ? Number::of_real(0) : Number::of_int(0);
  }
}

TileValue lanes_value(const Inst& inst, Dtype t, const TileValue& v, const TileValue* other) {
  TileValue out;
  for (size_t begin = 0; begin < v.size(); begin += static_cast<size_t>(inst.axis)) {
    const Group group(inst, t, v, other, begin);
    for (size_t lane = 0; lane < static_cast<size_t>(inst.axis); ++lane) out.push_back(group.result(lane));
  }
  return out;
}

}  // namespace weft::kernel
