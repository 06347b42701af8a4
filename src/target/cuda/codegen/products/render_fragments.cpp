// Renders what has a way of its own where tiles are held as fragments: broadcasts of their rows and columns, and
// reductions of their rows.
#include <fmt/format.h>

#include <bit>

#include "kernel/reducer.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

/// Renders a broadcast. Rows and columns of the same fragments need no exchange.
bool Renderer::spread_in_fragments(const Inst& i) {
  if (repeat(i)) return true;
  const Value from = i.args[0], result = i.results[0];
  if (type(from).rank() == 0 || splat_[static_cast<size_t>(from)] || !held_.contains(result)) return spread(i), true;
  const Layout &s = layout_of(from), to = layout_of(result);
  const int64_t fragments = to.column_fragments();
  std::string r;
  const std::vector<int64_t>& dims = type(from).dims;
  const bool line = dims.size() == 1 || dims[0] == 1, upright = dims.size() == 2 && dims[1] == 1;
  if (to.held == Held::fragments && upright && s == rows_of(to))
    r = fmt::format("r / {} * 2 + (r >> 1 & 1)", fragments * 4);
  if (to.held == Held::fragments && line && s == columns_of(to)) r = fmt::format("r / 4 % {} * 2 + (r & 1)", fragments);
  if (s == to) r = "r";
  if (r.empty()) return spread(i), true;
  arithmetic(result, at(from, fmt::format("({})", r)));
  return true;
}

/// Renders a slice of fragments. Whole fragments are registers of the same thread.
void Renderer::slice_in_fragments(const Inst& i) {
  const Value from = i.args[0], result = i.results[0];
  const Layout s = layout_of(from), to = layout_of(result);
  if (to.held != Held::fragments || s.held != Held::fragments || splat_[static_cast<size_t>(from)]) return flatly(i);
  const int64_t fragments = to.column_fragments();
  arithmetic(result, at(from, fmt::format("((r / {} * {} + r / 4 % {} + {}) * 4 + r % 4)", fragments * 4,
                                          s.column_fragments(), fragments, i.axes[1] / 8)));
}

/// Renders the reduction of columns, a line of which is a row of each fragment of each warp; returns false where it
/// does not. The bits of a row are, from the highest one down, those of the thread's fragment and of its warp, or of
/// these two the other way round, then that of the register, then those of the lane: the tree of kernel/tile.h halves
/// them in this order. Of some columns at a time, warps leave what they have in shared memory, and each of them
/// combines a part of the columns.
bool Renderer::add_up_rows(const Inst& i, const Layout& s) {
  const int64_t warps = s.row_warps, columns = s.held == Held::fragments ? s.column_fragments() * 2 : 0,
                some = std::min<int64_t>(columns, 8), rows = columns > 0 ? s.row_fragments() : 0;
  const auto halves = [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); };
  if (columns == 0 || !i.blocks.empty() || i.axis != 0 || s.column_warps > 1 ||
      splat_[static_cast<size_t>(i.args[0])] || !(layout_of(i.results[0]) == columns_of(s)) || !halves(rows) ||
      !halves(warps) || columns % some != 0 || some % warps != 0)
    return false;
  const Dtype t = combined_in(i, 0);
  const char* type = type_name(t);
  const int64_t left = s.interleaved ? 2 : 2 * rows, own = some / warps, kept = left * some;
  const std::string space = exchange(t, std::max(warps * 32 * kept, columns * 4)),
                    w = "w" + std::to_string(i.results[0]);
  const auto halve = [&](const std::string& x, int64_t count, int64_t to) {
    for (int64_t half = count / 2; half >= to; half /= 2) {
      const std::string args[] = {x + "[j]", fmt::format("{}[j + {}]", x, half)};
      add(fmt::format("EACH (int j = 0; j < {}; ++j) {}[j] = {};", half, x,
                      expression(kernel::combine(i.reducer), t, args)));
    }
  };
  add(fmt::format("{} {}[{}], {}s[{}];", type, w, rows * 2 * columns, w, columns / warps));
  add(fmt::format(
      "EACH (int j = 0; j < {}; ++j) {{ const int r = (j / {} * {} + j % {} / 2) * 4 + j / {} % 2 * 2 + (j & "
      "1); {}[j] = {}; }}",
      rows * 2 * columns, 2 * columns, columns / 2, columns, columns, w, wide(i, 0)));
  if (s.interleaved) halve(w, rows * 2 * columns, 2 * columns);
  open(fmt::format("EACH (int k = 0; k < {}; k += {})", columns, some));
  sync();
  add(fmt::format(
      "EACH (int j = 0; j < {0}; ++j) {1}[((t >> 5) * {0} + j) * 32 + (t & 31)] = {2}[j / {3} * {4} + k + j % "
      "{3}];",
      kept, space, w, some, columns));
  sync();
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", own));
  add(fmt::format("{} x[{}];", type, warps * left));
  add(fmt::format(
      "EACH (int j = 0; j < {0}; ++j) x[j] = {1}[(j / {2} * {3} + j % {2} * {4} + (t >> 5) * {5} + c) * 32 + "
      "(t & 31)];",
      warps * left, space, left, kept, some, own));
  halve("x", warps * left, 1);
  for (const int mask : {16, 8, 4}) {
    const std::string args[] = {"x[0]", fmt::format("lane_xor(x[0], {})", mask)};
    add(fmt::format("x[0] = {};", expression(kernel::combine(i.reducer), t, args)));
  }
  add(fmt::format("{}s[k / {} + c] = x[0];", w, warps));
  close();
  close();
  sync();
  add(fmt::format(
      "if ((t & 28) == 0) EACH (int j = 0; j < {0}; ++j) {1}[(j / {2} * {3} + (t >> 5) * {2} + j % {2}) * 4 + "
      "(t & 3)] = {4}s[j];",
      columns / warps, space, own, some, w));
  sync();
  each(i.results[0], conversion(fmt::format("{}[r * 4 + (t & 3)]", space), t, i.type.dtype));
  return true;
}

/// Renders the reduction of rows that a warp holds whole. A row's elements differ in their fragment, the lane's two
/// lowest bits and the lowest bit of the register, from the highest bit of the column down: the tree of kernel/tile.h
/// halves them in this order. Other reductions go through shared memory.
bool Renderer::reduce_in_fragments(const Inst& i) {
  const Layout s = layout_of(i.args[0]);
  const int64_t fragments = s.held == Held::fragments ? s.column_fragments() : 0;
  const bool here = fragments > 0 && i.blocks.empty() && i.axis == 1 && s.column_warps == 1 &&
                    !splat_[static_cast<size_t>(i.args[0])] && layout_of(i.results[0]) == rows_of(s) &&
                    std::has_single_bit(static_cast<uint64_t>(fragments));
  if (!here) return add_up_rows(i, s) ? true : (reduce_along(i), true);
  const Dtype t = combined_in(i, 0);
  const auto combined = [&](const std::string& a, const std::string& b) {
    const std::string args[] = {a, b};
    return expression(kernel::combine(i.reducer), t, args);
  };
  const Value result = i.results[0];
  const std::string w = "w" + std::to_string(result);
  declare(result);
  open(fmt::format("EACH (int h = 0; h < {}; ++h)", layout_of(result).registers()));
  add(fmt::format("{} {}[{}];", type_name(t), w, fragments * 2));
  add(fmt::format(
      "EACH (int j = 0; j < {}; ++j) {{ const int r = h / 2 * {} + j / 2 * 4 + (h & 1) * 2 + (j & 1); {}[j] "
      "= {}; }}",
      fragments * 2, fragments * 4, w, wide(i, 0)));
  for (int64_t half = fragments; half > 1; half /= 2)
    add(fmt::format("EACH (int j = 0; j < {0}; ++j) {1}[j] = {2};", half, w,
                    combined(w + "[j]", fmt::format("{}[j + {}]", w, half))));
  const bool any = any_order(i.reducer, t);
  if (any) add(fmt::format("{0}[0] = {1};", w, combined(w + "[0]", w + "[1]")));
  for (const int mask : {2, 1})
    add(fmt::format("EACH (int j = 0; j < {0}; ++j) {1}[j] = {2};", any ? 1 : 2, w,
                    combined(w + "[j]", fmt::format("lane_xor({}[j], {})", w, mask))));
  add(fmt::format("{}[h] = {};", fresh(result),
                  conversion(any ? w + "[0]" : combined(w + "[0]", w + "[1]"), t, i.type.dtype)));
  close();
  return true;
}

}  // namespace weft::target::cuda
