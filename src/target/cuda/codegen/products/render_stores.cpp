// Renders stores of fragments: each warp brings 16 rows of at most 128 bytes in order, in a part of the exchange space
// of its own, and stores them in words of 16 bytes.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

/// Renders the store of a tile of fragments whose rows are contiguous. False: elements are stored one by one.
bool Renderer::store_fragments(const Inst& inst) {
  const Value value = inst.args[0], offset = inst.args[1];
  const Layout s = layout_of(value);
  const Type& tile = type(value);
  if (s.held != Held::fragments || splat_[static_cast<size_t>(value)] || is_local(inst.ref) || !variant_.aligned)
    return false;
  const int64_t size = dtype_of(inst.ref).size(), per = 16 / size, of_warp = s.columns / s.column_warps;
  const bool whole = tile.rank() == 2 && inst.strides[1] == 1 && inst.strides[0] % per == 0 &&
                     divisor(offset) % per == 0 && of_warp % per == 0;
  if (!whole) return false;
  int64_t chunks = 8;
  while (of_warp % (chunks * per) != 0) chunks /= 2;
  const int64_t width = chunks * per, fragments = width / 8;  // of a row at a time
  const Value rows = inst.args[2], columns = inst.args[3];
  const std::string element = memory_type(inst.ref), pair = size == 1 ? "u16" : fmt::format("W{}", size * 2);
  const std::string from = in_array(value, element, s.registers());
  exchange(uint8, int64_t{64} * s.threads);
  sync();
  open("");
  add("u8* const own = shared + (t >> 5) * 2048;");
  open(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int g = 0; g < {}; ++g)", s.row_fragments(), of_warp / width));
  add("__syncwarp();");
  open(fmt::format("EACH (int j = 0; j < {}; ++j) EACH (int h = 0; h < 2; ++h)", fragments));
  add(fmt::format("const int byte = (j * 8 + (t & 3) * 2) * {};", size));
  add(
      fmt::format("*({0}*)(own + swizzled<{1}>((t >> 2 & 7) + h * 8, byte / 16) + byte % 16) = ((const "
                  "{0}*){2})[((i * {3} + g * {4} + j) * 4 + h * 2) / 2];",
                  pair, chunks, from, s.column_fragments(), fragments));
  close();
  add("__syncwarp();");
  open(fmt::format("EACH (int q = 0; q < {}; ++q)", (16 * chunks + 31) / 32));
  add(fmt::format("const int e = q * 32 + (t & 31), line = e / {0}, chunk = e % {0};", chunks));
  add(fmt::format("const int row = {} + line, column = {} + g * {} + chunk * {};", s.first_row("i"), s.first_column(),
                  width, per));
  std::string guard = chunks == 1 ? "e < 16" : "";
  const auto also = [&](const std::string& text) { guard += (guard.empty() ? "" : " && ") + text; };
  if (rows != kernel::no_value) also(fmt::format("row < {}", at(rows)));
  add(fmt::format("const u8* const chunk_at = own + swizzled<{}>(line, chunk);", chunks));
  add(fmt::format("{}* const to = {} + {} + row * {}ll + column;", element, stored_buffer(inst.ref), at(offset),
                  inst.strides[0]));
  if (columns == kernel::no_value || divisor(columns) % per == 0) {
    if (columns != kernel::no_value) also(fmt::format("column < {}", at(columns)));
    add(fmt::format("{}*(W16*)to = *(const W16*)chunk_at;", guard.empty() ? "" : fmt::format("if ({}) ", guard)));
  } else {
    add(fmt::format("if ({}{}column + {} <= {}) *(W16*)to = *(const W16*)chunk_at;", guard, guard.empty() ? "" : " && ",
                    per, at(columns)));
    add(fmt::format("else EACH (int k = 0; k < {}; ++k) if ({}{}column + k < {}) to[k] = ((const {}*)chunk_at)[k];",
                    per, guard, guard.empty() ? "" : " && ", at(columns), element));
  }
  close();
  close();
  close();
  return true;
}

/// Returns whether a load fills fragments by two neighbours of a row at a time.
bool Renderer::in_pairs(const Inst& load, const Layout& layout) const {
  const int64_t size = load.type.dtype.size();
  const bool pairs = layout.held == Held::fragments && load.type.rank() == 2 && load.type.dtype != bool_ &&
                     (size == 2 || size == 4) && !is_local(load.ref) && variant_.aligned;
  const Value columns = load.type.rank() == 2 ? load.args[2] : kernel::no_value;
  return pairs && load.strides[1] == 1 && load.strides[0] % 2 == 0 && divisor(load.args[0]) % 2 == 0 &&
         (columns == kernel::no_value || divisor(columns) % 2 == 0) &&
         filling(load.number, load.type.dtype).has_value();
}

/// Renders such a load, from the texts of the address and of the guard of register `r`.
void Renderer::load_pairs(const Inst& load, const std::string& address, const std::string& guard) {
  const Value result = load.results[0];
  const int64_t bytes = 2 * load.type.dtype.size();
  const std::string to = fresh(result) + " + r", from = buffer(load.ref);
  declare(result);
  open(fmt::format("EACH (int r = 0; r < {}; r += 2)", layout_of(result).registers()));
  if (guard.empty()) {
    add(words(to, fmt::format("{} + {}", from, address), bytes, reader_of_words(load, layout_of(result))));
  } else {
    add(fmt::format("const bool there = {};", guard));
    add(words_if(to, from, address, *filling(load.number, load.type.dtype), bytes,
                 reader_of_words(load, layout_of(result))));
  }
  close();
}

/// Renders the store of a tile of fragments by TMA: a warpgroup writes boxes of 64 rows of 128 bytes to shared memory,
/// and goes on while they are copied from there. False: it is stored otherwise.
bool Renderer::store_boxes(const Inst& inst) {
  const auto found = box_stores_.find(&inst);
  if (found == box_stores_.end()) return false;
  const BoxStore& store = found->second;
  const Layout s = layout_of(inst.args[0]);
  const int64_t size = dtype_of(inst.ref).size(), across = store.panel * 16 / size, down = s.row_fragments();
  const int together = spaces_of_store();
  const bool at_once = together > 0;
  const std::string from = in_array(inst.args[0], memory_type(inst.ref), s.registers());
  const std::string each_box =
      fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int g = 0; g < {}; ++g)", down, s.columns / across);
  const auto wait = [&](int left) { add(fmt::format("if ((t & 127) == 0) wait_stores<{}>();", left)); };
  open("");
  add(fmt::format("const i64 first = {};", at(inst.args[1])));
  add(fmt::format("const int {};", first_of(store.box, maps_[static_cast<size_t>(store.map)].pitch)));
  add(fmt::format("u8* const spaces = stages + {} + ({} >> 7) * {};", box_store_offset_,
                  sets_ > 1 ? "(int)threadIdx.x" : "t", box_spaces_ * BoxStore::bytes));
  const std::string box = fmt::format("(i * {} + g)", s.columns / across);
  if (at_once) wait(box_spaces_ / together - 1), add("meet_warpgroup();");
  open(each_box);
  if (!at_once) wait(box_spaces_ - 1), add("meet_warpgroup();");
  write_box(inst, from, across, at_once ? "(space + " + box + ")" : "space");
  if (!at_once) add("fence_for_wgmma();"), add("meet_warpgroup();");
  else close(), add("fence_for_wgmma();"), add("meet_warpgroup();"), open(each_box);
  add(fmt::format(
      "if ((t & 127) == 0) store_box(map{}, shared_address(spaces) + {} * {}, column + g * {}, line + (i * {} "
      "+ (t >> 7)) * 64){};",
      store.map, at_once ? "(space + " + box + ")" : "space", BoxStore::bytes, across, warpgroups_,
      at_once ? "" : ", commit_stores()"));
  const auto next = [&](int count) {
    add(fmt::format("space = space >= {} ? 0 : space + {};", (box_spaces_ / count - 1) * count, count));
  };
  if (!at_once) next(1);
  close();
  if (at_once) add("if ((t & 127) == 0) commit_stores();"), next(together);
  close();
  return true;
}

/// Renders the writes of a box to its space: row block i of a warpgroup, columns g.
void Renderer::write_box(const Inst& inst, const std::string& from, int64_t across, const std::string& space) {
  const Layout s = layout_of(inst.args[0]);
  const int64_t size = dtype_of(inst.ref).size();
  open(fmt::format("EACH (int j = 0; j < {}; ++j) EACH (int h = 0; h < 2; ++h)", across / 8));
  add(fmt::format("const int byte = (j * 8 + (t & 3) * 2) * {};", size));
  add(fmt::format(
      "*(W{0}*)(spaces + {5} * {1} + swizzled<8>((t >> 5 & 3) * 16 + (t >> 2 & 7) + h * 8, byte / 16) + byte "
      "% 16) = ((const W{0}*){2})[((i * {3} + g * {4} + j) * 4 + h * 2) / 2];",
      size * 2, BoxStore::bytes, from, s.column_fragments(), across / 8, space));
  close();
}

/// Waits until TMA has read what programs have stored.
void Renderer::finish_stores() {
  if (!box_stores_.empty()) add("if ((t & 127) == 0) wait_stores<0>();");
}

}  // namespace weft::target::cuda
