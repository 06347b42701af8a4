// Matmuls on tensor cores. One instruction (kernel::Op::matmul) computes a program's tile of C: it reads both operands
// from memory with any strides and leaves the sums in scratch. The program then loads panels of the tile, adds bias and
// residual, applies the activation and stores. Sums are float32 in the target's order: the bits are the same in every
// run, but differ from those of the other forms.
#include <algorithm>
#include <span>

#include "compiler/lower/dot/dot.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

/// A tile of C. `rate`: an SM's speed with it, relative to the fastest.
struct MatmulTile {
  int64_t rows, columns;
  kernel::MatmulSchedule schedule;
  double rate;
};
constexpr MatmulTile tiles_of_two_bytes[] = {
    {128, 256, {64, 4, 64, 64}, 1.0},
    {128, 128, {64, 5, 64, 64}, 0.85},
    {128, 64, {64, 4, 64, 32}, 0.68},
    {64, 64, {64, 5, 32, 32}, 0.5},
};
constexpr MatmulTile tiles_of_tf32[] = {
    {128, 128, {32, 3, 64, 64}, 1.0},
    {128, 64, {32, 4, 32, 32}, 0.8},
    {64, 64, {32, 4, 32, 32}, 0.7},
};
constexpr int64_t line_of_scratch = 8;  // padding that puts the rows of the tile into different banks
// Rows of tiles that alternate, so that programs that run at the same time read less than the L2 holds.
constexpr int64_t tiles_of_group = 4;

/// Returns the bytes of shared memory that a program with this tile needs, for operands of `size` bytes an element.
int64_t tile_bytes(const MatmulTile& t, int64_t size) {
  const int64_t ring = t.schedule.stages * (t.rows + t.columns) * t.schedule.depth * size,
                sums = t.rows * (t.columns + line_of_scratch) * 4;
  return std::max(ring, sums) + 2048 + 4 * t.columns;  // plus alignment, and what threads exchange
}

}  // namespace

bool DotLowering::matmul_fits() const {
  return d_.a == d_.b && t_ == float32 && cx_.target.machine().tensor_core_bytes(d_.a) > 0 &&
         (d_.a != float32 || d_.numerics.tf32) && d_.m > 1 && d_.n > 1 && d_.k < (int64_t{1} << 30);
}

/// Emits the tensor-core form. With `exchanged`, A is the right operand, and C is computed as [n, m].
void DotLowering::matmul_form(bool exchanged) {
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  int64_t batches = 1;
  for (int64_t n : d_.batch) batches *= n;
  // Chooses the tile that finishes first: SMs process tiles in waves, and all wait for the last one.
  const int64_t processors = cx_.target.machine().processors;
  const MatmulTile* tile = nullptr;
  double least = 0;
  for (const MatmulTile& t : d_.a.size() == 4 ? std::span<const MatmulTile>(tiles_of_tf32)
                                              : std::span<const MatmulTile>(tiles_of_two_bytes)) {
    if (tile_bytes(t, d_.a.size()) > cx_.target.machine().tensor_core_bytes(d_.a)) continue;
    const int64_t programs = batches * ((rows + t.rows - 1) / t.rows) * ((columns + t.columns - 1) / t.columns),
                  waves = (programs + processors - 1) / processors;
    const double time = static_cast<double>(waves * t.rows * t.columns) / t.rate;
    if (tile && time >= least) continue;
    tile = &t;
    least = time;
  }
  const int64_t bm = tile->rows, bn = tile->columns, pitch = bn + line_of_scratch;
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
