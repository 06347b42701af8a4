// Loops over the chunks of a tile, and the value of one chunk: instructions that work element by element are computed
// there, from the chunks of their arguments; movements change where their argument is read.
#include <algorithm>

#include "base/error.h"
#include "kernel/legalize/legalizer.h"
#include "kernel/rules.h"

namespace weft::kernel {

void Legalizer::in_frame(const std::function<void()>& body) {
  frames_.emplace_back();
  body();
  auto& stored = frames_.back().put_away;
  for (size_t k = stored.size(); k-- > 0;) held(stored[k].first).view = stored[k].second;
  frames_.pop_back();
}

void Legalizer::each(Value lo, Value hi, int64_t step, const std::function<void(Value)>& body) {
  b_.loop(lo, hi, index(step), {}, [&](Value i, const std::vector<Value>&) {
    in_frame([&] { body(i); });
    return std::vector<Value>{};
  });
}

/// Calls body(start, width) for parts of an axis of `extent`, as wide as `lanes` and then narrower by powers of two.
/// With an `end`, elements from there on are left out: parts that end before it are known to (fits_).
void Legalizer::each_part(int64_t extent, Value end, int64_t lanes, const std::function<void(Value, int64_t)>& body) {
  while (lanes > extent) lanes /= 2;
  const int64_t last = extent / lanes * lanes;  // narrower parts begin here
  const auto narrow = [&] {
    int64_t at = last;
    for (int64_t width = lanes; at < extent; width /= 2)
      while (extent - at >= width) body(index(at), width), at += width;
  };
  if (end == no_value) {
    each(index(0), index(last), lanes, [&](Value i) { body(i, lanes); });
    return in_frame(narrow);
  }
  const Value stop = shared(ScalarOp::max, {index(0), shared(ScalarOp::min, {index(extent), end})});
  const Value full = mul(shared(ScalarOp::floordiv, {stop, index(lanes)}), index(lanes));
  each(index(0), full, lanes, [&](Value i) {
    const auto [fact, added] = fits_.insert({i, lanes, end});
    body(i, lanes);
    if (added) fits_.erase(fact);
  });
  const auto if_below = [&](Value from, int64_t to, const std::function<void()>& part) {
    const Value limit = to == extent ? stop : shared(ScalarOp::min, {stop, index(to)});
    b_.when(b_.lt(from, limit), [&] { in_frame(part); });
  };
  if_below(full, last, [&] { body(full, lanes); });
  if (last < extent) if_below(index(last), extent, narrow);
}

/// Calls body for each chunk of a tile; `ends` (none: all of it) says how many elements of each axis are wanted.
void Legalizer::each_chunk(const Dims& dims, const std::vector<Value>& ends, const Body& body) {
  const auto end = [&](size_t k) { return ends.empty() ? no_value : ends[k]; };
  const int64_t lanes = registers_.bytes / 4 * 4;
  std::vector<Value> at;
  const std::function<void()> nest = [&] {
    const size_t axis = at.size();
    if (axis + 1 == dims.size())
      return each_part(dims[axis], end(axis), lanes, [&](Value start, int64_t width) { body({at, start, width}); });
    const Value stop =
        end(axis) == no_value ? index(dims[axis]) : shared(ScalarOp::min, {index(dims[axis]), end(axis)});
    each(index(0), stop, 1, [&](Value i) {
      at.push_back(i);
      const auto [fact, added] = below_.insert({i, end(axis)});
      nest();
      if (added) below_.erase(fact);
      at.pop_back();
    });
  };
  nest();
}

Value Legalizer::shared(ScalarOp op, const std::vector<Value>& args) {
  for (const Frame& f : frames_)
    if (const auto found = f.scalars.find({op, args}); found != f.scalars.end()) return found->second;
  const Value v = b_.scalar(op, args);
  frames_.back().scalars[{op, args}] = v;
  return v;
}

Value Legalizer::address(const View& view, const Chunk& at) {
  Value sum = view.offset;
  for (size_t k = 0; k < at.index.size(); ++k) sum = add(sum, mul(at.index[k], index(view.strides[k])));
  return add(sum, mul(at.start, index(view.strides.back())));
}

/// Returns how many lanes of a chunk exist, or no_value for all.
Value Legalizer::lanes_left(const View& view, const Chunk& at) {
  Value left = no_value;
  if (const Value limit = view.limits.back(); limit != no_value && !fits_.contains({at.start, at.width, limit}))
    left = shared(ScalarOp::sub, {limit, at.start});
  for (size_t k = 0; k < at.index.size(); ++k) {
    const Value limit = view.limits[k];
    if (limit == no_value || below_.contains({at.index[k], limit})) continue;
    left = b_.select(shared(ScalarOp::lt, {at.index[k], limit}), left == no_value ? index(at.width) : left, index(0));
  }
  return left;
}

Value Legalizer::read(const View& view, const Chunk& at) {
  const Value limit = view.limits.back();
  const bool all = limit == no_value || fits_.contains({at.start, at.width, limit});
  if (view.strides.back() == 0 && at.width > 1 && all) {  // one element, repeated
    Chunk one = at;
    one.width = 1;
    return b_.broadcast(lane(read(view, one)), {at.width});
  }
  return b_.load(view.ref, address(view, at), {at.width}, {view.strides.back()}, {lanes_left(view, at)}, view.other,
                 view.streaming);
}

void Legalizer::write(const View& view, const Chunk& at, Value v, bool streaming) {
  b_.store(view.ref, v, address(view, at), {view.strides.back()}, {lanes_left(view, at)}, streaming);
}

Value Legalizer::lane(Value vector) { return b_.extract(vector, 0); }

/// Returns a chunk of a tile as a vector. It is computed once in a block of the new kernel.
Value Legalizer::value(Value v, const Chunk& at) {
  const Held& h = held(v);
  if (h.scalar != no_value) return b_.broadcast(h.scalar, {at.width});
  const std::tuple key{v, h.view ? size_t{0} : h.result, at.index, at.start, at.width};
  for (const Frame& f : frames_)
    if (const auto found = f.chunks.find(key); found != f.chunks.end()) return found->second;
  const Value out = h.view ? read(*h.view, at) : compute(*h.inst, h.result, at);
  frames_.back().chunks[key] = out;
  return out;
}

Value Legalizer::compute(const Inst& inst, size_t result, const Chunk& at) {
  const auto arg = [&](size_t k) { return value(inst.args[k], at); };
  const size_t rank = inst.type.dims.size();
  switch (inst.op) {
    case Op::constant: return b_.constant(inst.type.dtype, inst.number, {at.width});
    case Op::arange: {
      const Value lanes = b_.arange(at.width, inst.type.dtype);
      return b_.add(lanes, b_.broadcast(b_.cast(at.start, inst.type.dtype), {at.width}));
    }
    case Op::scalar: {
      std::vector<Value> args;
      for (size_t k = 0; k < inst.args.size(); ++k) args.push_back(arg(k));
      return b_.scalar(inst.scalar_op, args);
    }
    case Op::cast: return b_.cast(arg(0), inst.type.dtype);
    case Op::bitcast: return b_.bitcast(arg(0), inst.type.dtype);
    case Op::broadcast: return broadcast(inst, at);
    case Op::permute: {
      Chunk from = at;
      for (size_t k = 0; k + 1 < rank; ++k) from.index[static_cast<size_t>(inst.axes[k])] = at.index[k];
      return value(inst.args[0], from);
    }
    case Op::slice: {
      Chunk from = at;
      for (size_t k = 0; k + 1 < rank; ++k)
        from.index[k] = add(index(inst.axes[k]), mul(at.index[k], index(inst.strides[k])));
      from.start = add(index(inst.axes[rank - 1]), mul(at.start, index(inst.strides[rank - 1])));
      return value(inst.args[0], from);
    }
    case Op::reshape: {
      const Dims& dims = type(inst.args[0]).dims;
      std::vector<Value> indices;
      for (size_t k = 0; k < rank; ++k)
        if (inst.type.dims[k] != 1) indices.push_back(k + 1 < rank ? at.index[k] : at.start);
      Chunk from{{}, no_value, at.width};
      size_t next = 0;
      for (size_t k = 0; k < dims.size(); ++k) {
        const Value i = dims[k] == 1 ? index(0) : indices.at(next++);
        if (k + 1 < dims.size()) from.index.push_back(i);
        else from.start = i;
      }
      return value(inst.args[0], from);
    }
    case Op::when: return conditional(inst, result, at);
    case Op::gather: return gathered(inst, at);
    case Op::take: return taken(inst, at);
    default: throw_internal("legalize", "kernel " + from_.name + ": a tile that is not computed by chunks");
  }
}

Value Legalizer::broadcast(const Inst& inst, const Chunk& at) {
  const Type& from = type(inst.args[0]);
  if (from.rank() == 0) return b_.broadcast(scalar(inst.args[0]), {at.width});
  const size_t missing = inst.type.dims.size() - from.dims.size();
  Chunk source{{}, at.start, at.width};
  for (size_t k = 0; k + 1 < from.dims.size(); ++k)
    source.index.push_back(from.dims[k] == 1 ? index(0) : at.index[k + missing]);
  if (from.dims.back() != 1 || inst.type.dims.back() == 1) return value(inst.args[0], source);
  source.start = index(0), source.width = 1;
  return b_.broadcast(lane(value(inst.args[0], source)), {at.width});
}

/// A condition with values: its block works lane by lane, here on one chunk.
Value Legalizer::conditional(const Inst& inst, size_t result, const Chunk& at) {
  const Block& body = inst.blocks[0];
  const Value condition = value(inst.args[0], at);
  std::vector<Value> otherwise;
  for (size_t k = 1; k < inst.args.size(); ++k) otherwise.push_back(value(inst.args[k], at));
  std::set<Value> inside;
  for (const Inst& i : body.insts) {
    inside.insert(i.results.begin(), i.results.end());
    for (const Value v : kernel::reads(i))
      if (v != no_value && !inside.contains(v) && type(v).rank() > 0)
        value(v, at);  // computed outside of the condition
  }
  const std::vector<Value> out = b_.when(condition, otherwise, [&] {
    std::vector<Value> yielded;
    in_frame([&] {
      for (const Inst& i : body.insts) {
        if (i.op == Op::yield) {
          for (const Value v : i.args) yielded.push_back(value(v, at));
          continue;
        }
        for (size_t k = 0; k < i.results.size(); ++k) {
          Held& h = held(i.results[k]);
          h = {};
          if (type(i.results[k]).rank() > 0) h.inst = &i, h.result = k;
          else scalar_inst(i);
        }
      }
    });
    return yielded;
  });
  for (size_t k = 0; k < out.size(); ++k)
    frames_.back().chunks[{inst.results[k], k, at.index, at.start, at.width}] = out[k];
  return out[result];
}

Value Legalizer::gathered(const Inst& inst, const Chunk& at) {
  const Value mask = inst.args[1] == no_value ? no_value : value(inst.args[1], at);
  return b_.gather(inst.ref, value(inst.args[0], at), mask, inst.number);
}

/// The elements of a tile in memory that an index names.
Value Legalizer::taken(const Inst& inst, const Chunk& at) {
  const View& from = *held(inst.args[0]).view;
  const auto axis = static_cast<size_t>(inst.axis);
  const auto number = [&](int64_t v) { return b_.constant(int64, Number::of_int(v), {at.width}); };
  const Value wanted = value(inst.args[1], at);
  Value sum = b_.mul(b_.min(b_.max(wanted, number(0)), number(from.dims[axis] - 1)), number(from.strides[axis]));
  Value base = from.offset;
  for (size_t k = 0; k < at.index.size(); ++k)
    if (k != axis) base = add(base, mul(at.index[k], index(from.strides[k])));
  if (axis + 1 < from.dims.size()) {
    base = add(base, mul(at.start, index(from.strides.back())));
    sum = b_.add(sum, b_.mul(b_.arange(at.width), number(from.strides.back())));
  }
  return b_.gather(from.ref, b_.add(sum, b_.broadcast(base, {at.width})));
}

}  // namespace weft::kernel
