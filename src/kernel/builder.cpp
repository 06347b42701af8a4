// The builder of tile IR: infers result types, folds what is known, keeps the blocks that are being filled.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {

Builder::Builder(std::string name) {
  kernel_.name = std::move(name);
  open();
}

void Builder::refuse(const std::string& message) const { throw_internal("kernel " + kernel_.name, message); }

Ref Builder::param(const std::string& name, Dtype dtype, bool written) {
  if (!kernel_.locals.empty()) refuse("parameters are declared before local buffers, whose references follow theirs");
  kernel_.params.push_back({name, dtype, written});
  return static_cast<Ref>(kernel_.params.size() - 1);
}

Ref Builder::local(Dtype dtype, int64_t elements, int64_t share) {
  if (frames_.size() != 1) refuse("local buffers are declared in the outermost block");
  if (elements < 1) refuse("a local buffer has at least one element");
  kernel_.locals.push_back({dtype, elements, share});
  Inst inst{.op = Op::alloc};
  inst.number = Number::of_int(elements);
  inst.ref = static_cast<Ref>(kernel_.params.size() + kernel_.locals.size() - 1);
  append(inst);
  return inst.ref;
}

Ref Builder::reserve(Dtype dtype, int64_t elements, int swizzle) {
  if (elements < 1) refuse("a local buffer has at least one element");
  kernel_.locals.push_back({.dtype = dtype, .elements = elements, .swizzle = swizzle});
  Inst inst{.op = Op::alloc};
  inst.number = Number::of_int(elements);
  inst.ref = static_cast<Ref>(kernel_.params.size() + kernel_.locals.size() - 1);
  reserved_.push_back(inst);
  return inst.ref;
}

Dtype Builder::dtype(Ref ref) const {
  if (!is_ref(kernel_, ref)) refuse(fmt::format("there is no buffer {}", ref));
  return ref_dtype(kernel_, ref);
}

Value Builder::new_value(const Type& type) {
  kernel_.types.push_back(type);
  splats_.emplace_back();
  return static_cast<Value>(kernel_.types.size() - 1);
}

/// Appends `inst` and, if its kind has one result, makes it of inst.type.
Value Builder::append(Inst inst) {
  const bool single = info(inst.op).results == 1;
  if (single) inst.results = {new_value(inst.type)};
  inst.line = line_;
  if (const std::string wrong = broken_rule(kernel_, inst); !wrong.empty())
    refuse(fmt::format("{}: {}", print_inst(kernel_, inst), wrong));
  frames_.back().block.insts.push_back(std::move(inst));
  return single ? frames_.back().block.insts.back().results[0] : no_value;
}

/// An instruction without arguments: one of each kind is enough in a scope.
Value Builder::leaf(Inst inst) {
  const std::string key = fmt::format("{} {} {} {} {} {:x}", static_cast<int>(inst.op), to_string(inst.type), inst.ref,
                                      inst.number.integral, inst.number.i,
                                      std::bit_cast<uint64_t>(inst.number.integral ? 0.0 : inst.number.f));
  for (const Frame& frame : frames_)
    if (const auto found = frame.leaves.find(key); found != frame.leaves.end()) return found->second;
  const bool constant = inst.op == Op::constant;
  const Number number = inst.number;
  const Value v = append(std::move(inst));
  if (constant) splats_[static_cast<size_t>(v)] = number;
  frames_.back().leaves[key] = v;
  return v;
}

Value Builder::symbol(const std::string& name) {
  size_t k = 0;
  while (k < kernel_.symbols.size() && kernel_.symbols[k] != name) ++k;
  if (k == kernel_.symbols.size()) kernel_.symbols.push_back(name);
  Inst inst{.op = Op::symbol, .type = {int64, {}}};
  inst.ref = static_cast<Ref>(k);
  return leaf(std::move(inst));
}

Value Builder::program_id() { return leaf(Inst{.op = Op::program_id, .type = {int64, {}}}); }

Value Builder::constant(Dtype dtype, Number number, std::vector<int64_t> dims) {
  Inst inst{.op = Op::constant, .type = {dtype, std::move(dims)}};
  inst.number = round_to(number, dtype);
  return leaf(std::move(inst));
}

Value Builder::arange(int64_t n, Dtype dtype) { return leaf(Inst{.op = Op::arange, .type = {dtype, {n}}}); }

bool Builder::splat(Value v, Number& out) const {
  const auto& number = splats_.at(static_cast<size_t>(v));
  if (number) out = *number;
  return number.has_value();
}

bool Builder::known(Value v, int64_t& out) const {
  Number number;
  if (v == no_value || type(v).rank() != 0 || is_float(type(v).dtype) || !splat(v, number)) return false;
  out = number.i;
  return true;
}

/// Returns the value of an operation on floats that needs no instruction, because both arguments are known or one is
/// neutral whatever the other is, so +0 is not; else no_value.
Value Builder::fold_floats(ScalarOp op, const std::vector<Value>& args, const Type& result) {
  if (args.size() != 2 || (result.dtype != float32 && result.dtype != float64)) return no_value;
  Number numbers[2];
  const bool left = splat(args[0], numbers[0]), right = splat(args[1], numbers[1]);
  const auto is = [](const Number& n, double v) { return n.real() == v && std::signbit(n.real()) == std::signbit(v); };
  // Each of these operators rounds a double of two floats as it rounds the exact result.
  const bool exact = op == ScalarOp::add || op == ScalarOp::sub || op == ScalarOp::mul || op == ScalarOp::div ||
                     op == ScalarOp::max || op == ScalarOp::min;
  if (left && right && exact) return constant(result.dtype, reference(op, result.dtype, numbers), result.dims);
  switch (op) {
    case ScalarOp::add:
      return right && is(numbers[1], -0.0) ? args[0] : left && is(numbers[0], -0.0) ? args[1] : no_value;
    case ScalarOp::sub: return right && is(numbers[1], 0.0) ? args[0] : no_value;
    case ScalarOp::mul: return right && is(numbers[1], 1) ? args[0] : left && is(numbers[0], 1) ? args[1] : no_value;
    case ScalarOp::div: return right && is(numbers[1], 1) ? args[0] : no_value;
    default: return no_value;
  }
}

/// Returns the value of an operation that needs no instruction, because all arguments are known or one is neutral or
/// absorbing; else no_value.
Value Builder::fold(ScalarOp op, const std::vector<Value>& args, const Type& result) {
  std::vector<Number> numbers(args.size());
  std::vector<bool> constant(args.size());
  bool all = true;
  for (size_t k = 0; k < args.size(); ++k) {
    if (is_float(type(args[k]).dtype) && op != ScalarOp::select) return fold_floats(op, args, result);
    constant[k] = splat(args[k], numbers[k]);
    all = all && constant[k];
  }
  if (op == ScalarOp::select) {
    if (args[1] == args[2]) return args[1];
    return constant[0] ? args[numbers[0].i != 0 ? 1 : 2] : no_value;
  }
  const Dtype t = type(args[0]).dtype;
  const ScalarInfo& row = info(op);
  if (is_integer(t) ? !row.integers : !row.booleans) return no_value;  // the type rules report it
  if (all && result.rank() == 0) return this->constant(result.dtype, reference(op, t, numbers.data()));
  if (args.size() != 2 || !is_integer(t)) return no_value;
  auto is = [&](size_t k, int64_t v) { return constant[k] && numbers[k].i == v; };
  auto zero = [&] { return this->constant(t, Number::of_int(0), result.dims); };
  switch (op) {
    case ScalarOp::add: return is(1, 0) ? args[0] : is(0, 0) ? args[1] : no_value;
    case ScalarOp::sub: return is(1, 0) ? args[0] : args[0] == args[1] ? zero() : no_value;
    case ScalarOp::mul:
      if (is(0, 0) || is(1, 0)) return zero();
      return is(1, 1) ? args[0] : is(0, 1) ? args[1] : no_value;
    case ScalarOp::floordiv: return is(1, 1) ? args[0] : is(0, 0) ? zero() : no_value;
    case ScalarOp::mod: return is(1, 1) || is(0, 0) ? zero() : no_value;
    case ScalarOp::min:
    case ScalarOp::max: return args[0] == args[1] ? args[0] : no_value;
    default: return no_value;
  }
}

Value Builder::scalar(ScalarOp op, std::span<const Value> operands) {
  std::vector<Value> args(operands.begin(), operands.end());
  if (args.size() != static_cast<size_t>(info(op).arity))
    refuse(fmt::format("{} takes {} arguments, not {}", info(op).name, info(op).arity, args.size()));
  std::vector<int64_t> dims;
  for (Value v : args) {
    if (v < 0 || static_cast<size_t>(v) >= kernel_.types.size())
      refuse(fmt::format("{}: an argument is no value", info(op).name));
    if (type(v).rank() > 0) dims = type(v).dims;
  }
  for (Value& v : args)
    if (type(v).rank() == 0) v = broadcast(v, dims);
  const Dtype t = type(args[op == ScalarOp::select ? 1 : 0]).dtype;
  Inst inst{.op = Op::scalar, .type = {info(op).result == ScalarResult::boolean ? bool_ : t, dims}};
  inst.scalar_op = op;
  inst.args = args;
  bool uniform = true;  // types that do not fit are not folded: append reports them
  for (size_t k = 0; k < args.size(); ++k)
    uniform =
        uniform && type(args[k]).dims == dims && type(args[k]).dtype == (op == ScalarOp::select && k == 0 ? bool_ : t);
  if (uniform)
    if (const Value folded = fold(op, args, inst.type); folded != no_value) return folded;
  return append(std::move(inst));
}

Value Builder::cast(Value v, Dtype to) {
  const Type from = type(v);
  if (from.dtype == to) return v;
  if (Number number; splat(v, number)) return constant(to, reference_cast(number, from.dtype, to), from.dims);
  if (auto it = widened_.find(v); it != widened_.end() && type(it->second).dtype == to) return it->second;
  const Value result = append(Inst{.op = Op::cast, .type = {to, from.dims}, .args = {v}});
  const bool narrow = is_low_float(from.dtype);
  if (narrow && (to == float32 || to == float64)) widened_.emplace(result, v);
  return result;
}

Value Builder::bitcast(Value v, Dtype to) {
  const Type from = type(v);
  if (from.dtype == to) return v;
  return append(Inst{.op = Op::bitcast, .type = {to, from.dims}, .args = {v}});
}

Value Builder::broadcast(Value v, std::vector<int64_t> dims) {
  const Type from = type(v);
  if (from.dims == dims) return v;
  Number number;
  if (from.rank() == 0 && splat(v, number)) return constant(from.dtype, number, std::move(dims));
  return append(Inst{.op = Op::broadcast, .type = {from.dtype, std::move(dims)}, .args = {v}});
}

Value Builder::reshape(Value v, std::vector<int64_t> dims) {
  const Type from = type(v);
  if (from.dims == dims) return v;
  return append(Inst{.op = Op::reshape, .type = {from.dtype, std::move(dims)}, .args = {v}});
}

Value Builder::permute(Value v, std::vector<int64_t> axes) {
  const Type from = type(v);
  Type result{from.dtype, {}};
  bool same = axes.size() == from.dims.size();
  for (size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] < 0 || axes[k] >= from.rank())
      refuse(fmt::format("permute: {} has no axis {}", to_string(from), axes[k]));
    result.dims.push_back(from.dims[static_cast<size_t>(axes[k])]);
    same = same && axes[k] == static_cast<int64_t>(k);
  }
  if (same) return v;
  Inst inst{.op = Op::permute, .type = std::move(result), .args = {v}};
  inst.axes = std::move(axes);
  return append(std::move(inst));
}

Value Builder::slice(Value v, std::vector<int64_t> starts, std::vector<int64_t> dims, std::vector<int64_t> steps) {
  const Type from = type(v);
  if (steps.empty()) steps.assign(dims.size(), 1);
  const auto is = [](const std::vector<int64_t>& list, int64_t all) {
    return std::all_of(list.begin(), list.end(), [&](int64_t k) { return k == all; });
  };
  if (dims == from.dims && is(starts, 0) && is(steps, 1)) return v;
  Inst inst{.op = Op::slice, .type = {from.dtype, std::move(dims)}, .args = {v}};
  inst.axes = std::move(starts);
  inst.strides = std::move(steps);
  return append(std::move(inst));
}

Value Builder::cat(const std::vector<Value>& tiles, int axis) {
  if (tiles.size() == 1) return tiles[0];
  if (tiles.empty()) refuse("cat: there is nothing to join");
  Type result = type(tiles[0]);
  if (axis < 0 || axis >= result.rank()) refuse(fmt::format("cat: {} has no axis {}", to_string(result), axis));
  for (size_t k = 1; k < tiles.size(); ++k)
    if (type(tiles[k]).rank() == result.rank())
      result.dims[static_cast<size_t>(axis)] += type(tiles[k]).dims[static_cast<size_t>(axis)];
  Inst inst{.op = Op::cat, .type = std::move(result), .args = tiles};
  inst.axis = axis;
  return append(std::move(inst));
}

/// Appends an instruction that has a result of each argument's type, without its axis if it is a reduction.
std::vector<Value> Builder::several(Inst inst) {
  for (const Value v : inst.args) {
    Type result = type(v);
    if (inst.axis < 0 || inst.axis >= result.rank())
      refuse(fmt::format("{}: {} has no axis {}", info(inst.op).name, to_string(result), inst.axis));
    if (inst.op == Op::reduce) result.dims.erase(result.dims.begin() + inst.axis);
    inst.results.push_back(new_value(result));
  }
  if (!inst.results.empty()) inst.type = type(inst.results[0]);
  const std::vector<Value> results = inst.results;
  append(std::move(inst));
  return results;
}

/// Returns the block of a reduction or scan of tiles.
Block Builder::combining(const Combine& combine, const std::vector<Value>& tiles) {
  open();
  std::vector<Value> sides[2];
  for (std::vector<Value>& side : sides)
    for (const Value v : tiles) side.push_back(new_value({type(v).dtype, {}}));
  frames_.back().block.arguments = sides[0];
  frames_.back().block.arguments.insert(frames_.back().block.arguments.end(), sides[1].begin(), sides[1].end());
  return close(combine(sides[0], sides[1]));
}

Value Builder::reduce(Reducer r, Value v, int axis) {
  Inst inst{.op = Op::reduce, .args = {v}};
  inst.reducer = r;
  inst.axis = axis;
  return several(std::move(inst))[0];
}

std::vector<Value> Builder::reduce(const Combine& combine, const std::vector<Value>& tiles, int axis) {
  Inst inst{.op = Op::reduce, .args = tiles};
  inst.axis = axis;
  inst.blocks.push_back(combining(combine, tiles));
  return several(std::move(inst));
}

Value Builder::scan(Reducer r, Value v, int axis, bool reverse) {
  Inst inst{.op = Op::scan, .args = {v}};
  inst.reducer = r;
  inst.axis = axis;
  inst.reverse = reverse;
  return several(std::move(inst))[0];
}

std::vector<Value> Builder::scan(const Combine& combine, const std::vector<Value>& tiles, int axis, bool reverse) {
  Inst inst{.op = Op::scan, .args = tiles};
  inst.axis = axis;
  inst.reverse = reverse;
  inst.blocks.push_back(combining(combine, tiles));
  return several(std::move(inst));
}

Value Builder::take(Value v, Value index, int axis) {
  Inst inst{.op = Op::take, .type = {type(v).dtype, type(index).dims}, .args = {v, index}};
  inst.axis = axis;
  return append(std::move(inst));
}

std::vector<Value> Builder::sort(const std::vector<Value>& tiles, int axis, bool descending) {
  Inst inst{.op = Op::sort, .args = tiles};
  inst.axis = axis;
  inst.reverse = descending;
  return several(std::move(inst));
}

Value Builder::histogram(Value index, int64_t bins) {
  Type result{int32, {bins}};
  return append(Inst{.op = Op::histogram, .type = std::move(result), .args = {index}});
}

Value Builder::shift(Value v, Value into, int64_t by) {
  const Type t = type(v);
  if (t.rank() != 1) refuse("shift takes a tile with one axis, not " + to_string(t));
  if (by == 0) return v;
  if (by >= t.dims[0] || by <= -t.dims[0]) return into;
  Inst inst{.op = Op::shift, .type = t, .args = {v, into}};
  inst.axis = static_cast<int>(by);
  return append(std::move(inst));
}

Value Builder::exchange(Value v, int64_t bits) {
  const Type t = type(v);
  if (t.rank() != 1) refuse("exchange takes a tile with one axis, not " + to_string(t));
  if (bits == 0) return v;
  Inst inst{.op = Op::exchange, .type = t, .args = {v}};
  inst.axis = static_cast<int>(bits);
  return append(std::move(inst));
}

Value Builder::extract(Value v, int64_t lane) {
  const Type t = type(v);
  if (t.rank() != 1) refuse("extract takes a tile with one axis, not " + to_string(t));
  Inst inst{.op = Op::extract, .type = {t.dtype, {}}, .args = {v}};
  inst.axis = static_cast<int>(lane);
  return append(std::move(inst));
}

Value Builder::dot(Value a, Value b, Value c, DotPrecision precision) {
  const Type result = type(c);
  Inst inst{.op = Op::dot, .type = result, .args = {a, b, c}};
  inst.precision = precision;
  return append(std::move(inst));
}

Value Builder::load(Ref ref, Value offset, std::vector<int64_t> dims, std::vector<int64_t> strides,
                    std::vector<Value> limits, Number other, bool streaming) {
  Inst inst{.op = Op::load, .type = {dtype(ref), std::move(dims)}, .args = {offset}};
  if (limits.empty()) limits.assign(inst.type.dims.size(), no_value);
  inst.args.insert(inst.args.end(), limits.begin(), limits.end());
  inst.number = round_to(other, inst.type.dtype);
  inst.ref = ref;
  inst.strides = std::move(strides);
  inst.streaming = streaming;
  return append(std::move(inst));
}

void Builder::store(Ref ref, Value value, Value offset, std::vector<int64_t> strides, std::vector<Value> limits,
                    bool streaming) {
  Inst inst{.op = Op::store, .args = {value, offset}};
  if (limits.empty()) limits.assign(type(value).dims.size(), no_value);
  inst.args.insert(inst.args.end(), limits.begin(), limits.end());
  inst.ref = ref;
  inst.strides = std::move(strides);
  inst.streaming = streaming;
  append(std::move(inst));
}

Value Builder::gather(Ref ref, Value index, Value mask, Number other) {
  const auto dims = type(index).dims;
  Inst inst{.op = Op::gather, .type = {dtype(ref), dims}, .args = {index, mask}};
  inst.number = round_to(other, inst.type.dtype);
  inst.ref = ref;
  return append(std::move(inst));
}

void Builder::scatter(Ref ref, Value value, Value index, Value mask) {
  Inst inst{.op = Op::scatter, .args = {value, index, mask}};
  inst.ref = ref;
  append(std::move(inst));
}

void Builder::atomic_add(Ref ref, Value value, Value index, Value mask) {
  Inst inst{.op = Op::atomic_add, .args = {value, index, mask}};
  inst.ref = ref;
  append(std::move(inst));
}

void Builder::prefetch(Ref ref, Value offset, int64_t count) {
  Inst inst{.op = Op::prefetch, .args = {offset}};
  inst.number = Number::of_int(count);
  inst.ref = ref;
  append(std::move(inst));
}

Block Builder::close(std::vector<Value> results) {
  frames_.back().block.insts.push_back(Inst{.op = Op::yield, .args = std::move(results)});
  Block block = std::move(frames_.back().block);
  line_ = frames_.back().line;
  frames_.pop_back();
  return block;
}

void Builder::at(const char* file, int line) {
  const SourceLine& last = kernel_.lines.back();
  if (last.line != line || last.file != file) kernel_.lines.push_back({file, line});
  line_ = static_cast<int32_t>(kernel_.lines.size() - 1);
}

Kernel Builder::finish() {
  if (frames_.size() != 1) refuse("finish is called inside a loop or a condition");
  kernel_.body = close({});
  kernel_.body.insts.insert(kernel_.body.insts.begin(), reserved_.begin(), reserved_.end());
  verify(kernel_);
  return std::move(kernel_);
}

}  // namespace weft::kernel
