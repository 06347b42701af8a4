// Matmuls on tensor cores, and exact ones of float32 on a GPU: the kernel of kernels/gemm.h. Tiles of both operands are
// read from memory with any strides, or computed from what is read there (a prologue); the target copies them ahead. Of
// the sums the program computes the epilogue and stores. Sums are float32 in the target's order: the bits are the same
// in every run, but differ from those of the other forms.
#include <functional>
#include <numeric>
#include <type_traits>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/dot_prologue.h"
#include "kernel/language/trace.h"
#include "kernels/gemm.h"

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
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const auto of = [&](const AxisDivision& m, const AxisDivision& n) { return (exchanged ? n : m).count(Level::lanes); };
  kernels::GemmTile tile{of(schedule_.rows, schedule_.lanes), of(schedule_.lanes, schedule_.rows),
                         schedule_.loop.count(Level::lanes)};
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n,
                batches = std::accumulate(d_.batch.begin(), d_.batch.end(), int64_t{1}, std::multiplies<>());
  const k::Grid grid = kernels::gemm_grid(batches, rows, columns, tile);
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
  kernels::Gemm g{batches, rows, columns, k::Index(trace.any(k_)), tile, schedule_.staging.raster};
  if (d_.a == float32 && d_.numerics.tf32) g.precision = k::Precision::tf32;
  g.left = [&](const kernels::GemmOrigin& at, const k::Index& depth) {
    const Value r = value(at.row), k = value(depth);
    return trace.any(matmul_operand(left, r, k, {tile.rows, tile.depth}, {Along::row, Along::depth},
                                    {limit(row_ends, row_end, r), limit(depth_ends, k_, k)}));
  };
  g.right = [&](const kernels::GemmOrigin& at, const k::Index& depth) {
    const Value c = value(at.column), k = value(depth);
    return trace.any(matmul_operand(right, c, k, {tile.depth, tile.columns}, {Along::depth, Along::row},
                                    {limit(depth_ends, k_, k), limit(column_ends, column_end, c)}));
  };
  const std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  g.finish = [&](const kernels::GemmOrigin& at, const k::Any& sums) {
    const Value r = value(at.row), c = value(at.column);
    store(trace.value(sums, {}), exchanged ? c : r, exchanged ? r : c, strides,
          {limit(row_ends, row_end, r), limit(column_ends, column_end, c)}, exchanged);
  };
  const bool parts =
      plan_.epilogue.steps.size() > 1 && d_.a != float32 && cx_.target.machine().whole_rows_of_products();
  g.part = parts ? kernels::usual_part : 0;
  kernels::gemm(g);
  any_size_ = true;
}

}  // namespace weft::compiler
