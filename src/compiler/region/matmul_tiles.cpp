#include "compiler/region/matmul_tiles.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace weft::compiler {

namespace {

constexpr MatmulTile tiles_of_two_bytes[] = {
    {128, 256, 64, 1.0}, {128, 128, 64, 0.85}, {64, 256, 64, 0.8}, {128, 64, 64, 0.68}, {64, 64, 64, 0.5},
};
constexpr MatmulTile tiles_of_tf32[] = {
    {128, 128, 32, 1.0},
    {128, 64, 32, 0.8},
    {64, 64, 32, 0.7},
};

constexpr int64_t least_stages = 3, most_accumulators = 128, threads_of_group = 128;

/// Returns the bytes of shared memory of the stages that keep tensor cores busy, for operands of `size` bytes an
/// element.
int64_t stage_bytes(const MatmulTile& t, int64_t size) {
  return least_stages * (t.rows + t.columns) * t.depth * size + 2048;  // with alignment, and what threads exchange
}

/// Returns whether a thread has registers for its sums and for what it has loaded of a K slice.
bool registers_suffice(const MatmulTile& t, const LoadedBytes& loaded) {
  constexpr double all = 255, of_addresses = 56;  // registers of a thread
  const double sums = static_cast<double>(t.rows * t.columns),
               threads = threads_of_group * std::ceil(sums / threads_of_group / most_accumulators),
               slice = static_cast<double>(t.depth) *
                       (static_cast<double>(t.rows) * loaded.a + static_cast<double>(t.columns) * loaded.b);
  return (sums + slice / 4) / threads + of_addresses <= all;
}

}  // namespace

MatmulTiling matmul_tiling(const target::Machine& machine, Dtype operands, int64_t batches, int64_t rows,
                           int64_t columns, const LoadedBytes& loaded) {
  MatmulTiling best;
  double least = 0;
  for (const MatmulTile& t : operands.size() == 4 ? std::span<const MatmulTile>(tiles_of_tf32)
                                                  : std::span<const MatmulTile>(tiles_of_two_bytes)) {
    if (stage_bytes(t, operands.size()) > machine.tensor_core_bytes(operands)) continue;
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
