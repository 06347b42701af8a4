// Matmuls on tensor cores. One instruction (kernel::Op::matmul) computes a program's tile of C: it reads both operands
// from memory with any strides, or computes it from what it reads there (a prologue), and leaves the sums in scratch.
// The program then loads panels of the tile, adds bias and residual, applies the activation and stores. Sums are
// float32 in the target's order: the bits are the same in every run, but differ from those of the other forms.
#include <algorithm>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/dot_prologue.h"
#include "compiler/region/matmul_tiles.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

// Rows of tiles that alternate, so that programs that run at the same time read less than the L2 holds.
constexpr int64_t tiles_of_group = 4;

}  // namespace

bool DotLowering::matmul_fits() const {
  return d_.a == d_.b && t_ == float32 && cx_.target.machine().tensor_core_bytes(d_.a) > 0 &&
         (d_.a != float32 || d_.numerics.tf32) && d_.m > 1 && d_.n > 1 && d_.k < (int64_t{1} << 30);
}

/// Returns one side of the instruction, whose first row in this program is `first`.
kernel::Builder::MatmulSide DotLowering::matmul_side(const Side& side, Value first, Value limit) {
  if (side.prologue.empty())
    return {side.ref, b_.add(side.base, b_.mul(first, b_.index(side.row))), side.row, side.depth, limit};
  const kernel::Epilogue& e = side.prologue.steps;
  kernel::Builder::MatmulSide out;
  out.offset = first, out.limit = limit;
  for (size_t k = 0; k < e.operands.size(); ++k) {
    const kernel::EpilogueOperand& x = e.operands[k];
    const kernel::Ref ref = emit_.param(side.prologue.operands[k].node, false);
    out.sources.emplace_back(kernel::MatmulSource{ref, false, x.m, x.n, x.m_jump, x.n_jump}, side.bases[k]);
  }
  out.prologue = [this, &e](const std::vector<Value>& elements) {
    std::vector<Value> values;
    for (const kernel::EpilogueStep& s : e.steps) {
      const bool reads = s.kind == kernel::EpilogueStep::Kind::operand;
      values.push_back(reads ? b_.cast(elements[static_cast<size_t>(s.operand)], compute_dtype(s.dtype))
                             : step(s, values, {}));
    }
    return b_.cast(values[static_cast<size_t>(e.result)], d_.a);
  };
  return out;
}

/// Emits the tensor-core form. With `exchanged`, A is the right operand, and C is computed as [n, m].
void DotLowering::matmul_form(bool exchanged) {
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  int64_t batches = 1;
  for (int64_t n : d_.batch) batches *= n;
  const int64_t chunk = 16 / d_.a.size();
  const auto loaded = [&](const Side& s) { return s.prologue.empty() ? 0 : loaded_bytes(s.prologue.steps, chunk); };
  const LoadedBytes bytes{loaded(exchanged ? bb_ : a_), loaded(exchanged ? a_ : bb_)};
  const MatmulTile* const tile = matmul_tiling(cx_.target.machine(), d_.a, batches, rows, columns, bytes).tile;
  const int64_t bm = tile->rows, bn = tile->columns, pitch = bn + matmul_line_padding;
  Value m0, n0;
  tiles(exchanged ? bn : bm, exchanged ? bm : bn, m0, n0, tiles_of_group);
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0;
  const Dim& row_dim = *(plan_.extents.end() - (exchanged ? 2 : 3));
  const Dim& column_dim = *(plan_.extents.end() - (exchanged ? 3 : 2));
  const Value row_limit = row_dim.is_static() && rows % bm == 0 ? no_value : b_.sub(exchanged ? n_ : m_, r0);
  const Value column_limit = column_dim.is_static() && columns % bn == 0 ? no_value : b_.sub(exchanged ? m_ : n_, c0);
  const kernel::MatmulSchedule& schedule = tile->schedule;
  const kernel::Ref sums = b_.local(float32, bm * pitch);
  b_.matmul(sums, bm, bn, pitch, matmul_side(left, r0, row_limit), matmul_side(right, c0, column_limit), k_, schedule);

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
