// float16, bfloat16 and the 8-bit floats compute in float32: an operator on them becomes casts, the operator in float32
// and a cast back, which rounds to nearest even after each operation. Data movement, select, loads and stores keep the
// storage type. Conversions between a low type and anything but float32 go through float32 as well, so that a target
// needs only those two casts of each.
#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

bool is_low(Dtype t) { return is_low_float(t); }

}  // namespace

bool is_low_precision(const Inst& inst, const std::vector<Type>& types) {
  auto low_argument = [&](size_t k) { return is_low(types.at(static_cast<size_t>(inst.args.at(k))).dtype); };
  switch (inst.op) {
    case Op::scalar: return inst.scalar_op != ScalarOp::select && low_argument(0);
    case Op::reduce:
    case Op::scan: return inst.blocks.empty() && low_argument(0);  // a block's operators are rewritten in it
    case Op::dot: return low_argument(2);                          // products of narrower operands are exact
    case Op::cast: {
      const Dtype from = types.at(static_cast<size_t>(inst.args.at(0))).dtype, to = inst.type.dtype;
      return (is_low(from) && to != float32) || (is_low(to) && from != float32);
    }
    default: return false;
  }
}

Inst widen(Emitter& emitter, Inst inst) {
  for (Value& v : inst.args)
    if (is_low(emitter.type(v).dtype) || (inst.op == Op::cast && is_low(inst.type.dtype))) v = emitter.cast(v, float32);
  if (is_low(inst.type.dtype)) inst.type.dtype = float32;
  return inst;
}

}  // namespace weft::kernel::expansion
