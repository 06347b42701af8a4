// Sorting and counting within a tile.
#include <algorithm>

#include "kernel/legalize/legalizer.h"

namespace weft::kernel {

/// Sorts each line by ranks: an element's place is the number of those that come before it. Of equal elements those
/// with a smaller index come first; NaN comes last.
void Legalizer::sort(const Inst& inst) {
  const Type from = type(inst.args[0]);
  const auto axis = static_cast<size_t>(inst.axis);
  const int64_t extent = from.dims[axis];
  std::vector<View> to;
  for (const Value v : inst.args) stored_whole(v);
  for (const Value v : inst.results) to.push_back(scratch(type(v).dtype, type(v).dims));
  const View keys = *held(inst.args[0]).view;
  const auto line = [&](const std::vector<Value>& position) {  // of the other axes
    const auto base = [&](const View& v) {
      Value at = v.offset;
      for (size_t k = 0, next = 0; k < v.dims.size(); ++k)
        if (k != axis) at = add(at, mul(position[next++], index(v.strides[k])));
      return at;
    };
    const auto key = [&](Value i, int64_t width) {
      return b_.load(keys.ref, add(base(keys), mul(i, index(keys.strides[axis]))), {width}, {keys.strides[axis]});
    };
    each_part(extent, no_value, registers_.bytes / 4 * 2, [&](Value start, int64_t width) {
      const auto all = [&](int64_t v) { return b_.constant(int64, Number::of_int(v), {width}); };
      const Value own = key(start, width), lanes = b_.add(b_.arange(width), b_.broadcast(start, {width}));
      const Value rank =
          b_.loop(index(0), index(extent), index(1), {all(0)}, [&](Value j, const std::vector<Value>& count) {
            Value next = no_value;
            in_frame([&] {
              const Value other = b_.broadcast(lane(key(j, 1)), {width});
              Value before = inst.reverse ? b_.lt(own, other) : b_.lt(other, own),
                    equal = b_.scalar(ScalarOp::eq, {own, other});
              if (is_float(from.dtype)) {
                const Value nan = b_.scalar(ScalarOp::ne, {own, own}), number = b_.scalar(ScalarOp::eq, {other, other});
                before = b_.scalar(ScalarOp::bit_or, {before, b_.scalar(ScalarOp::bit_and, {nan, number})});
                const Value both = b_.scalar(ScalarOp::bit_and, {nan, b_.scalar(ScalarOp::bit_not, {number})});
                equal = b_.scalar(ScalarOp::bit_or, {equal, both});
              }
              const Value first = b_.scalar(ScalarOp::bit_and, {equal, b_.lt(b_.broadcast(j, {width}), lanes)});
              next = b_.add(count[0], b_.cast(b_.scalar(ScalarOp::bit_or, {before, first}), int64));
            });
            return std::vector<Value>{next};
          })[0];
      for (size_t k = 0; k < to.size(); ++k) {
        const View& view = *held(inst.args[k]).view;
        const Value moved =
            b_.load(view.ref, add(base(view), mul(start, index(view.strides[axis]))), {width}, {view.strides[axis]});
        const Value position_of = b_.add(b_.mul(rank, all(to[k].strides[axis])), b_.broadcast(base(to[k]), {width}));
        b_.scatter(to[k].ref, moved, position_of);
      }
    });
  };
  std::vector<Value> position;
  const std::function<void()> nest = [&] {
    if (position.size() + 1 == from.dims.size()) return line(position);
    const size_t k = position.size() < axis ? position.size() : position.size() + 1;
    each(index(0), index(from.dims[k]), 1, [&](Value i) {
      position.push_back(i);
      nest();
      position.pop_back();
    });
  };
  nest();
  for (size_t k = 0; k < to.size(); ++k) held(inst.results[k]).view = to[k];
}

/// Counts in scratch, one element after the other.
void Legalizer::histogram(const Inst& inst) {
  const int64_t bins = inst.type.dims[0];
  const View to = scratch(int32, inst.type.dims);
  each_chunk(inst.type.dims, {},
             [&](const Chunk& at) { write(to, at, b_.constant(int32, Number::of_int(0), {at.width})); });
  const auto count = [&](Value one) {
    const Value i = b_.cast(one, int64);
    const Value inside = b_.scalar(ScalarOp::bit_and, {b_.scalar(ScalarOp::le, {index(0), i}), b_.lt(i, index(bins))});
    b_.when(inside, [&] {
      b_.store(to.ref, b_.add(b_.load(to.ref, i, {}, {}), b_.constant(int32, Number::of_int(1))), i, {});
    });
  };
  const Value v = inst.args[0];
  if (type(v).rank() == 0) count(scalar(v));
  else {
    const View& from = stored(v);
    std::vector<Value> position;
    const std::function<void()> nest = [&] {
      if (position.size() == from.dims.size()) {
        const Chunk one{{position.begin(), position.end() - 1}, position.back(), 1};
        return count(lane(read(from, one)));
      }
      each(index(0), index(from.dims[position.size()]), 1, [&](Value i) {
        position.push_back(i);
        nest();
        position.pop_back();
      });
    };
    nest();
  }
  held(inst.results[0]).view = to;
}

}  // namespace weft::kernel
