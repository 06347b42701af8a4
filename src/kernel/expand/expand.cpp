// Rebuilds a kernel block by block. Basic instructions are kept with renamed arguments; others are expanded into basic
// operators by the functions of expand_emit.h. A kernel without anything to expand is returned unchanged.
#include "kernel/expand/expand.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernel/expand/expand_emit.h"
#include "kernel/expand/flights.h"

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
    if (!low && inst.op == Op::broadcast) {
      // Each operator has broadcasts of its own; expansions with equal arguments (two words of a generator) are shared.
      const Value own = inst.results.at(0);
      renamed_[static_cast<size_t>(own)] = emitter_.keep_once(std::move(inst));
      return;
    }
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
    if (has_.philox && is_random_word(inst.scalar_op)) return false;
    if (inst.type.dtype != float64) return true;
    if (!info(inst.scalar_op).float64) return true;
    if (!has_.keep_float64)
      throw_internal("expand",
                     std::string(info(inst.scalar_op).name) + " has no expansion in float64, only a library function");
    return false;
  }

  // Returns the value of an instruction whose arguments are widened; the value is new, even if the instruction is kept.
  Value compute(Inst inst, expansion::Precision precision) {
    if (inst.op == Op::cast) return emitter_.cast(inst.args[0], inst.type.dtype);
    if (inst.op == Op::scalar && info(inst.scalar_op).basic) return emitter_.scalar(inst.scalar_op, inst.args);
    if (inst.op == Op::scalar) {
      std::vector<Expr> args;
      for (const Value v : inst.args) args.push_back({&emitter_, v});
      return expansion::expansion_of(inst.scalar_op, args, precision).value;
    }
    const Value v = static_cast<Value>(out_.types.size());
    out_.types.push_back(inst.type);
    inst.results = {v};
    emitter_.keep(std::move(inst));
    return v;
  }

  Kernel out_;
  Expansion has_;
  std::vector<expansion::Precision> precision_;  // by value of the source kernel
  expansion::Emitter emitter_;
  std::vector<Value> renamed_;  // by value of the source kernel
};

}  // namespace

Kernel expand(const Kernel& kernel, const Expansion& has) {
  if (has_flights(kernel)) return expand(without_flights(kernel), has);
  return Expander(kernel, has).run(kernel);
}

}  // namespace weft::kernel
