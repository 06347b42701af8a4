// Groups of lanes: checks of what a user asks of them, and what is made of other operators.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "kernel/lanes.h"
#include "kernel/language/trace.h"

namespace weft::k {

using kernel::LaneArgument;
using kernel::LaneInfo;
using kernel::LaneType;
using kernel::ScalarOp;
using kernel::Type;
using kernel::Value;

namespace {

const LaneInfo& function_of(const Trace& t, std::string_view what, Line at) {
  const auto* found =
      std::find_if(kernel::lane_ops.begin(), kernel::lane_ops.end(), [&](const LaneInfo& r) { return r.name == what; });
  if (found != kernel::lane_ops.end()) return *found;
  std::string names;
  for (const LaneInfo& r : kernel::lane_ops) names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
  t.refuse(at, fmt::format("lanes: there is no function '{}' of lanes: {}", what, names));
}

ScalarOp operator_of(const Trace& t, std::string_view what, std::string_view op, const Type& type, Line at) {
  for (const ScalarOp candidate : {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max, ScalarOp::bit_and,
                                   ScalarOp::bit_or, ScalarOp::bit_xor}) {
    if (kernel::info(candidate).name != op) continue;
    if (!kernel::lanes_combine(candidate, type.dtype))
      t.refuse(at, fmt::format("{}: lanes do not combine {} by {}: cast it", what, text(type), op));
    return candidate;
  }
  t.refuse(at, fmt::format("{}: lanes do not combine by '{}': add, mul, min, max, bit_and, bit_or, bit_xor", what, op));
}

void check_width(const Trace& t, std::string_view what, const Type& type, int64_t width, Line at) {
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<uint64_t>(width)))
    t.refuse(at, fmt::format("{}: a group has 1, 2, 4, 8, 16 or 32 lanes, not {}", what, width));
  if (type.rank() == 0)
    t.refuse(at, fmt::format("{}: {} is a scalar: give a tile, whose last axis has the lanes", what, text(type)));
  if (type.dims.back() % width != 0)
    t.refuse(at, fmt::format("{}: the last axis of {} is not made of groups of {} lanes: pad it, or take fewer lanes",
                             what, text(type), width));
}

/// Returns the second argument in the dtype that the function wants and the shape of the first one.
Value second_argument(Trace& t, const LaneInfo& row, const Any& other, const Type& type, Line at) {
  const bool lane = row.second == LaneArgument::lane;
  if (!other) {
    if (lane) t.refuse(at, fmt::format("{}: it takes the lanes: give a number or a tile of integers", row.name));
    return kernel::no_value;
  }
  if (row.second == LaneArgument::none)
    t.refuse(at, fmt::format("{}: it takes one tile: leave the other out", row.name));
  Type given = t.type(other, at);
  if (lane ? !is_integer(given.dtype) : !(given.dtype == uint32))
    t.refuse(at, fmt::format("{}: {} is no tile of {}: cast it", row.name, text(given),
                             lane ? "lanes, which are integers" : "masks, which are u32"));
  if (given.rank() > 0 && given.dims != type.dims)
    t.refuse(at,
             fmt::format("{}: {} and {} differ in shape: broadcast one of them", row.name, text(type), text(given)));
  const Any converted = lane ? cast(other, int32, at) : other;
  return t.value(given.rank() == 0 ? broadcast_to(converted, type.dims, at) : converted, at);
}

Any lane_number(Dtype dtype, int64_t n, Line at) { return constant(dtype, n, {}, at); }
Any op_of_two(std::string_view op, const Any& a, const Any& b, Line at) { return apply(op, std::array{a, b}, at); }

}  // namespace

Any lanes(std::string_view what, const Any& v, int64_t width, const Any& other, std::string_view op, Line at) {
  Trace& t = Trace::current(what, at);
  const LaneInfo& row = function_of(t, what, at);
  const Type type = t.type(v, at);
  check_width(t, what, type, width, at);
  if (row.from == LaneType::condition && !(type.dtype == bool_))
    t.refuse(at, fmt::format("{}: {} is no condition: compare it, which gives bool", what, text(type)));
  const ScalarOp by = row.combines ? operator_of(t, what, op, type, at) : ScalarOp::add;
  const Value second = second_argument(t, row, other, type, at);
  return t.any(t.at(at).lanes(row.op, width, t.value(v, at), second, by));
}

Any program_number(Line at) {
  Trace& t = Trace::current("program_number", at);
  t.at(at);
  Value sum = t.index(0);
  for (size_t k = 0; k < t.grid.size(); ++k)
    sum = t.add(
        t.mul(sum, t.grid[k].count ? t.value(t.grid[k].count, at) : t.index(std::max<int64_t>(t.grid[k].extent, 1))),
        t.ids[k]);
  return t.any(sum);
}

int64_t number_of_programs(Line at) {
  const Trace& t = Trace::current("number_of_programs", at);
  int64_t programs = 1;
  for (const GridAxis& axis : t.grid) {
    if (axis.count)
      t.refuse(at,
               "the number of programs is a run-time scalar here, and a number is wanted: give the grid fixed extents");
    programs *= axis.extent;
  }
  return programs;
}

namespace detail {

/// Adds up bits in pairs, fours and bytes (the form that compilers know as an instruction).
Any bits_set(const Any& v, Line at) {
  const auto word = [&](int64_t n) { return lane_number(uint32, n, at); };
  const auto low = [&](const Any& n, int64_t by, int64_t mask) {
    return op_of_two("bit_and", op_of_two("shr", n, word(by), at), word(mask), at);
  };
  Any n = v.dtype(at) == uint32 ? v : bitcast(v, uint32, at);
  n = op_of_two("sub", n, low(n, 1, 0x55555555), at);
  n = op_of_two("add", op_of_two("bit_and", n, word(0x33333333), at), low(n, 2, 0x33333333), at);
  n = op_of_two("bit_and", op_of_two("add", n, op_of_two("shr", n, word(4), at), at), word(0x0f0f0f0f), at);
  return bitcast(op_of_two("shr", op_of_two("mul", n, word(0x01010101), at), word(24), at), int32, at);
}

/// Counts the bits below the lowest one.
Any first_bit(const Any& v, Line at) {
  const auto word = [&](int64_t n) { return lane_number(uint32, n, at); };
  const Any n = v.dtype(at) == uint32 ? v : bitcast(v, uint32, at);
  const Any lowest = op_of_two("bit_and", n, op_of_two("sub", word(0), n, at), at);
  const Any below = bits_set(op_of_two("sub", lowest, word(1), at), at);
  const Any none = op_of_two("eq", n, word(0), at);
  return apply("select",
               std::array{none, lane_number(int32, 0, at), op_of_two("add", below, lane_number(int32, 1, at), at)}, at);
}

}  // namespace detail
}  // namespace weft::k
