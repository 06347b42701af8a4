// Control flow of the builder of tile IR: loops, conditions, what is printed and asserted. A block is open while its
// body runs, and closes with what it yields.
#include <utility>

#include <fmt/format.h>

#include "kernel/op_info.h"
#include "kernel/rules.h"
#include "kernel/tile.h"

namespace weft::kernel {

Builder::OpenLoop Builder::begin_loop(Value lo, Value hi, Value step, std::vector<Value> initial) {
  OpenLoop loop{.lo = lo, .hi = hi, .step = step, .initial = std::move(initial)};
  int64_t from = 0, to = 0, by = 0;
  if (known(step, by) && by <= 0) refuse("a loop's step is positive");
  if (by > 0 && known(lo, from) && known(hi, to)) {
    loop.runs = to > from;
    loop.once = loop.runs && to - from <= by;
  }
  if (loop.once) loop.index = lo, loop.carried = loop.initial;
  if (!loop.runs || loop.once) return loop;
  open();
  loop.index = new_value({int64, {}});
  for (Value v : loop.initial) loop.carried.push_back(new_value(Type(type(v))));
  std::vector<Value>& arguments = frames_.back().block.arguments;
  arguments = {loop.index};
  arguments.insert(arguments.end(), loop.carried.begin(), loop.carried.end());
  return loop;
}

std::vector<Value> Builder::end_loop(const OpenLoop& loop, std::vector<Value> next) {
  if (!loop.runs) return loop.initial;
  if (next.size() != loop.initial.size())
    refuse(fmt::format("the loop's body returns {} values, not {}", next.size(), loop.initial.size()));
  for (size_t k = 0; k < next.size(); ++k)
    if (!(type(next[k]) == type(loop.initial[k])))
      refuse(fmt::format("carried value {} of the loop changes from {} to {}", k, to_string(type(loop.initial[k])),
                         to_string(type(next[k]))));
  if (loop.once) return next;
  Inst inst{.op = Op::loop, .args = {loop.lo, loop.hi, loop.step}};
  inst.blocks.push_back(close(std::move(next)));
  inst.args.insert(inst.args.end(), loop.initial.begin(), loop.initial.end());
  for (Value v : loop.initial) inst.results.push_back(new_value(Type(type(v))));
  if (!loop.initial.empty()) inst.type = type(loop.initial[0]);
  const std::vector<Value> results = inst.results;
  append(std::move(inst));
  return results;
}

std::vector<Value> Builder::loop(Value lo, Value hi, Value step, const std::vector<Value>& initial,
                                 const LoopBody& body) {
  const OpenLoop loop = begin_loop(lo, hi, step, initial);
  if (!loop.runs) return initial;
  return end_loop(loop, body(loop.index, loop.carried));
}

void Builder::parallel(int64_t iterations, const std::function<void(Value)>& body) {
  if (iterations < 2) refuse("a parallel loop has two iterations at least");
  loop(index(0), index(iterations), index(1), {}, [&](Value iteration, const std::vector<Value>&) {
    body(iteration);
    return std::vector<Value>{};
  });
  mark_parallel();
}

void Builder::when(Value condition, const std::function<void()>& body) {
  int64_t holds = 0;
  if (known(condition, holds)) {
    if (holds != 0) body();
    return;
  }
  open();
  body();
  Inst inst{.op = Op::when, .args = {condition}};
  inst.blocks.push_back(close({}));
  append(std::move(inst));
}

std::vector<Value> Builder::when(Value condition, const std::vector<Value>& otherwise,
                                 const std::function<std::vector<Value>()>& body) {
  const auto checked = [&](std::vector<Value> values) {
    if (values.size() != otherwise.size())
      refuse(fmt::format("the condition's body returns {} values, not {}", values.size(), otherwise.size()));
    for (size_t k = 0; k < values.size(); ++k)
      if (!(type(values[k]) == type(otherwise[k])))
        refuse(fmt::format("value {} of the condition is {} or {}", k, to_string(type(otherwise[k])),
                           to_string(type(values[k]))));
    return values;
  };
  if (otherwise.empty()) refuse("a condition without values has a body that returns none");
  if (Number number; splat(condition, number)) return number.i != 0 ? checked(body()) : otherwise;
  open();
  std::vector<Value> yielded = checked(body());
  Inst inst{.op = Op::when, .type = type(otherwise[0]), .args = {condition}};
  inst.blocks.push_back(close(std::move(yielded)));
  inst.args.insert(inst.args.end(), otherwise.begin(), otherwise.end());
  for (Value v : otherwise) inst.results.push_back(new_value(Type(type(v))));
  const std::vector<Value> results = inst.results;
  append(std::move(inst));
  return results;
}

std::vector<Value> Builder::branch(Value condition, const std::function<std::vector<Value>()>& then,
                                   const std::function<std::vector<Value>()>& otherwise) {
  if (int64_t holds = 0; known(condition, holds)) return holds != 0 ? then() : otherwise();
  Inst inst{.op = Op::branch, .args = {condition}};
  for (const auto& body : {then, otherwise}) {
    open();
    inst.blocks.push_back(close(body()));
  }
  return append_branch(std::move(inst));
}

std::vector<Value> Builder::end_branch(Value condition, std::vector<Value> then, std::vector<Value> otherwise) {
  Inst inst{.op = Op::branch, .args = {condition}};
  inst.blocks.push_back(close(std::move(then)));
  open();
  inst.blocks.push_back(close(std::move(otherwise)));
  return append_branch(std::move(inst));
}

/// Appends a branch with both of its blocks.
std::vector<Value> Builder::append_branch(Inst inst) {
  const bool nothing_else = inst.blocks[1].insts.size() == 1 && inst.blocks[1].insts.back().args.empty();
  if (nothing_else) inst.op = Op::when, inst.blocks.pop_back();
  for (const Value v : inst.blocks[0].insts.back().args) inst.results.push_back(new_value(Type(type(v))));
  if (!inst.results.empty()) inst.type = type(inst.results[0]);
  const std::vector<Value> results = inst.results;
  append(std::move(inst));
  return results;
}

std::vector<Value> Builder::while_loop(const std::vector<Value>& initial,
                                       const std::function<Value(const std::vector<Value>&)>& condition,
                                       const std::function<std::vector<Value>(const std::vector<Value>&)>& body) {
  Inst inst{.op = Op::while_loop, .args = initial};
  const auto block = [&](const auto& make) {
    open();
    std::vector<Value> arguments;
    for (const Value v : initial) arguments.push_back(new_value(Type(type(v))));
    frames_.back().block.arguments = arguments;
    inst.blocks.push_back(close(make(arguments)));
  };
  block([&](const std::vector<Value>& carried) { return std::vector<Value>{condition(carried)}; });
  block(body);
  for (const Value v : initial) inst.results.push_back(new_value(Type(type(v))));
  if (!inst.results.empty()) inst.type = type(inst.results[0]);
  const std::vector<Value> results = inst.results;
  append(std::move(inst));
  return results;
}

Value Builder::wait_until(Ref ref, Value index, const std::function<Value(Value)>& holds, AtomicOrder how) {
  const Type element{dtype(ref), {}};
  open();
  const Value found = new_value(element);
  frames_.back().block.arguments = {found};
  Inst inst{.op = Op::wait_until, .type = element, .args = {index}};
  inst.blocks.push_back(close({holds(found)}));
  inst.ref = ref;
  inst.ordering = how;
  return append(std::move(inst));
}

void Builder::grid_barrier() { append({.op = Op::grid_barrier}); }
void Builder::cluster_barrier() { append({.op = Op::cluster_barrier}); }

Value Builder::load_neighbour(Ref ref, Value rank, Value offset, std::vector<int64_t> dims,
                              std::vector<int64_t> strides) {
  Inst inst{.op = Op::load_neighbour, .type = {dtype(ref), std::move(dims)}, .args = {rank, offset}};
  inst.ref = ref;
  inst.strides = std::move(strides);
  return append(std::move(inst));
}

void Builder::store_neighbour(Ref ref, Value value, Value rank, Value offset, std::vector<int64_t> strides) {
  Inst inst{.op = Op::store_neighbour, .args = {value, rank, offset}};
  inst.ref = ref;
  inst.strides = std::move(strides);
  append(std::move(inst));
}

void Builder::print(const std::string& text, std::vector<Value> values) {
  Inst inst{.op = Op::print, .args = std::move(values)};
  inst.text = text;
  append(std::move(inst));
}

void Builder::assert_(Value condition, const std::string& text) {
  Inst inst{.op = Op::assert_, .args = {condition}};
  inst.text = text;
  append(std::move(inst));
}

Value Builder::atomic(ScalarOp op, Ref ref, Value value, Value index, Value mask, AtomicOrder how) {
  Inst inst{.op = Op::atomic, .type = Type(type(value)), .args = {value, index, mask}};
  inst.scalar_op = op;
  inst.ref = ref;
  inst.ordering = how;
  return append(std::move(inst));
}

Value Builder::exchange_memory(Ref ref, Value value, Value index, Value mask, AtomicOrder how) {
  Inst inst{.op = Op::exchange_memory, .type = Type(type(value)), .args = {value, index, mask}};
  inst.ref = ref;
  inst.ordering = how;
  return append(std::move(inst));
}

Value Builder::compare_exchange(Ref ref, Value expected, Value value, Value index, Value mask, AtomicOrder how) {
  Inst inst{.op = Op::compare_exchange, .type = Type(type(value)), .args = {expected, value, index, mask}};
  inst.ref = ref;
  inst.ordering = how;
  return append(std::move(inst));
}

}  // namespace weft::kernel
