// Copies of the explicit level that TMA makes: a tile whose lines are those of a swizzled buffer is one box, which one
// thread asks for; the barrier that waits for it counts its bytes. What lies outside of the array is filled with zeros.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;

/// Returns the tile of a copy as one box; nothing where it is none: its lines do not fill the buffer's, TMA knows no
/// such elements, or a program may write what it reads.
std::optional<BoxedTile> Renderer::boxed_copy(const Inst& i) const {
  if (i.op != Op::copy_async || i.right < 0 || i.type.rank() != 2) return std::nullopt;
  const int64_t line = swizzle_of(i.ref), size = i.type.dtype.size(), across = i.type.dims[1];
  const bool known = i.type.dtype == float32 || i.type.dtype == bfloat16 || i.type.dtype == float16 || size == 1;
  const bool lines = line > 0 && across * size == line && i.strides[0] == across && i.strides[1] == 1;
  const bool pitched = i.strides[3] == 1 && i.strides[2] * size % 16 == 0;
  constexpr int64_t swizzled_lines = 8;  // after which a swizzle begins anew
  const bool begins = lines && divisor(i.args[0]) * size % (swizzled_lines * line) == 0;
  const bool fits = known && lines && pitched && begins && filling(i.number, i.type.dtype) == 0u &&
                    !kernel_.params[static_cast<size_t>(i.left)].written;
  if (!fits) return std::nullopt;
  return BoxedTile{i.left, i.args[1], i.args[2], i.args[3], i.strides[2], i.type.dims[0], across, across};
}

/// Finds the copies that TMA makes, and gives them their matrices.
void Renderer::find_box_copies(const Uses& uses) {
  const auto waited_for = [](const Uses::Position& x) { return x.inst->op == Op::copy_async && x.inst->right >= 0; };
  if (!features_.clusters || !variant_.aligned || variant_.segments > 1 ||
      std::none_of(uses.order.begin(), uses.order.end(), waited_for))
    return;
  find_divisors(kernel_.body);
  for (const Uses::Position& position : uses.order) {
    const Inst& i = *position.inst;
    const std::optional<BoxedTile> tile = boxed_copy(i);
    std::string why;
    const std::optional<Box> box = tile ? box_of(uses, *tile, why) : std::nullopt;
    if (!box) continue;
    const int map = number_of({i.left, i.type.dtype, tile->pitch, tile->lines, tile->across, box->lines, box->columns});
    box_copies_.emplace(&i, BoxCopy{*box, map});
  }
}

/// Renders such a copy.
void Renderer::copy_box(const Inst& inst, const BoxCopy& copy) {
  const std::string at_barrier = barrier(inst.right, inst.args.back());
  sync();
  open("if (t == 0)");
  add(fmt::format("const i64 first = {};", at(inst.args[1])));
  add(fmt::format("const int {};", first_of(copy.box, maps_[static_cast<size_t>(copy.map)].pitch)));
  add(fmt::format("expect_bytes({}, {});", at_barrier, inst.type.size() * inst.type.dtype.size()));
  add(fmt::format("copy_box(shared_address({} + {}), map{}, column, line, {});", buffer(inst.ref), at(inst.args[0]),
                  copy.map, at_barrier));
  close();
}

}  // namespace weft::target::cuda
