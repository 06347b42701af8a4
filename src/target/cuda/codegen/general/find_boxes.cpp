// Finds the boxes of matrices that TMA copies. Where a tile may pass the end of its matrix, the matrix that TMA is told
// of ends there as well, and TMA fills what lies outside with zeros. That is proved from the tile's addresses: they are
// sums of products of integers, and so are the limits of a load, which say how far it is from a tile's beginning to the
// end of an axis.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::no_value;
using kernel::Op;
using kernel::ScalarOp;
using kernel::Value;

namespace {

/// An integer as a sum of other ones, each times a number.
struct LinearSum {
  std::map<Value, int64_t> terms;
  int64_t constant = 0;

  void add(const LinearSum& other, int64_t times) {
    constant += times * other.constant;
    for (const auto& [v, n] : other.terms)
      if ((terms[v] += times * n) == 0) terms.erase(v);
  }
};

LinearSum linear(const Uses& uses, Value v) {
  const Inst* const maker = uses.maker(v);
  LinearSum out;
  if (maker && maker->op == Op::constant) {
    out.constant = maker->number.i;
    return out;
  }
  if (maker && maker->op == Op::scalar && maker->args.size() == 2) {
    const LinearSum a = linear(uses, maker->args[0]), b = linear(uses, maker->args[1]);
    const bool sum = maker->scalar_op == ScalarOp::add, difference = maker->scalar_op == ScalarOp::sub;
    if (sum || difference) {
      out = a;
      out.add(b, sum ? 1 : -1);
      return out;
    }
    if (maker->scalar_op == ScalarOp::mul && (a.terms.empty() || b.terms.empty())) {
      out.add(a.terms.empty() ? b : a, a.terms.empty() ? a.constant : b.constant);
      return out;
    }
  }
  out.terms[v] = 1;
  return out;
}

/// The numbers that an integer may be.
struct IntegerRange {
  int64_t low = 0, high = 0;
};

std::optional<IntegerRange> range_of(const Uses& uses, const LinearSum& sum);

/// Returns the range of a counter of a loop, or of a remainder; none of others.
std::optional<IntegerRange> range_of(const Uses& uses, Value v) {
  const Inst* const maker = uses.maker(v);
  if (maker && maker->op == Op::scalar && maker->scalar_op == ScalarOp::mod) {
    const LinearSum by = linear(uses, maker->args[1]);
    if (by.terms.empty() && by.constant > 0) return IntegerRange{0, by.constant - 1};
  }
  if (maker) return std::nullopt;
  for (const Uses::Position& position : uses.order) {
    const Inst& loop = *position.inst;
    if (loop.op != Op::loop || loop.blocks[0].arguments[0] != v) continue;
    const auto low = range_of(uses, linear(uses, loop.args[0])), high = range_of(uses, linear(uses, loop.args[1]));
    const LinearSum step = linear(uses, loop.args[2]);
    if (!low || !high || !step.terms.empty() || low->low != low->high) return std::nullopt;
    const int64_t last = low->low + (std::max(high->high - low->low, int64_t{1}) - 1) / step.constant * step.constant;
    return IntegerRange{low->low, last};
  }
  return std::nullopt;
}

std::optional<IntegerRange> range_of(const Uses& uses, const LinearSum& sum) {
  IntegerRange out{sum.constant, sum.constant};
  for (const auto& [v, times] : sum.terms) {
    const std::optional<IntegerRange> r = range_of(uses, v);
    if (!r) return std::nullopt;
    out.low += times * (times > 0 ? r->low : r->high);
    out.high += times * (times > 0 ? r->high : r->low);
  }
  return out;
}

/// Returns whether all parts of a sum are multiples of a number.
bool is_multiple(const LinearSum& sum, int64_t of) {
  return sum.constant % of == 0 &&
         std::all_of(sum.terms.begin(), sum.terms.end(), [&](const auto& x) { return x.second % of == 0; });
}

}  // namespace

/// Returns the boxes in which TMA copies an operand; none, and why, where they cannot be told.
std::optional<Box> Renderer::box_of(const Uses& uses, const Operand& x, std::string& why) const {
  const Inst& load = *x.load;
  const size_t line_axis = x.lines_last ? 1 : 0;
  const int64_t pitch = load.strides[line_axis], across = x.panel * x.per();
  Box box;
  box.line_limit = load.args[1 + line_axis], box.column_limit = load.args[2 - line_axis];
  if (x.lines > 256) {
    why = fmt::format("tiles of p{} have {} lines, more than 256", load.ref, x.lines);
    return std::nullopt;
  }
  if (box.line_limit == no_value && box.column_limit == no_value) {
    if (pitch % across == 0 && divisor(load.args[0]) % across == 0 && pitch >= across) return box;
    why = fmt::format("tiles of p{} do not begin at multiples of {} elements of its lines", load.ref, across);
    return std::nullopt;
  }
  // What is left of the address without the lines before the tile is its column.
  LinearSum rest = linear(uses, load.args[0]);
  const auto begin = [&](Value limit, int64_t& extent) {
    LinearSum out, left = linear(uses, limit);
    extent = left.constant;
    left.constant = 0;
    out.add(left, -1);
    return out;
  };
  if (box.line_limit != no_value) rest.add(begin(box.line_limit, box.lines), -pitch);
  if (box.column_limit != no_value) {
    rest.add(begin(box.column_limit, box.columns), -1);
    const bool begins =
        box.line_limit != no_value ? rest.terms.empty() && rest.constant == 0 : is_multiple(rest, pitch);
    if (begins && box.columns > 0 && box.columns <= pitch && (box.line_limit == no_value || box.lines > 0)) return box;
  } else {
    const std::optional<IntegerRange> columns = range_of(uses, rest);
    if (columns && columns->low >= 0 && columns->high + x.length <= pitch && box.lines > 0) return box;
  }
  why = fmt::format("where a tile of p{} passes the array's edge is not known before the launch", load.ref);
  return std::nullopt;
}

}  // namespace weft::target::cuda
