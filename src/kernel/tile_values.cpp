#include "kernel/tile_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/half.h"
#include "kernel/checked_memory.h"

namespace weft::kernel {
namespace {

/// The lines of a tile along an axis: element i of line j lies at start(j) + i · step.
struct Lines {
  size_t extent, step, count;
  Lines(const std::vector<int64_t>& dims, int axis) : extent(static_cast<size_t>(dims[static_cast<size_t>(axis)])) {
    step = count = 1;
    for (size_t k = static_cast<size_t>(axis) + 1; k < dims.size(); ++k) step *= static_cast<size_t>(dims[k]);
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    count /= extent;
  }
  size_t start(size_t line) const { return line / step * step * extent + line % step; }
};

/// Returns the row-major strides of a tile.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> out(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) out[k - 1] = out[k] * dims[k];
  return out;
}

/// Returns the elements of `v` at offset + Σ position[k] · strides[k].
TileValue strided(const std::vector<int64_t>& dims, const TileValue& v, int64_t offset,
                  const std::vector<int64_t>& strides) {
  TileValue out;
  each_element(dims, [&](size_t, const std::vector<int64_t>& position) {
    int64_t at = offset;
    for (size_t k = 0; k < position.size(); ++k) at += position[k] * strides[k];
    out.push_back(v[static_cast<size_t>(at)]);
  });
  return out;
}

/// Returns whether `a` comes before `b` in ascending order; NaN comes last.
bool before(Dtype t, const Number& a, const Number& b) {
  if (is_float(t)) return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f;
  return t == uint64 ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
}

/// Returns the states along one line.
std::vector<std::vector<Number>> states_of(const Lines& lines, size_t line, const std::vector<const TileValue*>& args) {
  std::vector<std::vector<Number>> out(lines.extent);
  for (size_t i = 0; i < lines.extent; ++i)
    for (const TileValue* tile : args) out[i].push_back((*tile)[lines.start(line) + i * lines.step]);
  return out;
}

}  // namespace

TileValue scalar_value(const Inst& inst, Dtype t, const std::vector<const TileValue*>& args) {
  TileValue out(static_cast<size_t>(inst.type.size()));
  Number numbers[most_arguments];
  for (size_t k = 0; k < out.size(); ++k) {
    for (size_t a = 0; a < args.size(); ++a) numbers[a] = (*args[a])[k];
    out[k] = reference(inst.scalar_op, t, numbers);
    if (is_float(inst.type.dtype)) out[k] = round_to(out[k], inst.type.dtype);
  }
  return out;
}

TileValue cast_value(const Inst& inst, Dtype from, const TileValue& v) {
  TileValue out = v;
  for (Number& n : out) n = reference_cast(n, from, inst.type.dtype);
  return out;
}

TileValue bitcast_value(const Inst& inst, Dtype from, const TileValue& v) {
  TileValue out = v;
  for (Number& n : out) {
    char bytes[8] = {};
    write_element(bytes, from, 0, n);
    n = read_element(bytes, inst.type.dtype, 0);
  }
  return out;
}

TileValue broadcast_value(const Inst& inst, const Type& from, const TileValue& v) {
  const size_t rank = inst.type.dims.size(), missing = rank - from.dims.size();
  const std::vector<int64_t> own = strides_of(from.dims);
  std::vector<int64_t> strides(rank, 0);
  for (size_t k = missing; k < rank; ++k) strides[k] = from.dims[k - missing] == 1 ? 0 : own[k - missing];
  return strided(inst.type.dims, v, 0, strides);
}

TileValue permute_value(const Inst& inst, const Type& from, const TileValue& v) {
  const std::vector<int64_t> own = strides_of(from.dims);
  std::vector<int64_t> strides;
  for (const int64_t axis : inst.axes) strides.push_back(own[static_cast<size_t>(axis)]);
  return strided(inst.type.dims, v, 0, strides);
}

TileValue slice_value(const Inst& inst, const Type& from, const TileValue& v) {
  std::vector<int64_t> strides = strides_of(from.dims);
  int64_t offset = 0;
  for (size_t k = 0; k < strides.size(); ++k) {
    offset += inst.axes[k] * strides[k];
    strides[k] *= inst.strides[k];
  }
  return strided(inst.type.dims, v, offset, strides);
}

TileValue cat_value(const Inst& inst, const std::vector<Type>& types, const std::vector<const TileValue*>& args) {
  TileValue out;
  const Lines all(inst.type.dims, inst.axis);
  for (size_t outer = 0; outer < all.count / all.step; ++outer)
    for (size_t k = 0; k < args.size(); ++k) {
      const auto part = all.step * static_cast<size_t>(types[k].dims[static_cast<size_t>(inst.axis)]);
      const auto first = args[k]->begin() + static_cast<std::ptrdiff_t>(outer * part);
      out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(part));
    }
  return out;
}

TileValue shift_value(const Inst& inst, const TileValue& v, const TileValue& into) {
  TileValue out = into;
  for (int64_t k = 0; k < inst.type.size(); ++k)
    if (k - inst.axis >= 0 && k - inst.axis < inst.type.size())
      out[static_cast<size_t>(k)] = v[static_cast<size_t>(k - inst.axis)];
  return out;
}

TileValue exchange_value(const Inst& inst, const TileValue& v) {
  TileValue out = v;
  for (size_t k = 0; k < out.size(); ++k) out[k] = v[k ^ static_cast<size_t>(inst.axis)];
  return out;
}

TileValue take_value(const Inst& inst, const Type& from, const TileValue& v, const TileValue& index) {
  const auto axis = static_cast<size_t>(inst.axis);
  const std::vector<int64_t> strides = strides_of(from.dims);
  TileValue out;
  each_element(inst.type.dims, [&](size_t lane, const std::vector<int64_t>& position) {
    int64_t at = std::clamp<int64_t>(index[lane].i, 0, from.dims[axis] - 1) * strides[axis];
    for (size_t k = 0; k < position.size(); ++k)
      if (k != axis) at += position[k] * strides[k];
    out.push_back(v[static_cast<size_t>(at)]);
  });
  return out;
}

TileValue histogram_value(const Inst& inst, const TileValue& index) {
  TileValue out(static_cast<size_t>(inst.type.size()), Number::of_int(0));
  for (const Number& n : index)
    if (n.i >= 0 && n.i < inst.type.size())
      out[static_cast<size_t>(n.i)] = Number::of_int(out[static_cast<size_t>(n.i)].i + 1);
  return out;
}

TileValue dot_value(const Inst& inst, const Type& a_type, const TileValue& a, const TileValue& b, TileValue c) {
  const size_t rank = inst.type.dims.size();
  const auto rows = static_cast<size_t>(inst.type.dims[rank - 2]),
             columns = static_cast<size_t>(inst.type.dims[rank - 1]),
             depth = static_cast<size_t>(a_type.dims[rank - 1]);
  const bool wide = inst.type.dtype == float64, tf32 = inst.precision != DotPrecision::exact;
  for (size_t k = 0; k < c.size(); ++k) {
    const size_t batch = k / (rows * columns), row = k / columns % rows, column = k % columns;
    const auto left = [&](size_t d) { return a[(batch * rows + row) * depth + d]; };
    const auto right = [&](size_t d) { return b[(batch * depth + d) * columns + column]; };
    if (inst.type.dtype == int32) {
      for (size_t d = 0; d < depth; ++d) c[k] = round_to(Number::of_int(c[k].i + left(d).i * right(d).i), int32);
      continue;
    }
    double sum = c[k].f;
    for (size_t d = 0; d < depth; ++d) {
      const double x = left(d).f, y = right(d).f;
      if (wide) sum = std::fma(x, y, sum);
      else if (!tf32) sum = std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(sum));
      else {
        const float head_x = float_to_tf32(static_cast<float>(x)), head_y = float_to_tf32(static_cast<float>(y));
        if (inst.precision == DotPrecision::tf32x3) {
          const float tail_x = float_to_tf32(static_cast<float>(x) - head_x),
                      tail_y = float_to_tf32(static_cast<float>(y) - head_y);
          sum = std::fma(tail_x, head_y, static_cast<float>(sum));
          sum = std::fma(head_x, tail_y, static_cast<float>(sum));
        }
        sum = std::fma(head_x, head_y, static_cast<float>(sum));
      }
    }
    c[k] = round_to(Number::of_real(sum), inst.type.dtype);
  }
  return c;
}

std::vector<TileValue> sort_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args) {
  std::vector<TileValue> out;
  for (const TileValue* tile : args) out.push_back(*tile);
  const Lines lines(type.dims, inst.axis);
  for (size_t line = 0; line < lines.count; ++line) {
    const auto at = [&](size_t i) { return lines.start(line) + i * lines.step; };
    std::vector<size_t> order(lines.extent);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
      const Number &a = (*args[0])[at(x)], &b = (*args[0])[at(y)];
      if (!inst.reverse) return before(type.dtype, a, b);
      const bool nan_b = is_float(type.dtype) && std::isnan(b.f), nan_a = is_float(type.dtype) && std::isnan(a.f);
      return nan_b ? !nan_a : !nan_a && before(type.dtype, b, a);
    });
    for (size_t k = 0; k < args.size(); ++k)
      for (size_t i = 0; i < lines.extent; ++i) out[k][at(i)] = (*args[k])[at(order[i])];
  }
  return out;
}

std::vector<TileValue> reduce_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args,
                                     const CombineValues& combine) {
  std::vector<TileValue> out(args.size());
  const Lines lines(type.dims, inst.axis);
  for (size_t line = 0; line < lines.count; ++line) {
    std::vector<std::vector<Number>> states = states_of(lines, line, args);
    while (states.size() > 1) {
      const size_t kept = std::bit_floor(states.size() - 1);
      for (size_t i = kept; i < states.size(); ++i) states[i - kept] = combine(states[i - kept], states[i]);
      states.resize(kept);
    }
    for (size_t k = 0; k < args.size(); ++k) out[k].push_back(states[0][k]);
  }
  return out;
}

std::vector<TileValue> scan_values(const Inst& inst, const Type& type, const std::vector<const TileValue*>& args,
                                   const CombineValues& combine) {
  std::vector<TileValue> out;
  for (const TileValue* tile : args) out.push_back(*tile);
  const Lines lines(type.dims, inst.axis);
  for (size_t line = 0; line < lines.count; ++line) {
    std::vector<std::vector<Number>> states = states_of(lines, line, args);
    if (inst.reverse) std::reverse(states.begin(), states.end());
    for (size_t d = 1; d < states.size(); d *= 2)
      for (size_t i = states.size(); i-- > d;) states[i] = combine(states[i - d], states[i]);
    if (inst.reverse) std::reverse(states.begin(), states.end());
    for (size_t k = 0; k < args.size(); ++k)
      for (size_t i = 0; i < lines.extent; ++i) out[k][lines.start(line) + i * lines.step] = states[i][k];
  }
  return out;
}

}  // namespace weft::kernel
