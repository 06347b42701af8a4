// Operators that move lanes: broadcast, reshape, transpose, reduce, dot.
#include <array>
#include <bit>

#include "target/cpu/renderer.h"

namespace weft::target {

using namespace kernel;

void Renderer::broadcast(const Inst& inst) {
  const Type& from = type(inst.args[0]);
  const Rows& in = rows(inst.args[0]);
  const int64_t m = rows_of(inst.type), n = lanes_of(inst.type);
  Rows out;
  for (int64_t r = 0; r < m; ++r) {
    const IrValue row = in[in.size() == 1 ? 0 : static_cast<size_t>(r)];
    out.push_back(lanes_of(from) == n ? row : ir_.splat(row, n));
  }
  define(inst, std::move(out));
}

// [n] and [1,n] are one row; [n,1] is n rows of one lane.
void Renderer::reshape(const Inst& inst) {
  const Rows& in = rows(inst.args[0]);
  const size_t m = static_cast<size_t>(rows_of(inst.type));
  if (in.size() == m) return define(inst, in);
  Rows out;
  if (m > 1) {
    for (size_t r = 0; r < m; ++r) out.push_back(ir_.extract(in[0], static_cast<int64_t>(r)));
  } else {
    out.push_back(LLVMGetPoison(ir_.vec(LLVMTypeOf(in[0]), static_cast<int64_t>(in.size()))));
    for (size_t r = 0; r < in.size(); ++r) out[0] = ir_.insert(out[0], in[r], static_cast<int64_t>(r));
  }
  define(inst, std::move(out));
}

// Powers of two: rows i and i + m/2 are interleaved, log2(m) times; the rows in sequence then hold the transposed tile lane after lane.
Rows Renderer::transpose(const Rows& in) {
  const int64_t m = static_cast<int64_t>(in.size()), n = ir_.lanes(in[0]);
  Rows out;
  if (n == 1) {
    IrValue row = LLVMGetPoison(ir_.vec(LLVMTypeOf(in[0]), m));
    for (int64_t r = 0; r < m; ++r) row = ir_.insert(row, in[static_cast<size_t>(r)], r);
    return {row};
  }
  if (m == 1 || !std::has_single_bit(static_cast<uint64_t>(m)) || !std::has_single_bit(static_cast<uint64_t>(n))) {
    for (int64_t j = 0; j < n; ++j) {
      IrValue row = LLVMGetPoison(ir_.vec(ir_.element(in[0]), m));
      for (int64_t r = 0; r < m; ++r) row = ir_.insert(row, ir_.extract(in[static_cast<size_t>(r)], j), r);
      out.push_back(row);
    }
    return out;
  }
  std::vector<int> low, high;
  for (int64_t k = 0; k < n; ++k) {
    low.push_back(static_cast<int>(k / 2 + (k % 2) * n));
    high.push_back(static_cast<int>(n / 2 + k / 2 + (k % 2) * n));
  }
  Rows now = in;
  for (int64_t width = 1; width < m; width *= 2) {
    Rows next;
    for (size_t r = 0; r < now.size() / 2; ++r) {
      const IrValue a = now[r], b = now[r + now.size() / 2];
      next.push_back(ir_.shuffle(a, b, low));
      next.push_back(ir_.shuffle(a, b, high));
    }
    now = std::move(next);
  }
  if (m <= n) {
    for (int64_t j = 0; j < n; ++j) out.push_back(ir_.slice(now[static_cast<size_t>(j * m / n)], j * m % n, m));
    return out;
  }
  while (ir_.lanes(now[0]) < m) {
    Rows next;
    for (size_t r = 0; r < now.size(); r += 2) next.push_back(ir_.concat(now[r], now[r + 1]));
    now = std::move(next);
  }
  return now;
}

// The upper half of the axis is combined onto the lower until one is left.
void Renderer::reduce(const Inst& inst) {
  const Type& from = type(inst.args[0]);
  const ScalarOp op = combine(inst.reducer);
  auto merge = [&](IrValue low, IrValue high) {
    const std::array<IrValue, 2> args{low, high};
    return apply(op, from.dtype, args);
  };
  Rows now = rows(inst.args[0]);
  if (from.rank() == 2 && inst.axis == 0) {
    for (; now.size() > 1; now.resize(now.size() / 2))
      for (size_t r = 0; r < now.size() / 2; ++r) now[r] = merge(now[r], now[r + now.size() / 2]);
    return define(inst, std::move(now));
  }
  // Several rows are reduced side by side once they are short: transposed, each step is one operation on all of them.
  const int64_t m = static_cast<int64_t>(now.size());
  const int64_t stop = m >= 4 && std::has_single_bit(static_cast<uint64_t>(m)) ? std::min<int64_t>(m, lanes_of(from)) : 1;
  for (IrValue& row : now)
    for (int64_t n = ir_.lanes(row); n > stop; n /= 2) row = merge(ir_.slice(row, 0, n / 2), ir_.slice(row, n / 2, n / 2));
  if (stop > 1) {
    now = transpose(now);
    for (; now.size() > 1; now.resize(now.size() / 2))
      for (size_t r = 0; r < now.size() / 2; ++r) now[r] = merge(now[r], now[r + now.size() / 2]);
  } else if (m > 1) {
    now = transpose(now);
  }
  define(inst, std::move(now));
}

void Renderer::shift_lanes(const Inst& inst) {
  const int lanes = static_cast<int>(lanes_of(inst.type));
  std::vector<int> from;  // lanes of v, then those of `into`
  for (int k = 0; k < lanes; ++k) from.push_back(k - inst.axis >= 0 && k - inst.axis < lanes ? k - inst.axis : lanes + k);
  define(inst, {ir_.shuffle(single(inst.args[0]), single(inst.args[1]), from)});
}

// c[row] = fma(a[row,k] splat, b[k], c[row]), k ascending: the rows of c are independent chains.
void Renderer::dot(const Inst& inst) {
  const Rows &a = rows(inst.args[0]), &b = rows(inst.args[1]);
  Rows c = rows(inst.args[2]);
  const Type& left = type(inst.args[0]);
  const size_t m = static_cast<size_t>(left.dims[0]), depth = static_cast<size_t>(left.dims[1]);
  const int64_t n = lanes_of(inst.type);
  const bool scalars = splatted_[static_cast<size_t>(inst.args[0])];
  for (size_t k = 0; k < depth; ++k)
    for (size_t r = 0; r < m; ++r) {
      const IrValue one = scalars ? a[r * depth + k] : ir_.extract(a[r], static_cast<int64_t>(k));
      const std::array<IrValue, 3> args{ir_.splat(one, n), b[k], c[r]};
      c[r] = inst.type.dtype == int32 ? ir_.add(ir_.mul(args[0], args[1]), c[r]) : apply(ScalarOp::fma, inst.type.dtype, args);
    }
  define(inst, std::move(c));
}

}  // namespace weft::target
