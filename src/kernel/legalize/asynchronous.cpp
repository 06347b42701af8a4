// Asynchronous work on CPUs: a copy is done where it begins, so that nobody waits for it. Barriers order roles, which
// the target runs as fibers; without roles nothing happens at once, and they order nothing.
#include "kernel/legalize/legalizer.h"

#include <utility>

namespace weft::kernel {

void Legalizer::asynchronous(const Inst& inst) {
  switch (inst.op) {
    case Op::copy_async: return copy(inst);
    case Op::arrive: return has_roles_ ? b_.arrive(inst.ref, scalar(inst.args[0])) : void();
    case Op::await: return has_roles_ ? b_.await(inst.ref, scalar(inst.args[0]), scalar(inst.args[1])) : void();
    case Op::roles: {
      std::vector<Builder::Role> all;
      for (size_t k = 0; k < inst.blocks.size(); ++k)
        all.push_back(
            {inst.axes[k], inst.strides[k], [this, &body = inst.blocks[k]] { in_frame([&] { block(body); }); }});
      return b_.roles(all);
    }
    default: return;
  }
}

void Legalizer::wait_until(const Inst& inst) {
  const Block& holds = inst.blocks[0];
  held(inst.results[0]).scalar = b_.wait_until(
      inst.ref, scalar(inst.args[0]),
      [&](Value found) {
        held(holds.arguments[0]).scalar = found;
        in_frame([&] { block(holds); });
        return scalar(holds.insts.back().args[0]);
      },
      inst.ordering);
}

/// Loads a tile of a neighbour's buffer into scratch, or stores one, chunk by chunk.
void Legalizer::reach(const Inst& inst) {
  const size_t first = inst.op == Op::store_neighbour ? 1 : 0;
  const Type& t = first == 1 ? type(inst.args[0]) : inst.type;
  const Value rank = scalar(inst.args[first]), offset = scalar(inst.args[first + 1]);
  if (t.rank() == 0) {
    if (first == 1) return b_.store_neighbour(inst.ref, scalar(inst.args[0]), rank, offset, {});
    held(inst.results[0]).scalar = b_.load_neighbour(inst.ref, rank, offset, {}, {});
    return;
  }
  const View near{.ref = inst.ref, .dtype = t.dtype, .offset = offset, .dims = t.dims, .strides = inst.strides};
  const View to = first == 1 ? View{} : scratch(t.dtype, t.dims);
  each_chunk(t.dims, {}, [&](const Chunk& at) {
    const std::vector<int64_t> stride{near.strides.back()};
    if (first == 1) b_.store_neighbour(inst.ref, value(inst.args[0], at), rank, address(near, at), stride);
    else write(to, at, b_.load_neighbour(inst.ref, rank, address(near, at), {at.width}, stride));
  });
  if (first == 0) held(inst.results[0]).view = to;
}

void Legalizer::copy(const Inst& inst) {
  const auto rank = static_cast<std::ptrdiff_t>(inst.type.rank());
  const auto middle = inst.strides.begin() + rank;
  View to{.ref = inst.ref, .dtype = inst.type.dtype, .offset = scalar(inst.args[0]), .dims = inst.type.dims},
      from{.ref = inst.left, .dtype = inst.type.dtype, .offset = scalar(inst.args[1]), .dims = inst.type.dims};
  to.strides = {inst.strides.begin(), middle}, from.strides = {middle, inst.strides.end()};
  to.limits.assign(static_cast<size_t>(rank), no_value);
  for (std::ptrdiff_t k = 0; k < rank; ++k) from.limits.push_back(scalar(inst.args[static_cast<size_t>(2 + k)]));
  from.other = inst.number;
  if (rank == 0) return b_.store(to.ref, b_.load(from.ref, from.offset, {}, {}), to.offset, {});
  each_chunk(to.dims, to.limits, [&](const Chunk& at) { write(to, at, read(from, at)); });
}

}  // namespace weft::kernel
