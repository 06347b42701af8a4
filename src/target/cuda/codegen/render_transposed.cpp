// Renders kernels that only load tiles, transpose some of them, compute element by element and store. Each thread holds
// a register tile: a square as wide as the words that it reads and writes. A tile to be transposed is loaded along its
// own rows, stored to shared memory in whole words, and read back square by square; threads transpose the squares in
// registers. Words are swizzled instead of padded, so that those of eight rows lie in different banks.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;

namespace {

constexpr int64_t most_register_tile_threads = 512;
constexpr int most_wide_tiles = 3;  // of four-byte elements: a square has sixteen of them

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

/// Sets tile_side_, transposed_ and transposed_tile_ if the kernel has this form.
void Renderer::find_register_tiles() {
  if (general_ || !transposes_ || reduces_ || !variant_.aligned ||
      (narrowest_ == 2 ? loads_ > 1 : narrowest_ != 4 || loads_ > most_wide_tiles))
    return;
  std::vector<int64_t> tile;
  std::set<Value> transposed, others;
  for (const Inst& inst : kernel_.body.insts) {
    if (inst.op == Op::permute) transposed.insert(inst.args[0]), tile = inst.type.dims;
    else others.insert(inst.args.begin(), inst.args.end());
  }
  if (tile.empty()) return;
  const std::vector<int64_t> across(tile.rbegin(), tile.rend());
  for (const Inst& inst : kernel_.body.insts) {
    const bool plain = inst.op == Op::constant || inst.op == Op::program_id || inst.op == Op::symbol ||
                       inst.op == Op::scalar || inst.op == Op::cast || inst.op == Op::bitcast || inst.op == Op::load ||
                       inst.op == Op::store || inst.op == Op::permute ||
                       (inst.op == Op::broadcast && type(inst.args[0]).rank() != 1) || inst.op == Op::yield;
    if (!plain) return;
    for (Value v : inst.results) {
      const bool is_transposed = transposed.contains(v);
      if (is_transposed && (inst.op != Op::load || others.contains(v) || type(v).dtype == bool_)) return;
      if (type(v).rank() > 0 && type(v).dims != (is_transposed ? across : tile)) return;
    }
  }
  const int64_t side = vec_, register_tiles = tile[0] * tile[1] / (side * side);
  if (tile[0] % side != 0 || tile[1] % side != 0 || !is_power_of_two(tile[0] / side) ||
      !is_power_of_two(tile[1] / side) || register_tiles % 32 != 0 || register_tiles > most_register_tile_threads)
    return;
  tile_side_ = vec_;
  transposed_ = transposed;
  transposed_tile_ = tile;
}

/// Renders the position of the thread's square, in squares. Such a kernel mostly computes addresses; with operands
/// known not to be negative, divisions become shifts.
std::string Renderer::register_tile_origin() const {
  return fmt::format(
      "  __builtin_assume(t >= 0 && t < {0}), __builtin_assume(program >= 0);\n  const int line = t / {1}, place = t % "
      "{1};\n",
      threads_, transposed_tile_[1] / tile_side_);
}

/// Returns the text of an element's position: its row and its column.
std::vector<std::string> Renderer::register_tile_position(const std::string& r) const {
  return {fmt::format("(line * {0} + {1} / {0})", tile_side_, r),
          fmt::format("(place * {0} + {1} % {0})", tile_side_, r)};
}

void Renderer::transpose_register_tiles(const Inst& inst) {
  const Value from = inst.args[0], result = inst.results[0];
  const Layout given = layout_of(from);
  const int64_t chunks = transposed_tile_[0] / tile_side_,
                words = tile_side_ * static_cast<int64_t>(inst.type.dtype.size()) / 16;
  const std::string space = exchange(inst.type.dtype, inst.type.size());
  // The swizzle of a chunk's position depends on the row of squares that its line belongs to.
  const auto position = [&](const std::string& line, const std::string& chunk) {
    return fmt::format("((W16*)({} + (({}) * {} + (({}) ^ ({}) / {} % {})) * {}))", space, line, chunks, chunk, line,
                       tile_side_, std::min<int64_t>(chunks, 8), tile_side_);
  };
  sync();
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", given.registers() / given.vec));
  add(fmt::format("const int chunk = c * {} + t;", threads_));
  add(fmt::format("EACH (int k = 0; k < {}; ++k) {}[k] = ((const W16*)({} + c * {}))[k];", words,
                  position(fmt::format("chunk / {}", chunks), fmt::format("chunk % {}", chunks)),
                  names_[static_cast<size_t>(from)], given.vec));
  close();
  sync();
  declare(result);
  open("");
  add(fmt::format("alignas(16) {} square[{}];", type_name(inst.type.dtype), tile_side_ * tile_side_));
  add(fmt::format("EACH (int c = 0; c < {}; ++c) EACH (int k = 0; k < {}; ++k) ((W16*)(square + c * {}))[k] = {}[k];",
                  tile_side_, words, tile_side_, position(fmt::format("place * {} + c", tile_side_), "line")));
  add(fmt::format("turn<{}>(square, {});", tile_side_, fresh(result)));
  close();
}

}  // namespace weft::target::cuda
