// The rules for instructions that move the elements of tiles, and for those that touch memory.
#include <cstdlib>

#include "kernel/rules.h"
#include "kernel/rules/checker.h"

namespace weft::kernel {

void Rules::broadcast() {
  if (!args(1)) return;
  const auto &from = arg(0).dims, &to = inst.type.dims;
  bool ok = from.size() <= to.size() && !to.empty();
  for (size_t k = 1; ok && k <= from.size(); ++k) {
    const int64_t extent = from[from.size() - k];
    ok = extent == 1 || extent == to[to.size() - k];
  }
  require(ok, "the shape does not broadcast: from the last axis on, extents are equal or 1");
  require(inst.type.dtype == arg(0).dtype, "the dtype changes");
}

void Rules::reshape() {
  if (!args(1)) return;
  require(arg(0).size() == inst.type.size(), "the number of elements changes");
  require(inst.type.dtype == arg(0).dtype, "the dtype changes");
}

void Rules::permute() {
  if (!args(1)) return;
  const Type& from = arg(0);
  if (!require(inst.axes.size() == from.dims.size() && inst.type.rank() == from.rank(),
               "an axis of the argument for each axis of the result is wanted"))
    return;
  std::vector<bool> seen(inst.axes.size(), false);
  for (size_t k = 0; k < inst.axes.size(); ++k) {
    const int64_t axis = inst.axes[k];
    if (!require(axis >= 0 && axis < from.rank() && !seen[static_cast<size_t>(axis)], "the axes are no permutation"))
      return;
    seen[static_cast<size_t>(axis)] = true;
    require(inst.type.dims[k] == from.dims[static_cast<size_t>(axis)], "the result is not the permuted argument");
  }
  require(inst.type.dtype == from.dtype, "the dtype changes");
}

void Rules::part() {
  if (!args(1)) return;
  const Type& from = arg(0);
  const size_t rank = from.dims.size();
  if (!require(inst.axes.size() == rank && inst.strides.size() == rank && inst.type.dims.size() == rank,
               "a beginning and a step for each axis are wanted"))
    return;
  for (size_t k = 0; k < rank; ++k) {
    const int64_t last = inst.axes[k] + (inst.type.dims[k] - 1) * inst.strides[k];
    require(inst.axes[k] >= 0 && inst.axes[k] < from.dims[k] && last >= 0 && last < from.dims[k],
            "the slice reaches outside the tile");
  }
  require(inst.type.dtype == from.dtype, "the dtype changes");
}

void Rules::cat() {
  if (!require(!inst.args.empty(), "there is nothing to join") || !args(inst.args.size())) return;
  if (!require(inst.axis >= 0 && inst.axis < inst.type.rank(), "there is no such axis")) return;
  const auto axis = static_cast<size_t>(inst.axis);
  Type sum = arg(0);
  if (!require(sum.rank() == inst.type.rank(), "the tiles have one rank")) return;
  sum.dims[axis] = 0;
  for (size_t k = 0; k < inst.args.size() && wrong.empty(); ++k) {
    Type part = arg(k);
    if (!require(part.rank() == sum.rank(), "the tiles have one rank")) return;
    const int64_t extent = part.dims[axis];
    part.dims[axis] = sum.dims[axis];
    require(part == sum, "the tiles differ along another axis, or in dtype");
    sum.dims[axis] += extent;
  }
  require(sum == inst.type, "the result is not the joined arguments");
}

void Rules::take() {
  if (!args(2)) return;
  const Type &from = arg(0), &index = arg(1);
  if (!require(index.dtype == int64 && index.rank() == from.rank(), "the index is an int64 tile of the tile's rank"))
    return;
  if (!require(inst.axis >= 0 && inst.axis < from.rank(), "there is no such axis")) return;
  for (int k = 0; k < from.rank(); ++k)
    require(k == inst.axis || from.dims[static_cast<size_t>(k)] == index.dims[static_cast<size_t>(k)],
            "tile and index differ along another axis");
  require(inst.type == Type{from.dtype, index.dims}, "the result has not the index's shape and the tile's dtype");
}

void Rules::sort() {
  if (!require(!inst.args.empty(), "there is nothing to sort") || !args(inst.args.size())) return;
  if (!require(inst.results.size() == inst.args.size(), "a result for each tile is wanted")) return;
  require(inst.axis >= 0 && inst.axis < arg(0).rank(), "there is no such axis");
  for (size_t k = 0; k < inst.args.size() && wrong.empty(); ++k) {
    require(arg(k).dims == arg(0).dims, "the tiles have one shape");
    require(kernel.types[static_cast<size_t>(inst.results[k])] == arg(k), "the result's type is not the argument's");
  }
}

/// Instructions that move the elements of a tile, or change their dtype.
void Rules::movement() {
  switch (inst.op) {
    case Op::cast:
      if (args(1)) require(arg(0).dims == inst.type.dims, "the shape changes");
      break;
    case Op::bitcast:
      if (!args(1)) break;
      require(arg(0).dims == inst.type.dims, "the shape changes");
      require(arg(0).dtype.size() == inst.type.dtype.size() && arg(0).dtype != bool_ && inst.type.dtype != bool_,
              "the width changes, or a bool is involved");
      break;
    case Op::broadcast: broadcast(); break;
    case Op::reshape: reshape(); break;
    case Op::permute: permute(); break;
    case Op::slice: part(); break;
    case Op::cat: cat(); break;
    case Op::take: take(); break;
    case Op::sort: sort(); break;
    case Op::histogram:
      if (!args(1)) break;
      require(is_integer(arg(0).dtype), "the index is an integer tile");
      require(inst.type.dtype == int32 && inst.type.rank() == 1, "the result is int32 with one axis");
      break;
    case Op::shift:
      if (!args(2)) break;
      require(arg(0).rank() == 1 && arg(0) == inst.type && arg(1) == inst.type,
              "the arguments and the result are tiles of one type with one axis");
      if (wrong.empty())
        require(inst.axis != 0 && std::abs(inst.axis) < inst.type.dims[0],
                "the shift is by no lane, or by all of them");
      break;
    case Op::exchange:
      if (!args(1)) break;
      require(arg(0).rank() == 1 && arg(0) == inst.type && (inst.type.dims[0] & (inst.type.dims[0] - 1)) == 0,
              "the argument and the result are tiles of one type with one axis, a power of two long");
      if (wrong.empty()) require(inst.axis > 0 && inst.axis < inst.type.dims[0], "there is no lane to exchange with");
      break;
    case Op::extract:
      if (!args(1)) break;
      require(arg(0).rank() == 1 && inst.type == Type{arg(0).dtype, {}},
              "the result is not one lane of a tile with one axis");
      if (wrong.empty()) require(inst.axis >= 0 && inst.axis < arg(0).dims[0], "there is no such lane");
      break;
    default: require(false, "there is no such instruction");
  }
}

// offset and limits of a load or store, whose tile is `tile`
void Rules::slice(const Type& tile) {
  const size_t rank = tile.dims.size(), limits = first_limit(inst.op);
  if (!memory(tile.dtype) || !require(inst.strides.size() == rank, "one stride for each axis is wanted")) return;
  require(int64_scalar(limits - 1), "the offset is an int64 scalar");
  for (size_t k = limits; k < limits + rank; ++k) require(absent(k) || int64_scalar(k), "a limit is an int64 scalar");
}

void Rules::indexed(const Type& tile, size_t index) {
  if (!memory(tile.dtype)) return;
  require(arg(index).dtype == int64 && arg(index).dims == tile.dims, "the index is an int64 tile of the value's shape");
  if (!absent(index + 1))
    require(arg(index + 1).dtype == bool_ && arg(index + 1).dims == tile.dims,
            "the mask is a bool tile of the value's shape");
}

void Rules::atomic() {
  const bool bits =
      inst.scalar_op == ScalarOp::bit_and || inst.scalar_op == ScalarOp::bit_or || inst.scalar_op == ScalarOp::bit_xor;
  const bool numbers =
      inst.scalar_op == ScalarOp::add || inst.scalar_op == ScalarOp::min || inst.scalar_op == ScalarOp::max;
  require(bits || numbers, "an atomic adds, takes an extreme, or combines bits");
  require(bits ? is_integer(inst.type.dtype) : inst.type.dtype != bool_, "the atomic is not defined on this dtype");
}

void Rules::wait() {
  if (!args(1) || !memory(inst.type.dtype)) return;
  require(!is_local(kernel, inst.ref), "a program waits for what others write: the reference names no parameter");
  writable();
  require(int64_scalar(0), "the index is an int64 scalar");
  require(inst.type.rank() == 0 && inst.type.dtype.size() >= 4 && !is_complex(inst.type.dtype),
          "the element is a scalar of 32 or 64 bits");
  const Block& holds = inst.blocks[0];
  const auto is = [&](Value v, const Type& t) {
    return v >= 0 && static_cast<size_t>(v) < kernel.types.size() && kernel.types[static_cast<size_t>(v)] == t;
  };
  require(holds.arguments.size() == 1 && is(holds.arguments[0], inst.type), "the block takes the element");
  require(
      !holds.insts.empty() && holds.insts.back().args.size() == 1 && is(holds.insts.back().args[0], Type{bool_, {}}),
      "the block yields a bool scalar");
}

void Rules::neighbour() {
  const bool stores = inst.op == Op::store_neighbour;
  if (!args(stores ? 3 : 2)) return;
  const Type& tile = stores ? arg(0) : inst.type;
  if (!memory(tile.dtype)) return;
  require(is_local(kernel, inst.ref), "a neighbour has local buffers: the reference names no such one");
  require(inst.strides.size() == tile.dims.size(), "one stride for each axis is wanted");
  for (size_t k = stores ? 1 : 0; k < inst.args.size(); ++k)
    require(int64_scalar(k), "a neighbour's number and the offset are int64 scalars");
}

/// Instructions that touch a parameter or a local buffer.
void Rules::access() {
  switch (inst.op) {
    case Op::load:
      if (!args(1 + inst.type.dims.size(), 1)) break;
      slice(inst.type);
      number();
      break;
    case Op::store:
      if (!require(!inst.args.empty() && !absent(0), "the value is missing") || !args(2 + arg(0).dims.size(), 2)) break;
      slice(arg(0));
      writable();
      for (size_t k = 0; k < inst.strides.size() && wrong.empty(); ++k)
        require(inst.strides[k] != 0 || arg(0).dims[k] == 1, "a stride of 0 stores several lanes to one place");
      break;
    case Op::gather:
      if (!args(2, 1)) break;
      indexed(inst.type, 0);
      number();
      break;
    case Op::scatter:
    case Op::atomic_add:
      if (!args(3, 2)) break;
      indexed(arg(0), 1);
      writable();
      if (inst.op == Op::atomic_add) require(arg(0).dtype != bool_, "bools do not add");
      break;
    case Op::atomic:
    case Op::exchange_memory:
      if (!args(3, 2)) break;
      indexed(arg(0), 1);
      writable();
      require(inst.type == arg(0), "the result's type is not the value's");
      if (inst.op == Op::atomic) atomic();
      break;
    case Op::compare_exchange:
      if (!args(4, 3)) break;
      indexed(arg(1), 2);
      writable();
      require(inst.type == arg(1) && arg(0) == arg(1), "expected, value and result have one type");
      break;
    case Op::wait_until: return wait();
    case Op::prefetch:
      if (!args(1) ||
          !require(is_ref(kernel, inst.ref) && !is_local(kernel, inst.ref), "the reference names no parameter"))
        break;
      require(int64_scalar(0), "the offset is an int64 scalar");
      require(inst.number.integral && inst.number.i > 0, "the number of elements is positive");
      break;
    case Op::alloc:
      if (!args(0) || !require(is_local(kernel, inst.ref), "the reference names no local buffer")) break;
      require(
          inst.number == Number::of_int(kernel.locals[static_cast<size_t>(inst.ref) - kernel.params.size()].elements),
          "the number of elements differs from the local buffer's");
      break;
    default: require(false, "there is no such instruction");
  }
}

}  // namespace weft::kernel
