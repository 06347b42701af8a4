#include "kernels/gemm/gemm.h"

#include <algorithm>

namespace weft::kernels {

using k::Index;

namespace {

GemmOrigin origin_of(const Gemm& g) {
  const int64_t down = k::cdiv(g.rows, g.tile.rows), across = k::cdiv(g.columns, g.tile.columns);
  const auto [row, column] = k::swizzle2d(k::program_id(1), down, across, g.band);
  return {k::program_id(0), row * g.tile.rows, column * g.tile.columns};
}

/// Gives the columns of the sums to the caller, some at a time.
void finish(const Gemm& g, const GemmOrigin& origin, const k::Any& sums) {
  const GemmTile& t = g.tile;
  const int64_t part = g.part > 0 ? g.part : t.columns;
  for (int64_t at = 0; at < t.columns; at += part) {
    const int64_t columns = std::min(part, t.columns - at);
    g.finish({origin.batch, origin.row, origin.column + at},
             columns == t.columns ? sums : k::slice(sums, {0, at}, {t.rows, columns}));
  }
}

}  // namespace

k::Grid gemm_grid(int64_t batches, int64_t rows, int64_t columns, const GemmTile& tile) {
  return {batches, k::cdiv(rows, tile.rows) * k::cdiv(columns, tile.columns)};
}

void gemm(const Gemm& g) {
  const GemmOrigin origin = origin_of(g);
  k::Cell sums(k::constant(g.sums, 0, {g.tile.rows, g.tile.columns}));
  k::loop(Index(0), g.depth, g.tile.depth,
          [&](const Index& at) { sums.set(k::dot(g.left(origin, at), g.right(origin, at), sums.get(), g.precision)); });
  finish(g, origin, sums.get());
}

}  // namespace weft::kernels
