// Products on a GPU: the kernel of kernels/gemm/gemm.h. On tensor cores, and of exact float32, its tiles are a
// schedule's; the target copies tiles of operands ahead, or what they are computed from. Sums of floats are float32 in
// the target's order: the bits are the same in every run, but differ from those of a CPU. All other products have
// square tiles, whose slices of the contracted axis lie in shared memory.
#include <algorithm>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/dot_prologue.h"
#include "compiler/region/matmul_work.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

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

/// Returns the tile of a product without a schedule: 16, 32 or 64 rows and columns.
kernels::GemmTile DotLowering::square_tile() const {
  const auto side = [](int64_t extent) { return extent <= 16 ? 16 : extent <= 32 ? 32 : 64; };
  return {side(d_.m), side(d_.n), 16};
}

/// Loads a tile of one operand as its products read it: with a schedule in the operands' dtype, else in that of the
/// sums. Threads that follow each other load elements that do.
Value DotLowering::gpu_operand(const Side& side, const Piece& piece) {
  if (is_tiled() && side.prologue.empty()) return load_plain(side, piece);  // by the target, in any order
  const auto stride = [&](Along axis) { return axis == Along::row ? side.row : side.depth; };
  const bool turned = is_tiled() ? piece.axes[1] != contiguous_axis(side.prologue.steps)
                                 : stride(piece.axes[1]) != 1 && stride(piece.axes[0]) == 1;
  const Value v = load(side, turned ? piece.turned() : piece, is_tiled() ? d_.a : t_);
  return turned ? b_.transpose(v) : v;
}

/// Emits the product. Where C is computed as [n, m], A is the right operand.
void DotLowering::gpu_form() {
  const bool exchanged = is_tiled() && computes_transposed(plan_, cx_.target.machine());
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const auto of = [&](const AxisDivision& m, const AxisDivision& n) { return (exchanged ? n : m).count(Level::lanes); };
  const kernels::GemmTile tile =
      is_tiled() ? kernels::GemmTile{of(schedule_.rows, schedule_.lanes), of(schedule_.lanes, schedule_.rows),
                                     schedule_.loop.count(Level::lanes)}
                 : square_tile();
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  const k::Grid grid = kernels::gemm_grid(batches(), rows, columns, tile);
  for (const k::GridAxis& axis : grid) grid_ *= axis.extent;
  k::Trace trace("dot", b_, grid);
  const k::TraceScope scope(trace);
  begin_batch(trace.ids[0]);

  // Limits guard edges: of an axis that is no whole number of tiles, or of a length that varies.
  const auto ends = [&](size_t back, int64_t extent, int64_t part) {
    return !(plan_.extents.end() - static_cast<std::ptrdiff_t>(back))->is_static() || extent % part != 0;
  };
  const bool row_ends = ends(exchanged ? 2 : 3, rows, tile.rows),
             column_ends = ends(exchanged ? 3 : 2, columns, tile.columns), depth_ends = ends(1, d_.k, tile.depth);
  const Value row_end = exchanged ? n_ : m_, column_end = exchanged ? m_ : n_;
  const auto value = [&](const k::Index& i) { return trace.value(i.any(), {}); };
  const auto limit = [&](bool guarded, Value end, Value first) { return guarded ? b_.sub(end, first) : no_value; };
  kernels::Gemm g{batches(), rows, columns, k::Index(trace.any(k_)), tile};
  g.sums = t_;
  if (is_tiled()) g.band = schedule_.staging.raster;
  if (d_.a == float32 && d_.numerics.tf32) g.precision = k::Precision::tf32;
  g.left = [&](const kernels::GemmOrigin& at, const k::Index& depth) {
    const Value r = value(at.row), k = value(depth);
    return trace.any(gpu_operand(left, {r,
                                        k,
                                        {tile.rows, tile.depth},
                                        {Along::row, Along::depth},
                                        {limit(row_ends, row_end, r), limit(depth_ends, k_, k)}}));
  };
  g.right = [&](const kernels::GemmOrigin& at, const k::Index& depth) {
    const Value c = value(at.column), k = value(depth);
    return trace.any(gpu_operand(right, {c,
                                         k,
                                         {tile.depth, tile.columns},
                                         {Along::depth, Along::row},
                                         {limit(depth_ends, k_, k), limit(column_ends, column_end, c)}}));
  };
  g.finish = [&](const kernels::GemmOrigin& at, const k::Any& sums) {
    const Value r = value(at.row), c = value(at.column);
    store(trace.value(sums, {}), r, c, {limit(row_ends, row_end, r), limit(column_ends, column_end, c)}, exchanged);
  };
  const bool parts =
      is_tiled() && plan_.epilogue.steps.size() > 1 && d_.a != float32 && cx_.target.machine().whole_rows_of_products();
  g.part = parts ? kernels::usual_part : 0;
  kernels::gemm(g);
}

}  // namespace weft::compiler
