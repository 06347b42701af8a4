// The builder's asynchronous copies, barriers and roles.
#include <utility>

#include "kernel/tile.h"

namespace weft::kernel {

Ref Builder::barriers(int64_t count, int64_t arrivals) {
  if (arrivals < 1) refuse("a barrier's phase ends with one arrival at least");
  const Ref ref = reserve(int64, count);
  kernel_.locals.back().arrivals = arrivals;
  return ref;
}

void Builder::copy_async(const Copy& copy) {
  Inst inst{.op = Op::copy_async, .type = {dtype(copy.from), copy.dims}, .args = {copy.to_offset, copy.from_offset}};
  inst.args.insert(inst.args.end(), copy.limits.begin(), copy.limits.end());
  inst.args.resize(2 + copy.dims.size(), no_value);
  if (copy.barrier >= 0) inst.args.push_back(copy.index);
  inst.ref = copy.to, inst.left = copy.from, inst.right = copy.barrier;
  inst.number = copy.other;
  inst.strides = copy.to_strides;
  inst.strides.insert(inst.strides.end(), copy.from_strides.begin(), copy.from_strides.end());
  append(std::move(inst));
}

Value Builder::dot_async(Value a, Value b, Value c, DotPrecision precision) {
  Inst inst{.op = Op::dot_async, .type = Type(type(c)), .args = {a, b, c}};
  inst.precision = precision;
  return append(std::move(inst));
}

Value Builder::wait_dot(Value flight) {
  return append({.op = Op::wait_dot, .type = Type(type(flight)), .args = {flight}});
}

void Builder::commit_copies() { append({.op = Op::commit_copies}); }

void Builder::wait_copies(int64_t left) {
  Inst inst{.op = Op::wait_copies};
  inst.number = Number::of_int(left);
  append(std::move(inst));
}

void Builder::arrive(Ref barriers, Value index) {
  Inst inst{.op = Op::arrive, .args = {index}};
  inst.ref = barriers;
  append(std::move(inst));
}

void Builder::await(Ref barriers, Value index, Value phase) {
  Inst inst{.op = Op::await, .args = {index, phase}};
  inst.ref = barriers;
  append(std::move(inst));
}

void Builder::roles(const std::vector<Role>& roles) {
  Inst inst{.op = Op::roles};
  for (const Role& role : roles) {
    open();
    role.body();
    inst.blocks.push_back(close({}));
    inst.axes.push_back(role.warps);
    inst.strides.push_back(role.registers);
  }
  append(std::move(inst));
}

}  // namespace weft::kernel
