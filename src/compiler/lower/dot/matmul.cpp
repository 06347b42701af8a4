// Matmuls on tensor cores. One instruction (kernel::Op::matmul) computes a program's tile of C: it reads both operands
// from memory with any strides and leaves the sums in scratch. The program then loads panels of the tile, adds bias and
// residual, applies the activation and stores. Sums are float32 in the target's order: the bits are the same in every
// run, but differ from those of the other forms.
#include <algorithm>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/matmul_tiles.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

// Rows of tiles that alternate, so that programs that run at the same time read less than the L2 holds.
constexpr int64_t tiles_of_group = 4;

}  // namespace

bool DotLowering::matmul_fits() const {
  return d_.a == d_.b && t_ == float32 && plan_.a_prologue.empty() && plan_.b_prologue.empty() &&
         cx_.target.machine().tensor_core_bytes(d_.a) > 0 && (d_.a != float32 || d_.numerics.tf32) && d_.m > 1 &&
         d_.n > 1 && d_.k < (int64_t{1} << 30);
}

/// Emits the tensor-core form. With `exchanged`, A is the right operand, and C is computed as [n, m].
void DotLowering::matmul_form(bool exchanged) {
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  int64_t batches = 1;
  for (int64_t n : d_.batch) batches *= n;
  const MatmulTile* const tile = matmul_tiling(cx_.target.machine(), d_.a, batches, rows, columns).tile;
  const int64_t bm = tile->rows, bn = tile->columns, pitch = bn + matmul_line_padding;
  Value m0, n0;
  tiles(exchanged ? bn : bm, exchanged ? bm : bn, m0, n0, tiles_of_group);
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0;
  const Dim& row_dim = *(plan_.extents.end() - (exchanged ? 2 : 3));
  const Dim& column_dim = *(plan_.extents.end() - (exchanged ? 3 : 2));
  const Value row_limit = row_dim.is_static() && rows % bm == 0 ? no_value : b_.sub(exchanged ? n_ : m_, r0);
  const Value column_limit = column_dim.is_static() && columns % bn == 0 ? no_value : b_.sub(exchanged ? m_ : n_, c0);
  const auto side = [&](const Side& s, Value first, Value limit) {
    return kernel::Builder::MatmulSide{s.ref, b_.add(s.base, b_.mul(first, b_.index(s.row))), s.row, s.depth, limit};
  };
  const kernel::MatmulSchedule& schedule = tile->schedule;
  const kernel::Ref sums = b_.local(float32, bm * pitch);
  b_.matmul(sums, bm, bn, pitch, side(left, r0, row_limit), side(right, c0, column_limit), k_, schedule);

  const int64_t threads = 32 * bm * bn / (schedule.rows * schedule.columns), panel = std::min(bm, 32 * threads / bn);
  const std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  const Value last = row_limit == no_value ? b_.index(bm) : b_.min(b_.index(bm), row_limit);
  b_.loop(b_.index(0), last, b_.index(panel), {}, [&](Value at, const std::vector<Value>&) {
    const Value c = b_.load(sums, b_.mul(at, b_.index(pitch)), {panel, bn}, {pitch, 1}), row = b_.add(r0, at);
    const Value limit = row_limit == no_value ? no_value : b_.sub(row_limit, at);
    store(c, exchanged ? c0 : row, exchanged ? row : c0, strides, {limit, column_limit}, exchanged);
    return std::vector<Value>{};
  });
}

}  // namespace weft::compiler
