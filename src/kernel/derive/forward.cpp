// Forward mode: beside each active value its tangent, beside each active buffer one of tangents.
#include <algorithm>

#include "kernel/derive/activity.h"
#include "kernel/derive/copier.h"
#include "kernel/derive/derive.h"
#include "kernel/derive/live.h"
#include "kernel/derive/scalar_rules.h"
#include "kernel/expand/flights.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

class Forward : public Copier {
 public:
  Forward(const Source& source, const Kernel& kernel, const Activity& active)
      : Copier(kernel, kernel.name + "_jvp"), source_(source), active_(active),
        tangents_(kernel.types.size(), no_value) {}

  Derivative run() {
    declare();
    block(from_.body);
    Kernel kernel = b_.finish();
    std::vector<char> wanted;
    for (const DerivedArray& a : arrays_) wanted.push_back(a.role == DerivedArray::Role::tangent && a.written);
    const Live live = live_of(kernel, wanted);
    std::vector<size_t> kept;
    Derivative out{without_dead(std::move(kernel), live, kept), {}, source_.programs, source_.count};
    out.kernel.any_size = true;
    for (const size_t k : kept) out.arrays.push_back(arrays_[k]);
    return out;
  }

 private:
  using Role = DerivedArray::Role;
  using Values = std::vector<Value>;

  /// Declares the source's arrays, those of the tangents behind them, and scratch for both.
  void declare() {
    for (size_t k = 0; k < from_.params.size(); ++k) {
      const Param& p = from_.params[k];
      refs_.push_back(b_.param(p.name, p.dtype, p.written));
      arrays_.push_back({k, Role::value, source_.begins[k] != 0, p.written, p.dtype});
    }
    tangent_refs_.assign(active_.refs.size(), -1);
    for (size_t k = 0; k < from_.params.size(); ++k) {
      if (!active_.refs[k]) continue;
      const Param& p = from_.params[k];
      tangent_refs_[k] = b_.param("t_" + p.name, p.dtype, p.written);
      arrays_.push_back({k, Role::tangent, source_.begins[k] != 0, p.written, p.dtype});
    }
    declare_locals();
    for (size_t k = 0; k < from_.locals.size(); ++k)
      if (const size_t r = from_.params.size() + k; active_.refs[r])
        tangent_refs_[r] = b_.reserve(from_.locals[k].dtype, from_.locals[k].elements);
  }

  Value tangent(Value v) const { return active_(v) ? tangents_[static_cast<size_t>(v)] : no_value; }
  /// Returns the tangent, zeros of a value that has none.
  Value tangent_of(Value v) {
    const Value t = tangent(v);
    return t != no_value ? t : b_.real(type(v).dtype, 0, type(v).dims);
  }
  void set_tangent(Value v, Value t) { tangents_[static_cast<size_t>(v)] = t; }
  Values active_among(const Values& list) const {
    Values out;
    std::copy_if(list.begin(), list.end(), std::back_inserter(out), [&](Value v) { return active_(v); });
    return out;
  }
  bool any(const Values& list) const { return !active_among(list).empty(); }
  bool touches(const Inst& inst) const { return inst.ref >= 0 && inst.op != Op::symbol && active_.holds(inst.ref); }

  void visit(const Inst& inst) override {
    if (inst.op == Op::print) return;
    if (inst.op == Op::loop || inst.op == Op::while_loop || inst.op == Op::when || inst.op == Op::branch)
      return control(inst);
    copy(inst);
    if (info(inst.op).access != Access::none) {
      if (touches(inst)) memory(inst);
      return;
    }
    if (inst.op == Op::bitcast && any(inst.args))
      refuse(inst, "the bits of a number have no derivative: give one by custom_function");
    if (inst.results.empty()) return;
    if (inst.op == Op::sort) return sort(inst);
    if (active_(inst.results[0])) set_tangent(inst.results[0], derived(inst));
  }

  Value derived(const Inst& inst) {
    const Values& a = inst.args;
    const Value t = tangent_of(a[0]);
    switch (inst.op) {
      case Op::scalar: return scalar(inst);
      case Op::cast: return b_.cast(t, inst.type.dtype);
      case Op::broadcast: return b_.broadcast(t, inst.type.dims);
      case Op::reshape: return b_.reshape(t, inst.type.dims);
      case Op::permute: return b_.permute(t, inst.axes);
      case Op::slice: return b_.slice(t, inst.axes, inst.type.dims, inst.strides);
      case Op::take: return b_.take(t, now(a[1]), inst.axis);
      case Op::scan: return b_.scan(inst.reducer, t, inst.axis, inst.reverse);
      case Op::reduce: return inst.reducer == Reducer::sum ? b_.reduce(inst.reducer, t, inst.axis) : extreme(inst, t);
      case Op::cat: {
        Values tiles;
        for (const Value v : a) tiles.push_back(tangent_of(v));
        return b_.cat(tiles, inst.axis);
      }
      case Op::dot: {
        Value sum = tangent_of(a[2]);
        if (active_(a[0])) sum = b_.dot(t, now(a[1]), sum, inst.precision);
        if (active_(a[1])) sum = b_.dot(now(a[0]), tangent(a[1]), sum, inst.precision);
        return sum;
      }
      default: refuse(inst, "has no derivative: give one by custom_function");
    }
  }

  Value scalar(const Inst& inst) {
    if (inst.scalar_op == ScalarOp::select)
      return b_.select(now(inst.args[0]), tangent_of(inst.args[1]), tangent_of(inst.args[2]));
    Value sum = no_value;
    for (size_t k = 0; k < inst.args.size(); ++k) {
      if (!active_(inst.args[k])) continue;
      const Value term =
          derivatives(b_, inst.scalar_op, tangent(inst.args[k]), now(inst.args), now(inst.results[0]))[k];
      sum = sum == no_value ? term : b_.add(sum, term);
    }
    return sum;
  }

  /// Of a maximum or minimum: the mean of the tangents of the elements that are equal to it.
  Value extreme(const Inst& inst, Value t) {
    const Type& from = type(inst.args[0]);
    std::vector<int64_t> line = from.dims;
    line[static_cast<size_t>(inst.axis)] = 1;
    const Value whole = b_.broadcast(b_.reshape(now(inst.results[0]), line), from.dims);
    const Value equal = b_.scalar(ScalarOp::eq, {now(inst.args[0]), whole});
    const Value one = b_.real(from.dtype, 1, from.dims), zero = b_.real(from.dtype, 0, from.dims);
    const Value sum = b_.reduce(Reducer::sum, b_.select(equal, t, zero), inst.axis);
    const Value count = b_.reduce(Reducer::sum, b_.select(equal, one, zero), inst.axis);
    return b_.scalar(ScalarOp::div, {sum, count});
  }

  /// Tangents move as their values do.
  void sort(const Inst& inst) {
    Values tiles = now(inst.args), which;
    for (size_t k = 0; k < inst.results.size(); ++k)
      if (active_(inst.results[k])) tiles.push_back(tangent(inst.args[k])), which.push_back(inst.results[k]);
    if (which.empty()) return;
    const Values sorted = b_.sort(tiles, inst.axis, inst.reverse);
    for (size_t k = 0; k < which.size(); ++k) set_tangent(which[k], sorted[inst.args.size() + k]);
  }

  void memory(const Inst& inst) {
    const Ref to = tangent_refs_[static_cast<size_t>(inst.ref)];
    const Values a = now(inst.args);
    const auto rest = [&](std::ptrdiff_t first) { return Values(a.begin() + first, a.end()); };
    switch (inst.op) {
      case Op::load:
        return set_tangent(inst.results[0],
                           b_.load(to, a[0], inst.type.dims, inst.strides, rest(1), {}, inst.streaming));
      case Op::gather: return set_tangent(inst.results[0], b_.gather(to, a[0], a[1]));
      case Op::store: return b_.store(to, tangent_of(inst.args[0]), a[1], inst.strides, rest(2), inst.streaming);
      case Op::scatter: return b_.scatter(to, tangent_of(inst.args[0]), a[1], a[2]);
      case Op::prefetch: return b_.prefetch(to, a[0], inst.number.i);
      case Op::atomic_add: return b_.atomic_add(to, tangent_of(inst.args[0]), a[1], a[2]);
      case Op::atomic:
        if (inst.scalar_op != ScalarOp::add) break;
        return set_tangent(inst.results[0], b_.atomic(ScalarOp::add, to, tangent_of(inst.args[0]), a[1], a[2]));
      default: break;
    }
    refuse(inst, "of floats has no derivative: give one by custom_function");
  }

  /// Splits what a block of the result carries or yields: the source's values, then the tangents.
  void take(const Values& list, const Values& made) {
    size_t next = list.size();
    for (size_t k = 0; k < list.size(); ++k) {
      set(list[k], made[k]);
      if (active_(list[k])) set_tangent(list[k], made[next++]);
    }
  }
  /// Returns values of the source and the tangents of those for which the value at the same position in `like` has one.
  Values with_tangents(const Values& list, const Values& like) {
    Values out = now(list);
    for (size_t k = 0; k < list.size(); ++k)
      if (active_(like[k])) out.push_back(tangent_of(list[k]));
    return out;
  }
  Values yielded(const Block& b, const Values& like) {
    block(b);
    return with_tangents(b.insts.back().args, like);
  }

  void control(const Inst& inst) {
    const Values a = now(inst.args);
    const auto carried = [&](size_t first) {
      return with_tangents({inst.args.begin() + static_cast<std::ptrdiff_t>(first), inst.args.end()}, inst.results);
    };
    if (inst.op == Op::loop) {
      const Values& arguments = inst.blocks[0].arguments;
      take(inst.results, b_.loop(a[0], a[1], a[2], carried(3), [&](Value i, const Values& next) {
        set(arguments[0], i);
        take({arguments.begin() + 1, arguments.end()}, next);
        return yielded(inst.blocks[0], inst.results);
      }));
    } else if (inst.op == Op::while_loop) {
      take(inst.results, b_.while_loop(
                             carried(0),
                             [&](const Values& next) {
                               take(inst.blocks[0].arguments, next);
                               return block(inst.blocks[0])[0];
                             },
                             [&](const Values& next) {
                               take(inst.blocks[1].arguments, next);
                               return yielded(inst.blocks[1], inst.results);
                             }));
    } else if (inst.op == Op::branch) {
      take(inst.results, b_.branch(
                             a[0], [&] { return yielded(inst.blocks[0], inst.results); },
                             [&] { return yielded(inst.blocks[1], inst.results); }));
    } else if (inst.results.empty()) {
      b_.when(a[0], [&] { block(inst.blocks[0]); });
    } else {
      take(inst.results, b_.when(a[0], carried(1), [&] { return yielded(inst.blocks[0], inst.results); }));
    }
  }

  const Source& source_;
  const Activity& active_;
  Values tangents_;                // by value of the source
  std::vector<Ref> tangent_refs_;  // by buffer of the source; -1: none
  std::vector<DerivedArray> arrays_;
};

}  // namespace

Derivative forward_derivative(const Source& source, const std::vector<char>& given) {
  if (has_flights(source.kernel)) {
    const Kernel landed = without_flights(source.kernel);
    return forward_derivative({landed, source.dims, source.begins, source.programs, source.count, source.bounds},
                              given);
  }
  const Kernel steps = with_steps(source.kernel, activity_of(source.kernel, given));
  return Forward(source, steps, activity_of(steps, given)).run();
}

}  // namespace weft::kernel
