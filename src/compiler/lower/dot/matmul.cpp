// Matmuls on tensor cores, and exact ones of float32 on a GPU. A loop along k multiplies tiles of both operands, which
// it reads from memory with any strides or computes from what it reads there (a prologue), as a user's kernel does; the
// target copies them ahead. The program then computes the epilogue and stores. Sums are float32 in the target's order:
// the bits are the same in every run, but differ from those of the other forms.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/dot_prologue.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t columns_of_part = 64;  // two lines of float32, one of 16 bits in shared memory

/// Returns the axis along which elements of the arrays of a prologue follow each other: rows, where an array that has
/// both axes lies so, and none along the depth.
Along contiguous_axis(const kernel::Epilogue& steps) {
  bool along_rows = false;
  for (const kernel::EpilogueOperand& x : steps.operands) {
    if (x.m == 0 || x.n == 0) continue;
    if (x.n == 1) return Along::depth;
    along_rows = along_rows || x.m == 1;
  }
  return along_rows ? Along::row : Along::depth;
}

}  // namespace

/// Loads a tile of one operand as tensor cores read it: in the operands' dtype, computed where the side has a prologue.
Value DotLowering::matmul_operand(const Side& side, Value row, Value depth, const std::vector<int64_t>& dims,
                                  const std::vector<Along>& axes, const std::vector<Value>& limits) {
  if (!side.prologue.empty()) {
    // Threads that follow each other load elements that do: the axis along which the largest array lies is the last.
    const Along last = contiguous_axis(side.prologue.steps);
    const bool turned = axes[1] != last;
    const auto in_order = [&](const auto& two) {
      return turned ? std::remove_cvref_t<decltype(two)>{two[1], two[0]} : two;
    };
    const Value v = b_.cast(load_computed(side, row, depth, in_order(dims), in_order(axes), in_order(limits)), d_.a);
    return turned ? b_.transpose(v) : v;
  }
  Value at = b_.add(side.base, b_.mul(row, b_.index(side.row)));
  at = b_.add(at, b_.mul(depth, b_.index(side.depth)));
  std::vector<int64_t> strides;
  for (const Along axis : axes) strides.push_back(axis == Along::row ? side.row : side.depth);
  return b_.load(side.ref, at, dims, std::move(strides), limits);
}

/// Emits the tensor-core form. With `exchanged`, A is the right operand, and C is computed as [n, m].
void DotLowering::matmul_form(bool exchanged) {
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  const int64_t of_m = schedule_.rows.count(Level::lanes), of_n = schedule_.lanes.count(Level::lanes),
                bm = exchanged ? of_n : of_m, bn = exchanged ? of_m : of_n, depth = schedule_.loop.count(Level::lanes);
  Value m0, n0;
  tiles(of_m, of_n, m0, n0, schedule_.staging.raster);
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0;
  const Dim& row_dim = *(plan_.extents.end() - (exchanged ? 2 : 3));
  const Dim& column_dim = *(plan_.extents.end() - (exchanged ? 3 : 2));
  const Dim& depth_dim = *(plan_.extents.end() - 1);
  const Value row_limit = row_dim.is_static() && rows % bm == 0 ? no_value : b_.sub(exchanged ? n_ : m_, r0);
  const Value column_limit = column_dim.is_static() && columns % bn == 0 ? no_value : b_.sub(exchanged ? m_ : n_, c0);
  const bool whole = depth_dim.is_static() && d_.k % depth == 0;
  const bool rounds = d_.a == float32 && d_.numerics.tf32;
  const auto precision = rounds ? kernel::DotPrecision::tf32 : kernel::DotPrecision::exact;
  const Value sums =
      b_.loop(b_.index(0), k_, b_.index(depth), {nothing({bm, bn})}, [&](Value k, const std::vector<Value>& carried) {
        const Value depth_limit = whole ? no_value : b_.sub(k_, k);
        const Value l = matmul_operand(left, r0, k, {bm, depth}, {Along::row, Along::depth}, {row_limit, depth_limit});
        const Value r =
            matmul_operand(right, c0, k, {depth, bn}, {Along::depth, Along::row}, {depth_limit, column_limit});
        return std::vector<Value>{b_.dot(l, r, carried[0], precision)};
      })[0];
  const std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  // Parts of the columns: an epilogue has registers for few elements beside the sums.
  const bool parts =
      plan_.epilogue.steps.size() > 1 && d_.a != float32 && cx_.target.machine().whole_rows_of_products();
  const int64_t part = parts ? std::gcd(columns_of_part, bn) : bn;
  for (int64_t at = 0; at < bn; at += part) {
    const Value c = part == bn ? sums : b_.slice(sums, {0, static_cast<int>(at)}, {bm, part}, {1, 1});
    const Value column = b_.add(c0, b_.index(at)),
                limit = column_limit == no_value ? no_value : b_.sub(column_limit, b_.index(at));
    store(c, exchanged ? column : r0, exchanged ? r0 : column, strides, {row_limit, limit}, exchanged);
  }
  any_size_ = true;
}

}  // namespace weft::compiler
