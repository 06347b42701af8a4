#include "kernel/derive/absorb.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/derive/copier.h"
#include "kernel/derive/footprint.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

class Absorbing : public Copier {
 public:
  Absorbing(const Kernel& kernel, Ref param, const ElementwiseOp& op, bool stores)
      : Copier(kernel, kernel.name), param_(param), op_(op), stores_(stores) {}

  Kernel run() {
    for (size_t k = 0; k < from_.params.size(); ++k) {
      const Param& p = from_.params[k];
      const bool here = static_cast<Ref>(k) == param_;
      if (here)
        for (size_t i = 0; i < op_.arrays.size(); ++i)
          arrays_.push_back(b_.param(fmt::format("{}_{}", p.name, i), op_.arrays[i], false));
      refs_.push_back(here && !stores_ ? -1 : b_.param(p.name, here ? op_.dtype : p.dtype, p.written));
    }
    return copied();
  }

 private:
  void visit(const Inst& inst) override {
    if (inst.ref != param_ || info(inst.op).access == Access::none) return copy(inst);
    if (inst.op == Op::prefetch) return;
    const std::vector<Value> a = now(inst.args);
    const std::vector<Value> limits(a.begin() + (stores_ ? 2 : 1), a.end());
    if (stores_) {
      const Value made = computed(a[0], a[1], type(inst.args[0]).dims, inst, limits);
      return b_.store(ref(param_), made, a[1], inst.strides, limits, inst.streaming);
    }
    Value made = computed(no_value, a[0], inst.type.dims, inst, limits);
    // Elements outside of the array are the load's number, whatever the operator makes of others.
    for (size_t k = 0; k < limits.size(); ++k) {
      if (limits[k] == no_value) continue;
      std::vector<int64_t> line(inst.type.dims.size(), 1);
      line[k] = inst.type.dims[k];
      const Value exists = b_.broadcast(b_.reshape(b_.lt(b_.arange(line[k]), limits[k]), line), inst.type.dims);
      made = b_.select(exists, made, b_.constant(inst.type.dtype, inst.number, inst.type.dims));
    }
    set(inst.results[0], made);
  }

  /// Returns the operator's result on a tile of the arrays; `stored` is what the kernel stores.
  Value computed(Value stored, Value offset, const std::vector<int64_t>& dims, const Inst& inst,
                 const std::vector<Value>& limits) {
    using Kind = ElementwiseOp::Argument::Kind;
    std::vector<Value> loaded, args;
    for (const Ref array : arrays_)
      loaded.push_back(b_.load(array, offset, dims, inst.strides, limits, {}, inst.streaming && !stores_));
    for (const ElementwiseOp::Argument& arg : op_.args)
      args.push_back(arg.kind == Kind::stored  ? stored
                     : arg.kind == Kind::array ? loaded[static_cast<size_t>(arg.array)]
                                               : b_.constant(arg.dtype, arg.number, dims));
    if (op_.op == Op::cast) return b_.cast(args[0], op_.dtype);
    if (op_.op == Op::bitcast) return b_.bitcast(args[0], op_.dtype);
    return b_.scalar(op_.scalar_op, args);
  }

  const Ref param_;
  const ElementwiseOp& op_;
  const bool stores_;
  std::vector<Ref> arrays_;
};

/// Returns whether all accesses to a buffer are of one kind, in a kernel that does nothing asynchronously.
bool only(const Kernel& kernel, Ref param, Op op) {
  bool all = true;
  each_inst(kernel.body, [&](const Inst& inst) {
    if (is_asynchronous(inst.op) || inst.op == Op::source) all = false;  // these move elements as they are
    if (inst.ref == param && info(inst.op).access != Access::none && inst.op != Op::prefetch)
      all = all && inst.op == op;
  });
  return all;
}

}  // namespace

bool can_absorb_load(const Kernel& kernel, Ref param, const std::vector<int64_t>& dims, int64_t programs) {
  return only(kernel, param, Op::load) &&
         Footprints(kernel, programs, true, {}).of(param, dims, Footprints::Which::loads).once;
}

bool can_absorb_store(const Kernel& kernel, Ref param, const std::vector<int64_t>& dims, int64_t programs) {
  return only(kernel, param, Op::store) &&
         Footprints(kernel, programs, true, {}).of(param, dims, Footprints::Which::stores).once;
}

Kernel with_absorbed_load(const Kernel& kernel, Ref param, const ElementwiseOp& op) {
  return Absorbing(kernel, param, op, false).run();
}

Kernel with_absorbed_store(const Kernel& kernel, Ref param, const ElementwiseOp& op) {
  return Absorbing(kernel, param, op, true).run();
}

}  // namespace weft::kernel
