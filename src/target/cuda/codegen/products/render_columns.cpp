// Renders stores of fragments whose columns are contiguous in memory, as where a product is computed transposed: each
// warp turns 16 rows of some columns in a part of the exchange space of its own, and stores each column's rows in words
// of 16 bytes.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

/// Renders such a store of 16-bit elements. False: elements are stored one by one.
bool Renderer::store_columns(const Inst& inst) {
  constexpr int64_t size = 2, per = 16 / size, most = 64;  // columns of a warp's space of 2 KiB
  const Value value = inst.args[0], offset = inst.args[1];
  const Layout s = layout_of(value);
  if (!features_.warpgroups || s.held != Held::fragments || splat_[static_cast<size_t>(value)] || is_local(inst.ref) ||
      !variant_.aligned || dtype_of(inst.ref).size() != size)
    return false;
  const bool whole =
      type(value).rank() == 2 && inst.strides[0] == 1 && inst.strides[1] % per == 0 && divisor(offset) % per == 0;
  const int64_t of_warp = s.columns / s.column_warps;
  if (!whole || of_warp % 16 != 0) return false;
  int64_t width = most;
  while (of_warp % width != 0) width /= 2;
  const Value rows = inst.args[2], columns = inst.args[3];
  const std::string element = memory_type(inst.ref), from = in_array(value, element, s.registers());
  exchange(uint8, int64_t{64} * s.threads);
  sync();
  open("");
  add("u8* const own = shared + (t >> 5) * 2048;");
  open(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int g = 0; g < {}; ++g)", s.row_fragments(), of_warp / width));
  add("__syncwarp();");
  open(fmt::format("EACH (int j = 0; j < {}; j += 2)", width / 8));
  // Matrices: rows 0 to 7 and 8 to 15 of fragment j, then those of the next one. A line has two words: 16 rows.
  add("const int line = (j + (t >> 4 & 1)) * 8 + (t & 7);");
  add(fmt::format(
      "store_turned(shared_address(own) + swizzled<2>(line, t >> 3 & 1), (const u32*){} + (i * {} + g * {} + "
      "j) * 2);",
      from, s.column_fragments(), width / 8));
  close();
  add("__syncwarp();");
  open(fmt::format("EACH (int q = 0; q < {}; ++q)", width / 16));
  add("const int e = q * 32 + (t & 31), line = e / 2, chunk = e % 2;");
  add(fmt::format("const int row = {} + chunk * {}, column = {} + g * {} + line;", s.first_row("i"), per,
                  s.first_column(), width));
  add("const u8* const chunk_at = own + swizzled<2>(line, chunk);");
  add(fmt::format("{}* const to = {} + {} + row + column * {}ll;", element, stored_buffer(inst.ref), at(offset),
                  inst.strides[1]));
  std::string guard = columns == kernel::no_value ? "" : fmt::format("column < {}", at(columns));
  const std::string also = guard.empty() ? "" : guard + " && ";
  if (rows == kernel::no_value || divisor(rows) % per == 0) {
    if (rows != kernel::no_value) guard = fmt::format("{}row < {}", also, at(rows));
    add(fmt::format("{}*(W16*)to = *(const W16*)chunk_at;", guard.empty() ? "" : fmt::format("if ({}) ", guard)));
  } else {
    add(fmt::format("if ({}row + {} <= {}) *(W16*)to = *(const W16*)chunk_at;", also, per, at(rows)));
    add(fmt::format("else EACH (int k = 0; k < {}; ++k) if ({}row + k < {}) to[k] = ((const {}*)chunk_at)[k];", per,
                    also, at(rows), element));
  }
  close();
  close();
  close();
  return true;
}

}  // namespace weft::target::cuda
