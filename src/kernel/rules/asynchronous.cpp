// The rules for asynchronous copies, barriers and roles.
#include <algorithm>

#include "kernel/rules/checker.h"

namespace weft::kernel {

bool is_barrier(const Kernel& kernel, Ref ref) {
  return is_local(kernel, ref) && kernel.locals[static_cast<size_t>(ref) - kernel.params.size()].arrivals > 0;
}

void Rules::copy() {
  const auto rank = static_cast<size_t>(inst.type.rank());
  const bool barrier = inst.right >= 0;
  if (!require(inst.args.size() == 2 + rank + (barrier ? 1 : 0), "the number of arguments is wrong")) return;
  type(inst.type);
  number();
  require(is_local(kernel, inst.ref), "a copy goes to a local buffer");
  require(is_ref(kernel, inst.left) && !is_local(kernel, inst.left), "a copy comes from a parameter");
  require(!barrier || is_barrier(kernel, inst.right), "a copy's barrier is no barrier");
  if (!memory(inst.type.dtype)) return;
  require(ref_dtype(kernel, inst.left) == inst.type.dtype, "the dtype differs from the parameter's");
  require(inst.strides.size() == 2 * rank, "two strides for each axis are wanted");
  for (size_t k = 0; k < inst.args.size(); ++k) {
    const bool limit = k >= 2 && k < 2 + rank;
    if (!require(limit || !absent(k), "an argument is missing")) return;
    require(absent(k) || int64_scalar(k), "offsets, limits and places are int64 scalars");
  }
}

void Rules::asynchronous() {
  const bool awaits = inst.op == Op::await;
  switch (inst.op) {
    case Op::copy_async: return copy();
    case Op::arrive:
    case Op::await:
      if (!args(awaits ? 2 : 1)) return;
      require(is_barrier(kernel, inst.ref), "the reference names no barrier");
      for (size_t k = 0; k < inst.args.size(); ++k) require(int64_scalar(k), "places and phases are int64 scalars");
      return;
    case Op::wait_copies:
      args(0);
      require(inst.number.integral && inst.number.i >= 0, "the number of groups is not negative");
      return;
    case Op::roles: {
      args(0);
      int64_t warps = 0;
      for (const int64_t n : inst.axes) require(n >= 1 && n <= 32, "a role has 1 to 32 warps"), warps += n;
      require(warps <= 32, "the roles have 32 warps at most together");
      require(inst.blocks.size() <= 15, "there are 15 roles at most");
      require(inst.strides.size() == inst.axes.size(), "a number of registers for each role is wanted");
      for (const int64_t n : inst.strides)
        require(n == 0 || (n >= 24 && n <= 256 && n % 8 == 0), "registers are a multiple of 8 from 24 to 256");
      require(std::all_of(inst.blocks.begin(), inst.blocks.end(), [](const Block& b) { return b.arguments.empty(); }),
              "roles take no arguments");
      return;
    }
    default: args(0); return;
  }
}

}  // namespace weft::kernel
