#include "kernel/expand_precision.h"

#include <algorithm>

namespace weft::kernel::expansion {
namespace {

bool keeps_relative_error(const Inst& inst) {
  switch (inst.op) {
    case Op::broadcast:
    case Op::reshape:
    case Op::transpose: return true;
    case Op::scalar: break;
    default: return false;
  }
  switch (inst.scalar_op) {
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::recip:
    case ScalarOp::square:
    case ScalarOp::select: return true;
    default: return false;
  }
}

bool adds(const Inst& inst) {
  if (inst.op == Op::reduce) return inst.reducer == Reducer::sum;
  return inst.op == Op::scalar && (inst.scalar_op == ScalarOp::add || inst.scalar_op == ScalarOp::sub || inst.scalar_op == ScalarOp::fma);
}

/// From users to what they use: every instruction stands behind those of its arguments.
class Walk {
 public:
  explicit Walk(const Kernel& kernel) : kernel_(kernel), seen_(kernel.types.size(), Precision::bits8) {}

  std::vector<Precision> run() {
    block(kernel_.body);
    return std::move(seen_);
  }

 private:
  void block(const Block& b) {
    for (auto inst = b.insts.rbegin(); inst != b.insts.rend(); ++inst) {
      for (const Block& inner : inst->blocks) block(inner);
      const Precision wanted = of_arguments(*inst);
      for (Value v : inst->args)
        if (v != no_value) seen_[static_cast<size_t>(v)] = std::max(seen_[static_cast<size_t>(v)], wanted);
    }
  }

  Precision of_arguments(const Inst& inst) const {
    if (inst.op == Op::cast && kernel_.types[static_cast<size_t>(inst.args[0])].dtype == float32) return precision_of(inst.type.dtype);
    if (inst.results.size() != 1 || inst.type.dtype != float32) return Precision::bits24;
    const Precision seen = seen_[static_cast<size_t>(inst.results[0])];
    return keeps_relative_error(inst) ? seen : adds(inst) ? std::max(seen, Precision::bits20) : Precision::bits24;
  }

  const Kernel& kernel_;
  std::vector<Precision> seen_;
};

}  // namespace

Precision precision_of(Dtype t) { return t == bfloat16 ? Precision::bits8 : t == float16 ? Precision::bits11 : Precision::bits24; }

std::vector<Precision> precisions(const Kernel& kernel) { return Walk(kernel).run(); }

}  // namespace weft::kernel::expansion
