// What a well-formed Op::lanes is, and how one is appended.
#include <bit>

#include "kernel/lanes.h"
#include "kernel/rules/checker.h"

namespace weft::kernel {

void Rules::lanes() {
  if (!require(inst.lane_op <= LaneOp::scan_exclusive, "there is no such function of lanes")) return;
  const LaneInfo& row = info(inst.lane_op);
  if (!args(2, 1)) return;
  const Type& from = arg(0);
  if (!require(from.rank() >= 1, "a tile with an axis is wanted")) return;
  require(inst.axis >= 1 && inst.axis <= 32 && std::has_single_bit(static_cast<unsigned>(inst.axis)),
          "a group has 1, 2, 4, 8, 16 or 32 lanes");
  if (!wrong.empty()) return;
  require(from.dims.back() % inst.axis == 0, "the last axis is made of whole groups");
  require(absent(1) || row.second != LaneArgument::none, "the function has one argument");
  require(!absent(1) || row.second != LaneArgument::lane, "the lanes are missing");
  if (!wrong.empty()) return;
  if (!absent(1))
    require(arg(1) == Type{row.second == LaneArgument::lane ? int32 : uint32, from.dims},
            "lanes are int32 and members uint32, of the tile's shape");
  require(row.from != LaneType::condition || from.dtype == bool_, "the condition is a bool");
  if (row.combines) require(lanes_combine(inst.scalar_op, from.dtype), "lanes do not combine this dtype so");
  const Dtype to = row.to == LaneType::mask ? uint32 : row.to == LaneType::condition ? bool_ : from.dtype;
  require(inst.type == Type{to, from.dims}, "the result's type is not the function's");
}

Value Builder::lanes(LaneOp what, int64_t width, Value v, Value other, ScalarOp op) {
  Type result = type(v);
  if (info(what).to == LaneType::mask) result.dtype = uint32;
  Inst inst{.op = Op::lanes, .type = std::move(result), .args = {v, other}};
  inst.axis = static_cast<int>(width);
  inst.lane_op = what;
  if (info(what).combines) inst.scalar_op = op;
  return append(std::move(inst));
}

}  // namespace weft::kernel
