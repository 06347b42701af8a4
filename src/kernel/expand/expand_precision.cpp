#include "kernel/expand/expand_precision.h"

#include <algorithm>

namespace weft::kernel::expansion {
namespace {

bool keeps_relative_error(const Inst& inst) {
  switch (inst.op) {
    case Op::broadcast:
    case Op::reshape:
    case Op::permute: return true;
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
    case ScalarOp::tanh:  // |x tanh'(x)| <= |tanh(x)|
    case ScalarOp::select: return true;
    default: return false;
  }
}

bool adds(const Inst& inst) {
  if (inst.op == Op::reduce) return inst.blocks.empty() && info(inst.reducer).kind == ReducerKind::sum;
  return inst.op == Op::scalar &&
         (inst.scalar_op == ScalarOp::add || inst.scalar_op == ScalarOp::sub || inst.scalar_op == ScalarOp::fma);
}

/// Walks from readers to what they read: instructions follow those of their arguments, so the walk goes backwards.
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
      if (inst->op == Op::loop) {
        loop(*inst);
        continue;
      }
      if (inst->op == Op::when) {
        when(*inst);
        continue;
      }
      if (inst->op == Op::yield) continue;  // of a block: see the instruction that it belongs to
      for (const Block& inner : inst->blocks) whole(inner);
      const Precision wanted = of_arguments(*inst);
      for (Value v : inst->args)
        if (v != no_value) seen_[static_cast<size_t>(v)] = std::max(seen_[static_cast<size_t>(v)], wanted);
    }
  }

  /// All bits of what the block of another instruction yields are seen.
  void whole(const Block& b) {
    for (const Value v : b.insts.back().args) raise(v, Precision::bits24);
    block(b);
  }

  void raise(Value v, Precision wanted) {
    seen_[static_cast<size_t>(v)] = std::max(seen_[static_cast<size_t>(v)], wanted);
  }

  /// A reader of a condition's value sees what its block yields, or the alternative.
  void when(const Inst& inst) {
    const Block& body = inst.blocks[0];
    for (size_t k = 0; k < inst.results.size(); ++k)
      for (Value v : {inst.args[k + 1], body.insts.back().args[k]})
        raise(v, seen_[static_cast<size_t>(inst.results[k])]);
    raise(inst.args[0], Precision::bits24);
    block(body);
  }

  /// A carried value is seen by its readers after the loop and by the next iteration. If that iteration shows more bits
  /// than assumed, the body is walked again.
  void loop(const Inst& inst) {
    const Block& body = inst.blocks[0];
    const std::vector<Value>& next = body.insts.back().args;
    for (bool again = true; again;) {
      std::vector<Precision> before;
      for (size_t k = 0; k < next.size(); ++k) {
        before.push_back(
            std::max(seen_[static_cast<size_t>(inst.results[k])], seen_[static_cast<size_t>(body.arguments[k + 1])]));
        raise(next[k], before[k]);
      }
      block(body);
      again = false;
      for (size_t k = 0; k < next.size(); ++k)
        again = again || seen_[static_cast<size_t>(body.arguments[k + 1])] > before[k];
    }
    for (size_t k = 0; k < inst.args.size(); ++k)
      raise(inst.args[k], k < 3 ? Precision::bits24
                                : std::max(seen_[static_cast<size_t>(inst.results[k - 3])],
                                           seen_[static_cast<size_t>(body.arguments[k - 2])]));
  }

  Precision of_arguments(const Inst& inst) const {
    if (inst.op == Op::cast && kernel_.types[static_cast<size_t>(inst.args[0])].dtype == float32)
      return precision_of(inst.type.dtype);
    if (inst.results.size() != 1 || inst.type.dtype != float32) return Precision::bits24;
    const Precision seen = seen_[static_cast<size_t>(inst.results[0])];
    return keeps_relative_error(inst) ? seen : adds(inst) ? std::max(seen, Precision::bits20) : Precision::bits24;
  }

  const Kernel& kernel_;
  std::vector<Precision> seen_;
};

/// Finds values that are differences and multiples of 16-bit numbers. An exponential of such a value is at least as
/// uncertain as the rounding of its argument.
class Rounded {
 public:
  explicit Rounded(const Kernel& kernel)
      : kernel_(kernel), rounded_(kernel.types.size(), false), fixed_(kernel.types.size(), false) {}

  std::vector<bool> run() {
    block(kernel_.body);
    return std::move(rounded_);
  }

 private:
  bool is(const std::vector<bool>& set, Value v) const { return set[static_cast<size_t>(v)]; }

  void block(const Block& b) {
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::loop) loop(inst);
      else if (inst.op == Op::when) when(inst);
      else if (inst.results.size() == 1) {
        fixed_[static_cast<size_t>(inst.results[0])] =
            inst.op == Op::constant || (inst.op == Op::broadcast && is(fixed_, inst.args[0]));
        rounded_[static_cast<size_t>(inst.results[0])] = of(inst);
      }
    }
  }

  void sides(const Inst& inst) {
    for (const Block& b : inst.blocks) block(b);
  }

  void when(const Inst& inst) {
    block(inst.blocks[0]);
    const std::vector<Value>& yielded = inst.blocks[0].insts.back().args;
    for (size_t k = 0; k < yielded.size(); ++k)
      rounded_[static_cast<size_t>(inst.results[k])] = is(rounded_, inst.args[k + 1]) && is(rounded_, yielded[k]);
  }

  /// A carried value is rounded if it is so initially and after each iteration: this is assumed and then verified.
  void loop(const Inst& inst) {
    const Block& body = inst.blocks[0];
    const std::vector<Value>& next = body.insts.back().args;
    std::vector<bool> carried;
    for (size_t k = 0; k < next.size(); ++k)
      carried.push_back(is(rounded_, inst.args[k + 3]) || is(fixed_, inst.args[k + 3]));
    for (bool again = true; again;) {
      for (size_t k = 0; k < next.size(); ++k) rounded_[static_cast<size_t>(body.arguments[k + 1])] = carried[k];
      block(body);
      again = false;
      for (size_t k = 0; k < next.size(); ++k)
        if (carried[k] && !is(rounded_, next[k])) carried[k] = false, again = true;
    }
    for (size_t k = 0; k < next.size(); ++k) rounded_[static_cast<size_t>(inst.results[k])] = carried[k];
  }

  bool of(const Inst& inst) const {
    switch (inst.op) {
      case Op::cast: {
        const Dtype from = kernel_.types[static_cast<size_t>(inst.args[0])].dtype;
        return from == bfloat16 || from == float16;
      }
      case Op::broadcast:
      case Op::reshape: return is(rounded_, inst.args[0]);
      case Op::reduce: return is(rounded_, inst.args[0]) && info(inst.reducer).kind == ReducerKind::extreme;
      case Op::scalar: break;
      default: return false;
    }
    // A sum counts only if all its terms are such numbers: a constant may be too small to tell. For a choice, one may
    // be a constant.
    const auto all = [&](size_t first, bool constants) {
      bool any = false, each = true;
      for (size_t k = first; k < inst.args.size(); ++k) {
        any = any || is(rounded_, inst.args[k]);
        each = each && (is(rounded_, inst.args[k]) || (constants && is(fixed_, inst.args[k])));
      }
      return any && each;
    };
    switch (inst.scalar_op) {
      case ScalarOp::add:
      case ScalarOp::sub: return all(0, false);
      case ScalarOp::neg:
      case ScalarOp::abs:
      case ScalarOp::mul:
      case ScalarOp::max:
      case ScalarOp::min: return all(0, true);
      case ScalarOp::select: return all(1, true);
      default: return false;
    }
  }

  const Kernel& kernel_;
  std::vector<bool> rounded_, fixed_;
};

void lower_exponentials(const Kernel& kernel, const Block& b, const std::vector<bool>& rounded,
                        std::vector<Precision>& seen) {
  for (const Inst& inst : b.insts) {
    for (const Block& inner : inst.blocks) lower_exponentials(kernel, inner, rounded, seen);
    if (inst.op == Op::scalar && inst.scalar_op == ScalarOp::exp && rounded[static_cast<size_t>(inst.args[0])])
      seen[static_cast<size_t>(inst.results[0])] =
          std::min(seen[static_cast<size_t>(inst.results[0])], Precision::bits20);
  }
}

}  // namespace

Precision precision_of(Dtype t) {
  return t == bfloat16 ? Precision::bits8 : t == float16 ? Precision::bits11 : Precision::bits24;
}

std::vector<Precision> precisions(const Kernel& kernel) {
  std::vector<Precision> seen = Walk(kernel).run();
  lower_exponentials(kernel, kernel.body, Rounded(kernel).run(), seen);
  return seen;
}

}  // namespace weft::kernel::expansion
