#pragma once
// The functions of groups of lanes (Op::lanes), a row each. A group is `width` neighbours of a tile's last axis; a
// mask has bit k for the lane k of the group.
#include <array>
#include <cstdint>
#include <string_view>

namespace weft::kernel {

enum class LaneOp : uint8_t {
  shuffle,         // the element of the lane that the second argument names, modulo the width
  shuffle_up,      // of the lane so many before; where there is none, its own
  shuffle_down,    // of the lane so many behind; where there is none, its own
  shuffle_xor,     // of the lane whose number differs in these bits, modulo the width
  all,             // whether the condition holds in all lanes
  any,             // whether it holds in any
  uniform,         // whether it is the same in all
  ballot,          // the mask of the lanes where it holds
  match_any,       // the mask of the lanes that have the same bits
  match_all,       // the mask of all lanes where all have the same bits, else 0
  reduce,          // the elements of the lanes that belong together, combined as Op::reduce combines an axis with the
                   // operator's neutral number for all others. A lane that belongs to none keeps its element
  scan,            // the same up to the own lane, as Op::scan does
  scan_exclusive,  // the same up to the lane before; of the first lane the neutral number
};

/// What the argument is, and what the result is.
enum class LaneType : uint8_t { any, condition, number, mask };

/// What a second argument says.
enum class LaneArgument : uint8_t { none, lane, members };

struct LaneInfo {
  LaneOp op;
  std::string_view name;
  LaneType from = LaneType::any;
  LaneType to = LaneType::any;  // any: the argument's dtype; condition: bool; mask: uint32
  LaneArgument second = LaneArgument::none;
  bool combines = false;  // by Inst::scalar_op
};

inline constexpr auto lane_ops = std::to_array<LaneInfo>({
    {LaneOp::shuffle, "shuffle", LaneType::any, LaneType::any, LaneArgument::lane},
    {LaneOp::shuffle_up, "shuffle_up", LaneType::any, LaneType::any, LaneArgument::lane},
    {LaneOp::shuffle_down, "shuffle_down", LaneType::any, LaneType::any, LaneArgument::lane},
    {LaneOp::shuffle_xor, "shuffle_xor", LaneType::any, LaneType::any, LaneArgument::lane},
    {LaneOp::all, "all", LaneType::condition, LaneType::condition},
    {LaneOp::any, "any", LaneType::condition, LaneType::condition},
    {LaneOp::uniform, "uniform", LaneType::condition, LaneType::condition},
    {LaneOp::ballot, "ballot", LaneType::condition, LaneType::mask},
    {LaneOp::match_any, "match_any", LaneType::any, LaneType::mask},
    {LaneOp::match_all, "match_all", LaneType::any, LaneType::mask},
    {LaneOp::reduce, "reduce", LaneType::number, LaneType::any, LaneArgument::members, true},
    {LaneOp::scan, "scan", LaneType::number, LaneType::any, LaneArgument::members, true},
    {LaneOp::scan_exclusive, "scan_exclusive", LaneType::number, LaneType::any, LaneArgument::members, true},
});

consteval bool lane_ops_in_order() {
  for (size_t k = 0; k < lane_ops.size(); ++k)
    if (static_cast<size_t>(lane_ops[k].op) != k) return false;
  return lane_ops.size() == static_cast<size_t>(LaneOp::scan_exclusive) + 1;
}
static_assert(lane_ops_in_order(), "every function has a row, in the order of the enumeration");

constexpr const LaneInfo& info(LaneOp op) { return lane_ops[static_cast<size_t>(op)]; }

}  // namespace weft::kernel
