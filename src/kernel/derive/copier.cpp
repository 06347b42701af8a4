#include "kernel/derive/copier.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/op_info.h"

namespace weft::kernel {

std::string line_of(const Kernel& kernel, const Inst& inst) {
  const SourceLine& line = kernel.lines.at(static_cast<size_t>(inst.line));
  return line.line > 0 ? fmt::format("{}:{}: ", line.file, line.line) : "";
}

void Copier::refuse(const Inst& inst, const std::string& what) const {
  throw_invalid("kernel " + from_.name, fmt::format("{}{}: {}", line_of(from_, inst), info(inst.op).name, what));
}

void Copier::at(const Inst& inst) {
  const SourceLine& line = from_.lines.at(static_cast<size_t>(inst.line));
  b_.at(line.file, line.line);
}

std::vector<Value> Copier::now(const std::vector<Value>& list) const {
  std::vector<Value> out;
  for (const Value v : list) out.push_back(now(v));
  return out;
}

void Copier::set(const std::vector<Value>& list, const std::vector<Value>& made) {
  for (size_t k = 0; k < list.size(); ++k) set(list[k], made[k]);
}

Value Copier::length(const Length& n) {
  return n.computed([&](int64_t number) { return b_.index(number); },
                    [&](int32_t symbol) { return b_.symbol(from_.symbols[static_cast<size_t>(symbol)]); },
                    [&](ScalarOp op, Value x, Value y) {
                      return b_.scalar(op, {x, y});
                    });
}

void Copier::declare_locals() {
  for (const Local& local : from_.locals) refs_.push_back(b_.reserve(local.dtype, local.elements));
}

Kernel Copier::copied() {
  declare_locals();
  block(from_.body);
  Kernel out = b_.finish();
  out.any_size = from_.any_size;
  out.launch = from_.launch;
  return out;
}

std::vector<Value> Copier::block(const Block& b) {
  for (const Inst& inst : b.insts) {
    if (inst.op == Op::yield) return now(inst.args);
    at(inst);
    visit(inst);
  }
  return {};
}

void Copier::copy(const Inst& inst) {
  if (copy_control(inst)) return;
  if (info(inst.op).access != Access::none) return copy_memory(inst);
  copy_tile(inst);
}

void Copier::copy_tile(const Inst& inst) {
  const std::vector<Value> a = now(inst.args);
  const auto is = [&](Value v) { set(inst.results[0], v); };
  const auto combine = [&](const std::vector<Value>& low, const std::vector<Value>& high) {
    std::vector<Value> both = low;
    both.insert(both.end(), high.begin(), high.end());
    return copy_function(inst.blocks[0], both);
  };
  switch (inst.op) {
    case Op::constant: return is(b_.constant(inst.type.dtype, inst.number, inst.type.dims));
    case Op::program_id: return is(program_ == no_value ? b_.program_id() : program_);
    case Op::symbol: return is(b_.symbol(from_.symbols[static_cast<size_t>(inst.ref)]));
    case Op::arange: return is(b_.arange(inst.type.dims[0], inst.type.dtype));
    case Op::scalar: return is(b_.scalar(inst.scalar_op, a));
    case Op::cast: return is(b_.cast(a[0], inst.type.dtype));
    case Op::bitcast: return is(b_.bitcast(a[0], inst.type.dtype));
    case Op::broadcast: return is(b_.broadcast(a[0], inst.type.dims));
    case Op::reshape: return is(b_.reshape(a[0], inst.type.dims));
    case Op::permute: return is(b_.permute(a[0], inst.axes));
    case Op::slice: return is(b_.slice(a[0], inst.axes, inst.type.dims, inst.strides));
    case Op::cat: return is(b_.cat(a, inst.axis));
    case Op::take: return is(b_.take(a[0], a[1], inst.axis));
    case Op::sort: return set(inst.results, b_.sort(a, inst.axis, inst.reverse));
    case Op::histogram: return is(b_.histogram(a[0], inst.type.dims[0]));
    case Op::dot_async: return is(b_.dot_async(a[0], a[1], a[2], inst.precision));
    case Op::wait_dot: return is(b_.wait_dot(a[0]));
    case Op::dot: return is(b_.dot(a[0], a[1], a[2], inst.precision));
    case Op::reduce:
      return set(inst.results, inst.blocks.empty() ? std::vector{b_.reduce(inst.reducer, a[0], inst.axis)}
                                                   : b_.reduce(combine, a, inst.axis));
    case Op::scan:
      return set(inst.results, inst.blocks.empty() ? std::vector{b_.scan(inst.reducer, a[0], inst.axis, inst.reverse)}
                                                   : b_.scan(combine, a, inst.axis, inst.reverse));
    case Op::lanes: return is(b_.lanes(inst.lane_op, inst.axis, a[0], a[1], inst.scalar_op));
    case Op::inline_code: return copy_code(inst, a);
    case Op::alloc: return;
    case Op::grid_barrier: return b_.grid_barrier();
    case Op::cluster_barrier: return b_.cluster_barrier();
    case Op::print: return b_.print(inst.text, a);
    case Op::assert_: return b_.assert_(a[0], inst.text);
    default: refuse(inst, "has no derivative: give one by custom_function");
  }
}

/// Copies a block that computes a function of `arguments`; returns its results.
std::vector<Value> Copier::copy_function(const Block& function, const std::vector<Value>& arguments) {
  set(function.arguments, arguments);
  for (const Inst& inst : function.insts) {
    if (inst.op == Op::yield) return now(inst.args);
    copy(inst);
  }
  return {};
}

void Copier::copy_code(const Inst& inst, const std::vector<Value>& args) {
  std::vector<Dtype> dtypes;
  for (const Value v : inst.results) dtypes.push_back(type(v).dtype);
  Builder::Counterpart counterpart;
  if (!inst.blocks.empty())
    counterpart = [&](const std::vector<Value>& arguments) { return copy_function(inst.blocks[0], arguments); };
  set(inst.results, b_.inline_code(*inst.code, args, dtypes, inst.type.dims, counterpart));
}

void Copier::copy_memory(const Inst& inst) {
  const std::vector<Value> a = now(inst.args);
  const auto is = [&](Value v) { set(inst.results[0], v); };
  const auto rest = [&](size_t first) {
    return std::vector<Value>(a.begin() + static_cast<std::ptrdiff_t>(first), a.end());
  };
  if (inst.op != Op::load && inst.op != Op::store && inst.op != Op::gather && inst.op != Op::scatter &&
      inst.op != Op::atomic_add && inst.op != Op::atomic && inst.op != Op::exchange_memory &&
      inst.op != Op::compare_exchange && inst.op != Op::wait_until && !reaches_neighbour(inst.op) &&
      inst.op != Op::prefetch)
    refuse(inst, "has no derivative: give one by custom_function");
  const Ref to = ref(inst.ref);
  switch (inst.op) {
    case Op::load: return is(b_.load(to, a[0], inst.type.dims, inst.strides, rest(1), inst.number, inst.streaming));
    case Op::store: return b_.store(to, a[0], a[1], inst.strides, rest(2), inst.streaming);
    case Op::gather: return is(b_.gather(to, a[0], a[1], inst.number));
    case Op::scatter: return b_.scatter(to, a[0], a[1], a[2]);
    case Op::atomic_add: return b_.atomic_add(to, a[0], a[1], a[2]);
    case Op::atomic: return is(b_.atomic(inst.scalar_op, to, a[0], a[1], a[2], inst.ordering));
    case Op::exchange_memory: return is(b_.exchange_memory(to, a[0], a[1], a[2], inst.ordering));
    case Op::compare_exchange: return is(b_.compare_exchange(to, a[0], a[1], a[2], a[3], inst.ordering));
    case Op::load_neighbour: return is(b_.load_neighbour(to, a[0], a[1], inst.type.dims, inst.strides));
    case Op::store_neighbour: return b_.store_neighbour(to, a[0], a[1], a[2], inst.strides);
    case Op::wait_until:
      return is(b_.wait_until(
          to, a[0], [&](Value found) { return copy_function(inst.blocks[0], {found})[0]; }, inst.ordering));
    default: return b_.prefetch(to, a[0], inst.number.i);
  }
}

bool Copier::copy_control(const Inst& inst) {
  const std::vector<Value> a = now(inst.args);
  switch (inst.op) {
    case Op::loop: {
      const std::vector<Value> initial(a.begin() + 3, a.end());
      set(inst.results, b_.loop(a[0], a[1], a[2], initial, [&](Value i, const std::vector<Value>& carried) {
        set(inst.blocks[0].arguments[0], i);
        for (size_t k = 0; k < carried.size(); ++k) set(inst.blocks[0].arguments[k + 1], carried[k]);
        return block(inst.blocks[0]);
      }));
      return true;
    }
    case Op::when: {
      if (inst.results.empty()) return b_.when(a[0], [&] { block(inst.blocks[0]); }), true;
      const std::vector<Value> otherwise(a.begin() + 1, a.end());
      set(inst.results, b_.when(a[0], otherwise, [&] { return block(inst.blocks[0]); }));
      return true;
    }
    case Op::branch:
      set(inst.results, b_.branch(
                            a[0], [&] { return block(inst.blocks[0]); }, [&] { return block(inst.blocks[1]); }));
      return true;
    case Op::while_loop:
      set(inst.results, b_.while_loop(
                            a,
                            [&](const std::vector<Value>& carried) {
                              set(inst.blocks[0].arguments, carried);
                              return block(inst.blocks[0])[0];
                            },
                            [&](const std::vector<Value>& carried) {
                              set(inst.blocks[1].arguments, carried);
                              return block(inst.blocks[1]);
                            }));
      return true;
    default: return false;
  }
}

}  // namespace weft::kernel
