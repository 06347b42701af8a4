#include "compiler/region/matmul_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstdio>

namespace weft::compiler {

namespace {

constexpr int64_t least_stages = 3, most_stages = 8, most_accumulators = 128, threads_of_group = 128;
constexpr int64_t reserved_bytes = 18 << 10;  // of shared memory, for what threads exchange

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// Returns the threads of a program: a warpgroup for each 128 accumulators of its threads.
double threads_of(const MatmulTile& t) {
  return threads_of_group * std::ceil(static_cast<double>(t.rows * t.columns) / threads_of_group / most_accumulators);
}

int64_t stage_bytes(const MatmulTile& t, Dtype operands) { return (t.rows + t.columns) * t.depth * operands.size(); }

/// Returns whether a thread has registers for its sums and for what it has loaded of a K slice.
bool registers_suffice(const MatmulTile& t, const LoadedBytes& loaded) {
  constexpr double all = 255, of_addresses = 56;  // registers of a thread
  const double sums = static_cast<double>(t.rows * t.columns),
               slice = static_cast<double>(t.depth) *
                       (static_cast<double>(t.rows) * loaded.a + static_cast<double>(t.columns) * loaded.b);
  return (sums + slice / 4) / threads_of(t) + of_addresses <= all;
}

/// Returns the speed of an SM with a tile, of the fastest one's. Each multiply-add reads an element of A for each of
/// the tile's columns and one of B for each of its rows: fitted to 128 × 256, 128 × 128, 128 × 64 and 64 × 64 of bf16
/// on an H200, which reach 1, 0.85, 0.68 and 0.5.
double rate_of(const MatmulTile& t) {
  constexpr double reading = 96, best = 0.47;
  const double reuse = static_cast<double>(t.rows * t.columns) / static_cast<double>(t.rows + t.columns);
  return reuse / (reuse + reading) / best;
}

/// Returns the seconds that an SM takes for its tiles: multiplications, and epilogues that no other program of the SM
/// hides.
double seconds_of(const target::Machine& machine, const MatmulWork& w, const MatmulTile& t, bool two) {
  constexpr double filling = 1e-6;  // of the first slices, and the store of the last elements
  const auto processors = static_cast<double>(machine.processors);
  const int64_t programs = w.batches * tiles_of(w.rows, t.rows) * tiles_of(w.columns, t.columns),
                waves = tiles_of(programs, machine.processors);
  const auto elements = static_cast<double>(t.rows * t.columns);
  const double peak = machine.matmul_flops(w.operands, true) / processors,
               multiply = 2 * elements * static_cast<double>(w.depth) / (peak * rate_of(t)),
               epilogue = elements * (w.bytes / machine.bandwidth + w.operations / (machine.peak.f32 / 2)) * processors;
  const auto exposed = static_cast<double>(two ? tiles_of(waves, 2) : waves);
  return static_cast<double>(waves) * multiply + exposed * (epilogue + filling);
}

}  // namespace

MatmulTiling matmul_tiling(const target::Machine& machine, const MatmulWork& w) {
  MatmulTiling best;
  double least = 0, multiplied = 0;
  const int64_t shared = machine.tensor_core_bytes(w.operands);
  const bool tf32 = w.operands.size() == 4;
  int forced_rows = 0, forced_columns = 0, forced_stages = -1;
  if (const char* f = std::getenv("WEFT_TILE")) std::sscanf(f, "%dx%d:%d", &forced_rows, &forced_columns, &forced_stages);
  for (const int64_t rows : {128, 64, 256})
    for (int64_t columns = 256; columns >= 64; columns -= machine.whole_rows_of_products() && !tf32 ? 32 : columns / 2) {
      MatmulTile t{rows, columns, tf32 ? 32 : 64};
      if (rows * columns > (tf32 ? 128 * 128 : 128 * 256)) continue;
      if (least_stages * stage_bytes(t, w.operands) + 2048 > shared) continue;
      if (w.loaded.a + w.loaded.b > 0 && !registers_suffice(t, w.loaded)) continue;
      if (forced_rows > 0 && (rows != forced_rows || columns != forced_columns)) continue;
      const int64_t programs = w.batches * tiles_of(w.rows, t.rows) * tiles_of(w.columns, t.columns);
      // A program that has an SM to itself has its shared memory too.
      if (programs <= machine.processors)
        t.stages = static_cast<int>(std::min(most_stages, (shared - reserved_bytes) / stage_bytes(t, w.operands)));
      if (forced_stages >= 0) t.stages = forced_stages;
      const bool two = t.rows * t.columns <= 128 * 128 && programs > machine.processors;
      const double seconds = seconds_of(machine, w, t, two);
      if (best.tile.rows > 0 && seconds >= least) continue;
      best.tile = t;
      least = seconds;
      multiplied = static_cast<double>(tiles_of(programs, machine.processors) * machine.processors * t.rows * t.columns) / rate_of(t);
    }
  const double elements = static_cast<double>(w.batches) * static_cast<double>(w.rows) * static_cast<double>(w.columns);
  if (multiplied > 0) best.share = elements / multiplied;
  return best;
}

}  // namespace weft::compiler
