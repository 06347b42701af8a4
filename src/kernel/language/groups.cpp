// What groups of threads are made of: numbers of threads, reductions and scans of whole tiles.
#include <algorithm>

#include <fmt/format.h>

#include "kernel/lanes.h"
#include "kernel/language/trace.h"
#include "weft/kernel_group.h"

namespace weft::k::detail {

namespace {

Any both(std::string_view op, const Any& a, const Any& b, Line at) { return apply(op, std::array{a, b}, at); }

std::vector<int64_t> last_axis(const std::vector<int64_t>& dims) {
  std::vector<int64_t> line(dims.size(), 1);
  line.back() = dims.back();
  return line;
}

CombineAny by_operator(std::string_view op, Line at) {
  return [op, at](const std::vector<Any>& low, const std::vector<Any>& high) {
    return std::vector<Any>{apply(op, std::array{low[0], high[0]}, at)};
  };
}

Any flat(const Any& v, std::string_view op, Line at) {
  Trace& t = Trace::current(op, at);
  const kernel::Type type = t.type(v, at);
  for (const kernel::ScalarOp by :
       {kernel::ScalarOp::add, kernel::ScalarOp::mul, kernel::ScalarOp::min, kernel::ScalarOp::max,
        kernel::ScalarOp::bit_and, kernel::ScalarOp::bit_or, kernel::ScalarOp::bit_xor})
    if (kernel::info(by).name == op && !kernel::lanes_combine(by, type.dtype))
      t.refuse(at, fmt::format("reduce: a group does not combine {} by {}: cast it", text(type), op));
  return reshape(v, {type.size()}, at);
}

/// Returns the dtype in which elements are combined: float32 of low floats.
Dtype combined_in(Dtype t) { return is_low_float(t) ? float32 : t; }

}  // namespace

Any reduced_all(const Any& v, std::string_view op, Line at) {
  const Any line = cast(flat(v, op, at), combined_in(v.dtype(at)), at);
  return cast(reduce(by_operator(op, at), std::array{line}, 0, at)[0], v.dtype(at), at);
}

Any scanned_all(const Any& v, std::string_view op, bool exclusive, Line at) {
  const std::vector<int64_t> dims = v.dims(at);
  const Dtype t = v.dtype(at), wide = combined_in(t);
  Any line = scan(by_operator(op, at), std::array{cast(flat(v, op, at), wide, at)}, 0, false, at)[0];
  if (exclusive) {
    Trace& trace = Trace::current("exclusive_scan", at);
    const int64_t n = line.dims(at)[0];
    kernel::ScalarOp by = kernel::ScalarOp::add;
    for (size_t k = 0; k < static_cast<size_t>(kernel::ScalarOp::count_); ++k)
      if (kernel::info(static_cast<kernel::ScalarOp>(k)).name == op) by = static_cast<kernel::ScalarOp>(k);
    const Any first = trace.any(trace.at(at).constant(wide, kernel::neutral_of_lanes(by, wide), {1}));
    line = n == 1 ? first : cat(std::array{first, slice(line, {0}, {n - 1}, {}, at)}, 0, at);
  }
  return reshape(cast(line, t, at), dims, at);
}

Any ranks(const std::vector<int64_t>& dims, int64_t width, bool of_groups, Line at) {
  const Trace& t = Trace::current("thread_rank", at);
  check_extents(t, "thread_rank", dims, at);
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  if (n % width != 0 || dims.empty() || (width <= 32 && width < n && dims.back() % width != 0))
    t.refuse(at, fmt::format("thread_rank: the last axis of a block [{}] is not made of groups of {}: pad it, or take "
                             "fewer lanes",
                             fmt::join(dims, ","), width));
  const Any all = iota(n, int32, at), wide = constant(int32, width, {}, at);
  return reshape(width == n && !of_groups ? all : both(of_groups ? "floordiv" : "mod", all, wide, at), dims, at);
}

Any member_ranks(const Any& members, int64_t width, Line at) {
  const std::vector<int64_t> dims = members.dims(at);
  const Any lane =
      reshape(cast(both("mod", iota(dims.back(), int32, at), constant(int32, width, {}, at), at), uint32, at),
              last_axis(dims), at);
  const Any one = constant(uint32, 1, {}, at);
  const Any below = both("sub", both("shl", broadcast_to(one, last_axis(dims), at), lane, at), one, at);
  return bits_set(both("bit_and", members, below, at), at);
}

/// Finds the bit that so many lower ones are below, by halves of what is left.
Any lane_of_rank(const Any& members, const Any& rank, Line at) {
  const auto number = [&](Dtype t, int64_t n) { return constant(t, n, {}, at); };
  Any left = rank, lane = broadcast_to(number(int32, 0), members.dims(at), at), mask = members;
  for (int64_t width = 16; width >= 1; width /= 2) {
    const Any low = bits_set(both("bit_and", mask, number(uint32, (int64_t{1} << width) - 1), at), at);
    const Any above = both("le", low, left, at);
    const auto where_above = [&](const Any& a, const Any& b) { return apply("select", std::array{above, a, b}, at); };
    left = where_above(both("sub", left, low, at), left);
    lane = where_above(both("add", lane, number(int32, width), at), lane);
    mask = where_above(both("shr", mask, number(uint32, width), at), mask);
  }
  return lane;
}

Any firsts(const Any& members, const std::vector<int64_t>& dims, int64_t width, Line at) {
  const Any rank = ranks(dims, width, false, at);
  if (!members) return both("eq", rank, constant(int32, 0, {}, at), at);
  return both("eq", first_bit(members, at), both("add", rank, constant(int32, 1, {}, at), at), at);
}

void check_group(const std::vector<int64_t>& dims, const Any& v, Line at) {
  const Trace& t = Trace::current("group", at);
  if (v.dims(at) != dims)
    t.refuse(at, fmt::format("group: {} is no tile of a block [{}]: give one value for each thread",
                             text(t.type(v, at)), fmt::join(dims, ",")));
}

}  // namespace weft::k::detail
