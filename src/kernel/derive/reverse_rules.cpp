// Reverse mode of instructions on tiles.
#include <algorithm>
#include <numeric>

#include "kernel/derive/reverser.h"
#include "kernel/derive/scalar_rules.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

int64_t product(const std::vector<int64_t>& dims, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t k = first; k < last; ++k) out *= dims[k];
  return out;
}

}  // namespace

void Reverser::rule(const Inst& inst) {
  if (inst.op == Op::sort) return sort_rule(inst);
  const Value g = cotangent(inst.results[0]);
  if (g == no_value) return;
  const Values& a = inst.args;
  switch (inst.op) {
    case Op::scalar: return scalar_rule(inst, g);
    case Op::cast: return add(a[0], g);
    case Op::broadcast: return add(a[0], unbroadcast(g, type(a[0]).dims));
    case Op::reshape: return add(a[0], b_.reshape(g, type(a[0]).dims));
    case Op::slice: return add(a[0], unslice(inst, g));
    case Op::cat: return cat_rule(inst, g);
    case Op::take: return take_rule(inst, g);
    case Op::scan: return add(a[0], b_.scan(Reducer::sum, g, inst.axis, !inst.reverse));
    case Op::dot: return dot_rule(inst, g);
    case Op::permute: {
      std::vector<int64_t> back(inst.axes.size());
      for (size_t k = 0; k < back.size(); ++k) back[static_cast<size_t>(inst.axes[k])] = static_cast<int64_t>(k);
      return add(a[0], b_.permute(g, back));
    }
    case Op::reduce: {
      if (inst.reducer != Reducer::sum) return extreme_rule(inst, g);
      Dims line = type(a[0]).dims;
      line[static_cast<size_t>(inst.axis)] = 1;
      return add(a[0], b_.broadcast(b_.reshape(g, line), type(a[0]).dims));
    }
    default: refuse(inst, "has no derivative: give one by custom_function");
  }
}

/// Of 16-bit floats the derivative is computed in float32.
void Reverser::scalar_rule(const Inst& inst, Value g) {
  const auto wide = [&](Value v) {
    const Dtype t = b_.type(v).dtype;
    return is_float(t) ? b_.cast(v, sum_dtype(t)) : v;
  };
  Values args;
  for (const Value v : inst.args) args.push_back(wide(now(v)));
  const Values terms = derivatives(b_, inst.scalar_op, g, args, wide(now(inst.results[0])));
  for (size_t k = 0; k < terms.size(); ++k)
    if (terms[k] != no_value) add(inst.args[k], terms[k]);
}

/// Sums over the axes along which a broadcast repeats.
Value Reverser::unbroadcast(Value g, const Dims& dims) {
  const Dims from = b_.type(g).dims;
  const size_t more = from.size() - dims.size();
  for (size_t k = from.size(); k-- > 0;)
    if (const bool repeats = k < more ? true : dims[k - more] != from[k]; repeats)
      g = b_.reduce(Reducer::sum, g, static_cast<int>(k));
  return b_.reshape(g, dims);
}

/// Puts `before` zeros in front of a tile [.., n, ..] along an axis, and `behind` zeros after it.
Value Reverser::along(Value v, int64_t before, int64_t n, int64_t behind, size_t axis) {
  Values parts;
  const Type t = b_.type(v);
  const auto none = [&](int64_t count) {
    Type z = t;
    z.dims[axis] = count;
    if (count > 0) parts.push_back(zeros(z));
  };
  none(before);
  if (n > 0) parts.push_back(v);
  none(behind);
  return b_.cat(parts, static_cast<int>(axis));
}

/// The elements that a slice leaves out have no cotangent.
Value Reverser::unslice(const Inst& inst, Value g) {
  const Dims& whole = type(inst.args[0]).dims;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    Dims dims = b_.type(g).dims;
    const int64_t n = dims[axis];
    int64_t step = n > 1 ? inst.strides[axis] : 1, start = inst.axes[axis];
    if (step < 0) {
      Dims starts(dims.size(), 0), steps(dims.size(), 1);
      starts[axis] = n - 1, steps[axis] = -1;
      g = b_.slice(g, starts, dims, steps);
      start += (n - 1) * step;
      step = -step;
    }
    int64_t length = n;
    if (step > 1) {
      const int64_t before = product(dims, 0, axis), behind = product(dims, axis + 1, dims.size());
      g = along(b_.reshape(g, {before * n, 1, behind}), 0, 1, step - 1, 1);
      length = n * step;
      Dims spread = dims;
      spread[axis] = length;
      g = b_.reshape(g, spread);
      if (const int64_t room = whole[axis] - start; length > room) {
        spread[axis] = length = room;
        g = b_.slice(g, Dims(dims.size(), 0), spread);
      }
    }
    g = along(g, start, length, whole[axis] - start - length, axis);
  }
  return g;
}

void Reverser::cat_rule(const Inst& inst, Value g) {
  const auto axis = static_cast<size_t>(inst.axis);
  Dims starts(inst.type.dims.size(), 0);
  for (const Value v : inst.args) {
    if (active_(v)) add(v, b_.slice(g, starts, type(v).dims));
    starts[axis] += type(v).dims[axis];
  }
}

/// Of a maximum or minimum: the elements that are equal to it share.
void Reverser::extreme_rule(const Inst& inst, Value g) {
  const Type& from = type(inst.args[0]);
  Dims line = from.dims;
  line[static_cast<size_t>(inst.axis)] = 1;
  const auto whole = [&](Value v) { return b_.broadcast(b_.reshape(v, line), from.dims); };
  const Value equal = b_.scalar(ScalarOp::eq, {now(inst.args[0]), whole(now(inst.results[0]))});
  const Dtype t = b_.type(g).dtype;
  const Value one = b_.real(t, 1, from.dims), zero = zeros({t, from.dims});
  const Value count = b_.reduce(Reducer::sum, b_.select(equal, one, zero), inst.axis);
  add(inst.args[0], b_.select(equal, whole(b_.scalar(ScalarOp::div, {g, count})), zero));
}

/// The cotangent is rounded to the operands' dtype, so that both products run on the same units as the dot.
void Reverser::dot_rule(const Inst& inst, Value g) {
  const Value a = inst.args[0], b = inst.args[1];
  const auto rank = static_cast<size_t>(inst.type.rank());
  std::vector<int64_t> swapped(rank);
  std::iota(swapped.begin(), swapped.end(), int64_t{0});
  std::swap(swapped[rank - 2], swapped[rank - 1]);
  const Value narrow = b_.cast(g, type(a).dtype);
  const auto to = [&](Value v) { return zeros({sum_dtype(type(v).dtype), type(v).dims}); };
  if (active_(a)) add(a, b_.dot(narrow, b_.permute(now(b), swapped), to(a), inst.precision));
  if (active_(b)) add(b, b_.dot(b_.permute(now(a), swapped), narrow, to(b), inst.precision));
  add(inst.args[2], g);
}

/// Each element of the tile gets the cotangents of the places that took it, summed along the axis.
void Reverser::take_rule(const Inst& inst, Value g) {
  const Dims& from = type(inst.args[0]).dims;
  const auto axis = static_cast<size_t>(inst.axis);
  const int64_t n = from[axis], m = inst.type.dims[axis];
  const int64_t before = product(from, 0, axis), behind = product(from, axis + 1, from.size());
  const Dims all{before, m, n, behind};
  const auto taken = [&](Value v) { return b_.broadcast(b_.reshape(v, {before, m, 1, behind}), all); };
  const Value index = b_.max(b_.min(now(inst.args[1]), b_.index(n - 1)), b_.index(0));
  const Value positions = b_.broadcast(b_.reshape(b_.arange(n), {1, 1, n, 1}), all);
  const Value chosen =
      b_.select(b_.scalar(ScalarOp::eq, {taken(index), positions}), taken(g), zeros({b_.type(g).dtype, all}));
  add(inst.args[0], b_.reshape(b_.reduce(Reducer::sum, chosen, 1), from));
}

/// Cotangents go back to where their values came from: sorted by the positions that were sorted along.
void Reverser::sort_rule(const Inst& inst) {
  Values moved;
  std::vector<size_t> which;
  for (size_t k = 0; k < inst.results.size(); ++k)
    if (active_(inst.args[k]) && cotangent(inst.results[k]) != no_value) which.push_back(k);
  if (which.empty()) return;
  const Dims& dims = inst.type.dims;
  Dims line(dims.size(), 1);
  line[static_cast<size_t>(inst.axis)] = dims[static_cast<size_t>(inst.axis)];
  const int64_t n = line[static_cast<size_t>(inst.axis)];
  Values tiles = now(inst.args);
  tiles.push_back(b_.broadcast(b_.reshape(b_.arange(n), line), dims));
  moved.push_back(b_.sort(tiles, inst.axis, inst.reverse).back());
  for (const size_t k : which) moved.push_back(cotangent(inst.results[k]));
  const Values back = b_.sort(moved, inst.axis);
  for (size_t k = 0; k < which.size(); ++k) add(inst.args[which[k]], back[k + 1]);
}

}  // namespace weft::kernel
