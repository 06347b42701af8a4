// Reverse mode of accesses to memory: a load adds to cotangents, a store takes them.
#include <algorithm>

#include "kernel/derive/reverser.h"
#include "kernel/op_info.h"

namespace weft::kernel {

void Reverser::memory_rule(const Inst& inst) {
  if (inst.op == Op::prefetch || !active_.holds(inst.ref)) return;
  const Cotangent& buffer = buffers_[static_cast<size_t>(inst.ref)];
  const Values a = now(inst.args);
  switch (inst.op) {
    case Op::load:
    case Op::gather:
      if (const Value g = cotangent(inst.results[0]); g != no_value)
        inst.op == Op::load ? add_to(inst, g) : add_at(inst, g);
      return;
    case Op::store:
    case Op::scatter:
      if (const Value g = stored(inst, buffer); g != no_value) add(inst.args[0], g);
      return;
    case Op::atomic:
      if (inst.scalar_op != ScalarOp::add || cotangent(inst.results[0]) != no_value)
        refuse(inst,
               "of floats has no derivative where it is no sum, or what was there before is read: give one by "
               "custom_function");
      [[fallthrough]];
    case Op::atomic_add:
      if (!buffer.reads) return;
      return add(inst.args[0], b_.gather(buffer.ref, a[1], a[2]));
    default: refuse(inst, "of floats has no derivative: give one by custom_function");
  }
}

/// Returns the cotangent of what is stored, and ends that of what was there before.
Value Reverser::stored(const Inst& inst, const Cotangent& from) {
  if (!from.reads) return no_value;
  const Type& t = type(inst.args[0]);
  const Values a = now(inst.args);
  if (inst.op == Op::scatter) {
    if (!footprints_.distinct_lanes(inst))
      refuse(inst, "two lanes may store to one element, of which one stays: give the derivative by custom_function");
    const Value g = b_.gather(from.ref, a[1], a[2]);
    if (from.clears) b_.scatter(from.ref, zeros({from.dtype, t.dims}), a[1], a[2]);
    return g;
  }
  const Values limits(a.begin() + 2, a.end());
  const Value g = b_.load(from.ref, a[1], t.dims, inst.strides, limits);
  if (from.clears) b_.store(from.ref, zeros({from.dtype, t.dims}), a[1], inst.strides, limits);
  return g;
}

/// Adds the cotangent of a loaded tile. Along an axis of stride 0 the lanes read one element: their cotangents are
/// summed before.
void Reverser::add_to(const Inst& load, Value g) {
  const Cotangent& to = buffers_[static_cast<size_t>(load.ref)];
  Values limits = now(load.args);
  Value offset = limits[0];
  limits.erase(limits.begin());
  if (!footprints_.distinct_lanes(load))
    refuse(load, "lanes of one tile may read one element: give the derivative by custom_function");
  g = b_.cast(g, to.dtype);
  Dims dims = load.type.dims;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (load.strides[k] != 0 || dims[k] == 1) continue;
    Dims line(dims.size(), 1);
    line[k] = dims[k];
    if (limits[k] != no_value) {
      const Value exists = b_.lt(b_.arange(dims[k]), limits[k]);
      g = b_.select(b_.broadcast(b_.reshape(exists, line), dims), g, zeros({to.dtype, dims}));
      limits[k] = b_.min(limits[k], b_.index(1));
    }
    g = b_.reduce(Reducer::sum, g, static_cast<int>(k));
    dims[k] = 1;
    g = b_.reshape(g, dims);
  }
  if (part_sizes_.contains(load.ref)) offset = b_.add(offset, b_.mul(part_, b_.index(part_sizes_.at(load.ref))));
  if (to.adds) g = b_.add(b_.load(to.ref, offset, dims, load.strides, limits), g);
  b_.store(to.ref, g, offset, load.strides, limits);
}

void Reverser::add_at(const Inst& gather, Value g) {
  const Cotangent& to = buffers_[static_cast<size_t>(gather.ref)];
  Value index = now(gather.args[0]);
  const Value mask = now(gather.args[1]);
  g = b_.cast(g, to.dtype);
  if (part_sizes_.contains(gather.ref)) index = b_.add(index, b_.mul(part_, b_.index(part_sizes_.at(gather.ref))));
  if (!footprints_.distinct_lanes(gather)) return sum_equal(to, index, mask, g);
  if (to.adds) g = b_.add(b_.gather(to.ref, index, mask), g);
  b_.scatter(to.ref, g, index, mask);
}

/// Adds where several lanes may mean one element: lanes are sorted by their element, summed along each run of equal
/// ones, and the last lane of a run adds the sum. The order is that of the lanes.
void Reverser::sum_equal(const Cotangent& to, Value index, Value mask, Value g) {
  const int64_t n = b_.type(index).size();
  const Dims line{n};
  const Value absent = b_.constant(int64, Number::of_int(-1), line);
  index = b_.reshape(index, line);
  g = b_.reshape(g, line);
  if (mask != no_value) {
    mask = b_.reshape(mask, line);
    index = b_.select(mask, index, absent);
    g = b_.select(mask, g, zeros({to.dtype, line}));
  }
  const Values sorted = b_.sort({index, g}, 0);
  const Values summed = b_.scan(
      [&](const Values& low, const Values& high) {
        const Value same = b_.scalar(ScalarOp::eq, {low[0], high[0]});
        return Values{high[0], b_.select(same, b_.add(low[1], high[1]), high[1])};
      },
      sorted, 0);
  Value last = b_.scalar(ScalarOp::le, {b_.constant(int64, Number::of_int(0), line), sorted[0]});
  if (n > 1) {
    const Value next = b_.cat({b_.slice(sorted[0], {1}, {n - 1}), b_.constant(int64, Number::of_int(-1), {1})}, 0);
    last = b_.scalar(ScalarOp::bit_and, {last, b_.scalar(ScalarOp::ne, {sorted[0], next})});
  }
  const Value before = b_.gather(to.ref, sorted[0], last);
  b_.scatter(to.ref, b_.add(before, summed[1]), sorted[0], last);
}

}  // namespace weft::kernel
