#include "compiler/region/matmul_tiles.h"

#include <algorithm>
#include <span>

namespace weft::compiler {

namespace {

constexpr MatmulTile tiles_of_two_bytes[] = {
    {128, 256, {64, 4, 64, 64}, 1.0}, {128, 128, {64, 5, 64, 64}, 0.85}, {128, 128, {64, 5, 64, 32}, 0.8},
    {128, 64, {64, 4, 64, 32}, 0.68}, {64, 64, {64, 5, 32, 32}, 0.5},
};
constexpr MatmulTile tiles_of_tf32[] = {
    {128, 128, {32, 3, 64, 64}, 1.0},
    {128, 128, {32, 3, 64, 32}, 0.9},
    {128, 64, {32, 4, 32, 32}, 0.8},
    {64, 64, {32, 4, 32, 32}, 0.7},
};

/// Returns the bytes of shared memory that a program with this tile needs, for operands of `size` bytes an element.
int64_t tile_bytes(const MatmulTile& t, int64_t size) {
  const int64_t ring = t.schedule.stages * (t.rows + t.columns) * t.schedule.depth * size,
                sums = t.rows * (t.columns + matmul_line_padding) * 4;
  return std::max(ring, sums) + 2048 + 4 * t.columns;  // plus alignment, and what threads exchange
}

/// Returns whether a thread has registers for its sums, for the fragments of two steps along k, and for what it has
/// loaded of the next K slice.
bool registers_suffice(const MatmulTile& t, const LoadedBytes& loaded) {
  constexpr double all = 255, of_addresses = 31;  // registers of a thread
  const kernel::MatmulSchedule& how = t.schedule;
  const int64_t sums = int64_t{how.rows} * how.columns / 32, fragments = 2 * (how.rows + how.columns) / 4,
                threads = 32 * t.rows * t.columns / (int64_t{how.rows} * how.columns);
  const double slice = how.depth * (static_cast<double>(t.rows) * loaded.a + static_cast<double>(t.columns) * loaded.b);
  return static_cast<double>(sums + fragments) + slice / 4 / static_cast<double>(threads) + of_addresses <= all;
}

}  // namespace

MatmulTiling matmul_tiling(const target::Machine& machine, Dtype operands, int64_t batches, int64_t rows,
                           int64_t columns, const LoadedBytes& loaded) {
  MatmulTiling best;
  double least = 0;
  for (const MatmulTile& t : operands.size() == 4 ? std::span<const MatmulTile>(tiles_of_tf32)
                                                  : std::span<const MatmulTile>(tiles_of_two_bytes)) {
    if (tile_bytes(t, operands.size()) > machine.tensor_core_bytes(operands)) continue;
    if (loaded.a + loaded.b > 0 && !registers_suffice(t, loaded)) continue;
    const int64_t programs = batches * ((rows + t.rows - 1) / t.rows) * ((columns + t.columns - 1) / t.columns),
                  waves = (programs + machine.processors - 1) / machine.processors;
    const double time = static_cast<double>(waves * t.rows * t.columns) / t.rate;
    if (best.tile && time >= least) continue;
    best.tile = &t;
    least = time;
  }
  const double elements = static_cast<double>(batches) * static_cast<double>(rows) * static_cast<double>(columns);
  if (least > 0) best.share = elements / static_cast<double>(machine.processors) / least;
  return best;
}

}  // namespace weft::compiler
