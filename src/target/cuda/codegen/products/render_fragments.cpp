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

/// Renders the reduction of rows that a warp holds whole. A row's elements differ in their fragment, the lane's two
/// lowest bits and the lowest bit of the register, from the highest bit of the column down: the tree of kernel/tile.h
/// halves them in this order. Other reductions go through shared memory.
bool Renderer::reduce_in_fragments(const Inst& i) {
  const Layout s = layout_of(i.args[0]);
  const int64_t fragments = s.held == Held::fragments ? s.column_fragments() : 0;
  const bool here = fragments > 0 && i.blocks.empty() && i.axis == 1 && s.column_warps == 1 &&
                    !splat_[static_cast<size_t>(i.args[0])] && layout_of(i.results[0]) == rows_of(s) &&
                    std::has_single_bit(static_cast<uint64_t>(fragments));
  if (!here) return reduce_along(i), true;
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
