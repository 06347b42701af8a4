// Walks a kernel block by block and rebuilds it: what is basic is kept as it is, with its arguments renamed; what is
// not is written out in basic operators by the functions of expand_emit.h. A kernel without anything to expand comes
// back unchanged.
#include "kernel/expand/expand.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernel/expand/expand_emit.h"

namespace weft::kernel {
namespace {

using expansion::Expr;

class Expander {
 public:
  Expander(const Kernel& kernel, const Expansion& has)
      : out_(kernel), has_(has), precision_(expansion::precisions(kernel)), emitter_(out_.types, has) {
    for (Value v = 0; v < static_cast<Value>(out_.types.size()); ++v) renamed_.push_back(v);
  }

  Kernel run(const Kernel& kernel) {
    out_.body = block(kernel.body);
    return std::move(out_);
  }

 private:
  Block block(const Block& source) {
    emitter_.open_block();
    for (const Inst& inst : source.insts) visit(inst);
    return {source.arguments, emitter_.close_block()};
  }

  void visit(Inst inst) {
    for (Value& v : inst.args)
      if (v != no_value) v = renamed_[static_cast<size_t>(v)];
    for (Block& b : inst.blocks) b = block(b);
    if (const Value same = identity(inst); same != no_value) {
      renamed_[static_cast<size_t>(inst.results.at(0))] = same;
      return;
    }
    const bool low = expansion::is_low_precision(inst, out_.types);
    if (!low && !to_expand(inst)) {
      emitter_.keep(std::move(inst));
      return;
    }
    const Value old = inst.results.at(0);
    const Dtype dtype = inst.type.dtype;
    if (low) inst = expansion::widen(emitter_, std::move(inst));
    const expansion::Precision precision =
        std::min(precision_[static_cast<size_t>(old)], expansion::precision_of(dtype));
    renamed_[static_cast<size_t>(old)] = emitter_.cast(compute(std::move(inst), precision), dtype);
  }

  /// Returns the other operand of max with -inf or of min with inf (the first step of a reduction), or no_value.
  Value identity(const Inst& inst) const {
    if (inst.op != Op::scalar || (inst.scalar_op != ScalarOp::max && inst.scalar_op != ScalarOp::min) ||
        !is_float(inst.type.dtype))
      return no_value;
    const double neutral = inst.scalar_op == ScalarOp::max ? -std::numeric_limits<double>::infinity()
                                                           : std::numeric_limits<double>::infinity();
    for (size_t k : {0, 1})
      if (const Number* n = emitter_.constant_of(inst.args[k]); n && n->real() == neutral) return inst.args[1 - k];
    return no_value;
  }

  bool to_expand(const Inst& inst) const {
    if (inst.op != Op::scalar || info(inst.scalar_op).basic) return false;
    if (inst.type.dtype != float64) return true;
    switch (inst.scalar_op) {
      // Written in operators that the C library has, or in basic ones.
      case ScalarOp::recip:
      case ScalarOp::rsqrt:
      case ScalarOp::square:
      case ScalarOp::sign:
      case ScalarOp::sigmoid:
      case ScalarOp::erfinv: return true;
      default: break;
    }
    if (!has_.keep_float64)
      throw_internal("expand",
                     std::string(info(inst.scalar_op).name) + " has no expansion in float64, only a library function");
    return false;
  }

  // The value of an instruction whose arguments are widened; its own result, if it is appended as it is, is a new
  // value.
  Value compute(Inst inst, expansion::Precision precision) {
    if (inst.op == Op::cast) return emitter_.cast(inst.args[0], inst.type.dtype);
    if (inst.op == Op::scalar && info(inst.scalar_op).basic) return emitter_.scalar(inst.scalar_op, inst.args);
    if (inst.op == Op::scalar) return expression(inst, precision).value;
    const Value v = static_cast<Value>(out_.types.size());
    out_.types.push_back(inst.type);
    inst.results = {v};
    emitter_.keep(std::move(inst));
    return v;
  }

  Expr expression(const Inst& inst, expansion::Precision precision) {
    auto arg = [&](size_t k) { return Expr{&emitter_, inst.args.at(k)}; };
    const Expr x = arg(0);
    switch (inst.scalar_op) {
      case ScalarOp::recip: return 1.0 / x;
      case ScalarOp::rsqrt:
        if (has_.special_functions && emitter_.type(x.value).dtype == float32)
          return expansion::apply(ScalarOp::rsqrt, {x});
        return 1.0 / expansion::sqrt(x);
      case ScalarOp::square: return x * x;
      case ScalarOp::sign: return sign(x, inst.type.dtype);
      case ScalarOp::exp: return expansion::exp(x, precision);
      case ScalarOp::exp2: return expansion::exp2(x);
      case ScalarOp::expm1: return expansion::expm1(x);
      case ScalarOp::log: return expansion::log(x);
      case ScalarOp::log2: return expansion::log2(x);
      case ScalarOp::log10: return expansion::log10(x);
      case ScalarOp::log1p: return expansion::log1p(x);
      case ScalarOp::sin: return expansion::sin(x);
      case ScalarOp::cos: return expansion::cos(x);
      case ScalarOp::tan: return expansion::tan(x);
      case ScalarOp::arcsin: return expansion::arcsin(x);
      case ScalarOp::arccos: return expansion::arccos(x);
      case ScalarOp::arctan: return expansion::arctan(x);
      case ScalarOp::sinh: return expansion::sinh(x);
      case ScalarOp::cosh: return expansion::cosh(x);
      case ScalarOp::tanh: return expansion::tanh(x);
      case ScalarOp::arcsinh: return expansion::arcsinh(x);
      case ScalarOp::arccosh: return expansion::arccosh(x);
      case ScalarOp::arctanh: return expansion::arctanh(x);
      case ScalarOp::erf: return expansion::erf(x);
      case ScalarOp::erfinv: return inst.type.dtype == float64 ? expansion::erfinv_double(x) : expansion::erfinv(x);
      case ScalarOp::sigmoid: return expansion::sigmoid(x, precision);
      case ScalarOp::pow: return expansion::pow(x, arg(1));
      case ScalarOp::arctan2: return expansion::arctan2(x, arg(1));
      case ScalarOp::logaddexp: return expansion::logaddexp(x, arg(1));
      case ScalarOp::threefry0: return expansion::threefry(x, arg(1), arg(2), arg(3), 0);
      case ScalarOp::threefry1: return expansion::threefry(x, arg(1), arg(2), arg(3), 1);
      case ScalarOp::philox0:
      case ScalarOp::philox1:
      case ScalarOp::philox2:
      case ScalarOp::philox3:
        return expansion::philox({x, arg(1)}, {arg(2), arg(3), arg(4), arg(5)},
                                 static_cast<int>(inst.scalar_op) - static_cast<int>(ScalarOp::philox0));
      default: throw_internal("expand", std::string(info(inst.scalar_op).name) + " has no expansion");
    }
  }

  // 0 for NaN, as the operator is defined.
  static Expr sign(Expr x, Dtype t) {
    const Expr zero{x.emitter, x.emitter->constant(x.emitter->type(x.value), Number::of_int(0))};
    const Expr positive = select(lt(zero, x), 1.0, zero);
    return is_unsigned(t) ? positive : select(lt(x, zero), -1.0, positive);
  }

  Kernel out_;
  Expansion has_;
  std::vector<expansion::Precision> precision_;  // by value of the source kernel
  expansion::Emitter emitter_;
  std::vector<Value> renamed_;  // by value of the source kernel
};

}  // namespace

Kernel expand(const Kernel& kernel, const Expansion& has) { return Expander(kernel, has).run(kernel); }

}  // namespace weft::kernel
