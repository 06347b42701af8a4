// Renders operators that move lanes: broadcast, reshape, transpose, reduce, dot.
#include <array>
#include <bit>

#include "target/cpu/codegen/renderer.h"

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

// Renders a reshape. [n] and [1,n] are one row; [n,1] is n rows of one lane.
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

// Transposes a tile; extents that are powers of two are divided into square blocks.
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
  const int64_t side = std::min(m, n);
  std::vector<Rows> squares;  // square blocks of the result: of one row of blocks, or of one column
  for (int64_t at = 0; at < std::max(m, n); at += side) {
    Rows block;
    for (int64_t r = 0; r < side; ++r)
      block.push_back(m <= n ? ir_.slice(in[static_cast<size_t>(r)], at, side) : in[static_cast<size_t>(at + r)]);
    transpose_register_tile(block);
    squares.push_back(std::move(block));
  }
  if (m <= n) {
    for (Rows& block : squares) out.insert(out.end(), block.begin(), block.end());
    return out;
  }
  for (size_t r = 0; r < static_cast<size_t>(side); ++r) {
    std::vector<IrValue> parts;
    for (const Rows& block : squares) parts.push_back(block[r]);
    out.push_back(ir_.join(parts));
  }
  return out;
}

// Transposes a square block in registers by Eklundh's method: off-diagonal blocks of side 1, 2, 4 … are exchanged. Only
// the first step moves single elements, and 16-bit ones by shifts, which are cheaper than permutations of words.
void Renderer::transpose_register_tile(Rows& rows) {
  const int64_t n = static_cast<int64_t>(rows.size());
  const bool words = ir_.element(rows[0]) == ir_.i16 && n >= 4;
  const IrType element = LLVMTypeOf(rows[0]);
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t r = 0; r < n; ++r) {
      if (r & step) continue;
      IrValue &a = rows[static_cast<size_t>(r)], &b = rows[static_cast<size_t>(r + step)];
      if (words && step == 1) {
        const IrType pairs = ir_.vec(ir_.i32, n / 2);
        a = LLVMBuildBitCast(ir_.b, a, pairs, "");
        b = LLVMBuildBitCast(ir_.b, b, pairs, "");
        const IrValue low = ir_.bit_or(ir_.bit_and(a, ir_.same(a, 0xffff)), ir_.shl(b, 16));
        b = ir_.bit_or(ir_.lshr(a, 16), ir_.bit_and(b, ir_.same(b, ~int64_t{0xffff})));
        a = low;
        continue;
      }
      const int64_t unit = words ? 2 : 1, lanes = n / unit, distance = step / unit;
      std::vector<int> upper, lower;
      for (int64_t k = 0; k < lanes; ++k) {
        upper.push_back(static_cast<int>(k & distance ? lanes + k - distance : k));
        lower.push_back(static_cast<int>(k & distance ? lanes + k : k + distance));
      }
      const IrValue high = ir_.shuffle(a, b, upper);
      b = ir_.shuffle(a, b, lower);
      a = high;
    }
  if (words)
    for (IrValue& row : rows) row = LLVMBuildBitCast(ir_.b, row, element, "");
}

// Renders a reduction: combines the upper half of the axis onto the lower until one is left.
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
  // Several rows are reduced together once they are short: after a transposition each step is one operation on all of
  // them.
  const int64_t m = static_cast<int64_t>(now.size());
  const int64_t stop =
      m >= 4 && std::has_single_bit(static_cast<uint64_t>(m)) ? std::min<int64_t>(m, lanes_of(from)) : 1;
  for (IrValue& row : now)
    for (int64_t n = ir_.lanes(row); n > stop; n /= 2)
      row = merge(ir_.slice(row, 0, n / 2), ir_.slice(row, n / 2, n / 2));
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
  for (int k = 0; k < lanes; ++k)
    from.push_back(k - inst.axis >= 0 && k - inst.axis < lanes ? k - inst.axis : lanes + k);
  define(inst, {ir_.shuffle(single(inst.args[0]), single(inst.args[1]), from)});
}

void Renderer::exchange_lanes(const Inst& inst) {
  std::vector<int> from;
  for (int k = 0; k < static_cast<int>(lanes_of(inst.type)); ++k) from.push_back(k ^ inst.axis);
  define(inst, {ir_.shuffle(single(inst.args[0]), single(inst.args[0]), from)});
}

// Renders c[row] = fma(a[row,k] splat, b[k], c[row]) with ascending k: the rows of c are independent chains.
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
      c[r] = inst.type.dtype == int32 ? ir_.add(ir_.mul(args[0], args[1]), c[r])
                                      : apply(ScalarOp::fma, inst.type.dtype, args);
    }
  define(inst, std::move(c));
}

}  // namespace weft::target
