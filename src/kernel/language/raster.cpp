// Orders of the programs of a grid.
#include <fmt/format.h>

#include "kernel/language/trace.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Type;
using kernel::Value;

std::pair<Any, Any> swizzle2d(const Any& i, const Any& j, int64_t m, int64_t n, int64_t group, Line at) {
  Trace& t = Trace::current("swizzle2d", at);
  const Value row = t.value(i, at), column = t.value(j, at);
  const Type index{int64, {}};
  if (!(t.builder.type(row) == index) || !(t.builder.type(column) == index) || m < 1 || n < 1 || group < 1)
    t.refuse(at, fmt::format("swizzle2d: {} and {} of a grid of {} x {}, in bands of {}: two int64 scalars, a grid "
                             "with programs and a positive number are wanted",
                             text(t.builder.type(row)), text(t.builder.type(column)), m, n, group));
  kernel::Builder& b = t.at(at);
  const auto within = [&](ScalarOp op, Value x, Value y, int64_t low, int64_t high) {
    const Value v = b.scalar(op, {x, y});
    t.learn(v, {low, high, 1});
    return v;
  };
  const int64_t height = std::min(group, m), bands = (m + height - 1) / height;
  const Value of_band = b.index(height * n), whole = b.index(height);
  // The remainder changes nothing but tells targets the bound, from which they know where boxes of arrays end.
  const Value number = within(ScalarOp::mod, b.add(b.mul(row, b.index(n)), column), b.index(m * n), 0, m * n - 1);
  const Value band = within(ScalarOp::floordiv, number, of_band, 0, bands - 1);
  const Value rest = within(ScalarOp::mod, number, of_band, 0, height * n - 1);
  Value down = b.scalar(ScalarOp::mod, {rest, whole}), across = b.scalar(ScalarOp::floordiv, {rest, whole});
  if (const int64_t last = m % height; last != 0) {  // the last band has fewer rows
    const Value is_last = b.scalar(ScalarOp::eq, {band, b.index(bands - 1)});
    down = b.select(is_last, b.scalar(ScalarOp::mod, {rest, b.index(last)}), down);
    across = b.select(is_last, b.scalar(ScalarOp::floordiv, {rest, b.index(last)}), across);
  }
  const Value to_row = within(ScalarOp::add, b.mul(band, whole), down, 0, m - 1);
  t.learn(across, {0, n - 1, 1});
  return {t.any(to_row), t.any(across)};
}

}  // namespace weft::k
