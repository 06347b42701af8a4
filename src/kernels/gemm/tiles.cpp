#include "kernels/gemm/tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft::kernels {

namespace {

constexpr int64_t least_stages = 3, most_stages = 8, most_accumulators = 128, threads_of_group = 128;
constexpr int64_t line_bytes = 128;            // of shared memory, that warpgroups read, and of stores by TMA
constexpr int64_t exchanged_bytes = 34 << 10;  // of shared memory, for what programs exchange and store

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// Returns the threads of a program: a warpgroup for each 128 accumulators of its threads.
double threads_of(const GemmTile& t) {
  return threads_of_group * std::ceil(static_cast<double>(t.rows * t.columns) / threads_of_group / most_accumulators);
}

/// Returns the same where A is made in registers: each warpgroup has 64 rows, or two have two times as many.
double threads_that_make(const GemmTile& t) { return threads_of_group * (t.rows >= 128 ? 2.0 : 1.0); }

/// Returns the columns of B that are copied for a tile.
int64_t copied_columns(const GemmTile& t, const GemmWork& w) {
  const int64_t line = w.b_across ? line_bytes / w.operands.size() : 1;
  return tiles_of(t.columns, line) * line;
}

int64_t stage_bytes(const GemmTile& t, const GemmWork& w) {
  return (t.rows + copied_columns(t, w)) * t.depth * w.operands.size();
}

/// Returns whether a thread has registers for its sums, for what it has loaded of a K slice, and for the slice of A
/// that it multiplies from registers.
bool registers_suffice(const GemmTile& t, const GemmWork& w) {
  // Registers of a thread; of those that make A, beside a warpgroup that copies, and where a slice is two lines deep.
  constexpr double all = 255, beside_copies = 232, of_deep = 200, of_addresses = 56;
  const double sums = static_cast<double>(t.rows * t.columns),
               slice = static_cast<double>(t.depth) *
                       (static_cast<double>(t.rows) * w.loaded.a + static_cast<double>(t.columns) * w.loaded.b),
               made = w.a_shared ? static_cast<double>(t.depth * t.rows * w.operands.size()) : 0,
               threads = w.a_shared ? threads_that_make(t) : threads_of(t);
  const double has = !w.a_shared ? all : t.depth * w.operands.size() > line_bytes ? of_deep : beside_copies;
  return (sums + (slice + made) / 4) / threads + w.kept + of_addresses <= has;
}

/// Returns the speed of an SM with a tile, of the fastest one's. Each multiply-add reads an element of A for each of
/// the tile's columns and one of B for each of its rows; a warpgroup alone does not keep the tensor cores busy. Fitted
/// to an H200, where 128 × 192, 128 × 128, 128 × 64 and 64 × 256 of bf16 reach 0.97, 0.91, 0.6 and 0.64 of 128 × 256,
/// and 128 × 128 with ping-pong 0.95 to 0.99; tiles of float32 are ranked by the same numbers.
///
/// Exact float32 waits for registers and not for operands: three small programs on an SM are as good as its tiles get.
/// Of an A that lies in registers, the tensor cores read B alone from shared memory, which never is too slow.
double rate_of(const GemmTile& t, const GemmWork& w) {
  constexpr double reading = 48, best = 0.64, alone = 0.8, in_turns = 0.95, of_large = 0.9, beginning = 12;
  const auto columns = static_cast<double>(t.columns);
  if (t.ping_pong) return in_turns;
  if (w.a_shared) return columns / (columns + beginning) * (t.rows == 64 ? alone : 1);
  if (w.exact) return (t.rows * t.columns > 128 * 64 ? of_large : 1) * (t.rows == 64 ? alone : 1);
  const double reuse = static_cast<double>(t.rows * t.columns) / static_cast<double>(t.rows + t.columns);
  return reuse / (reuse + reading) / best * (t.rows == 64 ? alone : 1);
}

/// Returns the seconds in which the L2 gives the operands of so many programs. Fitted to an H200: 11.3 TB/s, beside 989
/// TFLOP/s of 16-bit floats.
double seconds_of_cache(const target::Machine& machine, const GemmWork& w, const GemmTile& t, int64_t programs) {
  constexpr double bytes_for_flops = 0.0114;
  const double rate = bytes_for_flops * machine.matmul_flops(bfloat16),
               bytes =
                   static_cast<double>(programs * tiles_of(w.depth, t.depth)) * static_cast<double>(stage_bytes(t, w));
  return rate > 0 ? bytes / rate : 0;
}

/// Returns the seconds in which memory gives the operands and takes what the epilogue stores, each once.
double seconds_of_memory(const target::Machine& machine, const GemmWork& w) {
  const auto rows = static_cast<double>(w.rows), columns = static_cast<double>(w.columns);
  const double operands = (rows + columns) * static_cast<double>(w.depth * w.operands.size());
  return machine.bandwidth > 0
             ? static_cast<double>(w.batches) * (operands + rows * columns * w.bytes) / machine.bandwidth
             : 0;
}

/// Returns the seconds of what runs at once: that which takes less does not hide wholly behind what takes most.
double overlapped(std::initializer_list<double> seconds) {
  constexpr double seen = 0.1;
  const double most = std::max(seconds);
  return most + seen * (std::accumulate(seconds.begin(), seconds.end(), 0.0) - most);
}

/// Returns whether the machine has warpgroups that multiply the operands as they lie.
bool by_warpgroups(const target::Machine& machine, const GemmWork& w) {
  return machine.whole_rows_of_products() && (w.operands.size() < 4 || w.along_depth);
}

}  // namespace

bool exchanges_operands(const target::Machine& machine, const GemmWork& w) {
  return by_warpgroups(machine, w) && w.operands.size() == 2 && w.b_shared && !w.a_shared && w.loaded.a == 0;
}

GemmWork exchanged(GemmWork w) {
  std::swap(w.rows, w.columns);
  std::swap(w.loaded.a, w.loaded.b), std::swap(w.operations.a, w.operations.b), std::swap(w.a_shared, w.b_shared);
  w.b_across = false;
  return w;
}

namespace {

/// Returns the seconds, of all SMs together, in which a tile's operands are computed. Programs compute a slice while
/// the one before is multiplied; what it is made from is loaded one or two slices ahead, and the L2 is asked for it
/// before where A is made in registers. A slice takes other instructions as well. Fitted to an H200.
double seconds_to_make(const target::Machine& machine, const GemmWork& w, const GemmTile& t) {
  constexpr double latency = 0.4e-6, of_vector = 0.7, of_slice = 90;  // instructions of each thread
  constexpr double alone = 1.5;                                       // a warpgroup waits for each of its instructions
  if (w.operations.a + w.operations.b == 0) return 0;
  const double made = static_cast<double>(w.depth) *
                      (static_cast<double>(t.rows) * w.operations.a + static_cast<double>(t.columns) * w.operations.b);
  if (w.a_shared) {
    const double slices = static_cast<double>(tiles_of(w.depth, t.depth)) * threads_that_make(t);
    return (t.rows == 64 ? alone : 1) * (made + of_slice * slices) / (of_vector * machine.peak.f32 / 2);
  }
  return std::max(made / (of_vector * machine.peak.f32 / 2),
                  static_cast<double>(tiles_of(w.depth, t.depth)) * latency / static_cast<double>(machine.processors));
}

/// Returns the seconds that SMs take for their tiles, multiplications and epilogues. With ping-pong the tensor cores
/// have one tile at a time, and a warpgroup has every other tile from its first product to its last store. Lines that
/// are no whole ones of shared memory are not stored by TMA, which takes twice as long.
double seconds_of(const target::Machine& machine, const GemmWork& w, const GemmTile& t, int64_t waves) {
  // The fastest tile's. Where warpgroups multiply, warps have less than half of their rate (TF32, H200).
  const bool by_warps = machine.whole_rows_of_products() && !w.exact && !by_warpgroups(machine, w);
  const double of_peak = by_warps ? 0.4 : 0.9;
  const auto processors = static_cast<double>(machine.processors), elements = static_cast<double>(t.rows * t.columns),
             tiles = static_cast<double>(waves);
  const double peak = machine.matmul_flops(w.operands, !w.exact), vector = machine.peak.f32 / 2,
               multiply = 2 * elements * static_cast<double>(w.depth) / (of_peak * peak * rate_of(t, w)),
               stores = t.columns * w.operands.size() % line_bytes == 0 ? 1 : 2,
               epilogue = elements * (stores * w.bytes / machine.bandwidth + w.epilogue_operations / vector);
  if (!t.ping_pong) return tiles * processors * (overlapped({multiply, seconds_to_make(machine, w, t)}) + epilogue);
  // A warpgroup alone takes twice as long for an element's epilogue.
  const double alone = 2 * epilogue, turns = static_cast<double>((waves + 1) / 2);
  return processors * std::max(tiles * multiply + alone, turns * (multiply + alone));
}

/// Returns the tiles that the machine has memory and registers for.
std::vector<GemmTile> tiles_for(const target::Machine& machine, const GemmWork& w) {
  const bool tf32 = w.operands.size() == 4, groups = by_warpgroups(machine, w);
  const int64_t line = w.exact ? 16 : 128 / w.operands.size();  // else a whole line of shared memory
  std::vector<GemmTile> out;
  // Few columns, whose tile is no wider than they are, where A is made in registers: nothing else fills them.
  const int64_t least = groups && w.a_shared ? 16 : 64;
  for (const int64_t rows : {128, 64, 256})
    for (int64_t columns = 256; columns >= least; columns -= groups ? 16 : columns / 2) {
      if (columns < 64 && columns < w.columns) continue;
      for (const int64_t depth : {line, 2 * line}) {
        if (depth > line && (!w.a_shared || w.depth % depth != 0)) continue;
        const GemmTile t{rows, columns, depth};
        // Boxes that begin within half a line of memory cost the L2 most of what they save.
        const int64_t step = rows != 128 ? 64 : w.b_across ? 32 : 16;
        if (rows % w.rows_of_tiles != 0 || columns % step != 0) continue;
        if (w.operations.b > 0 && columns % 64 != 0) continue;  // each thread computes whole chunks of 16 bytes
        if (rows * columns > (tf32 && !groups ? 128 * 128 : 128 * 256)) continue;
        if (least_stages * stage_bytes(t, w) + 2048 > machine.tensor_core_bytes(w.operands)) continue;
        if (w.loaded.a + w.loaded.b == 0 || registers_suffice(t, w)) out.push_back(t);
      }
    }
  // Warpgroups multiply in turns where each has all sums of a tile, and no operand is computed.
  if (groups && w.loaded.a + w.loaded.b == 0) out.push_back({128, 128, line, 0, true});
  return out;
}

}  // namespace

/// Returns the work as the machine multiplies it: warpgroups alone make 16-bit operands in registers.
static GemmWork on(const target::Machine& machine, GemmWork w) {
  w.a_shared = w.a_shared && w.operands.size() == 2 && by_warpgroups(machine, w);
  return w;
}

std::string why_no_tile(const target::Machine& machine, const GemmWork& work, const GemmTile& t) {
  const GemmWork w = on(machine, work);
  constexpr int64_t least = 16, most = 256, deepest = 128, of_two_stages = 2;
  const auto is_side = [&](int64_t n) {
    return n >= least && n <= most && (std::has_single_bit(static_cast<uint64_t>(n)) || n % 64 == 0);
  };
  const bool side = is_side(t.columns) ||
                    (machine.whole_rows_of_products() && t.columns >= 64 && t.columns <= most && t.columns % 16 == 0);
  const bool wide = w.operands.size() < 4 || by_warpgroups(machine, w);
  if (!is_side(t.rows) || !side)
    return "tiles of m and n have 16, 32, 64, 128, 192 or 256 elements; of n, where warpgroups multiply, multiples of "
           "16";
  if (t.depth < least || t.depth > deepest || !std::has_single_bit(static_cast<uint64_t>(t.depth)))
    return "tiles of k have 16, 32, 64 or 128 elements";
  if (t.rows * t.columns > (wide ? 128 * 256 : 128 * 128))
    return "the sums of the tile do not stay in registers: 128 x 256 of narrower operands do, 128 x 128 of float32";
  if (t.ping_pong && t.rows * t.columns > 128 * 128)
    return "the sums of the tile do not stay in the registers of one warpgroup: 128 x 128 do";
  const int64_t stages = std::max<int64_t>(of_two_stages, t.stages);
  if (const int64_t bytes = stages * stage_bytes(t, w), has = machine.tensor_core_bytes(w.operands); bytes > has)
    return fmt::format("{} stages of the tile take {} bytes of shared memory, and a program has {}", stages, bytes,
                       has);
  return w.loaded.a + w.loaded.b > 0 && !registers_suffice(t, w)
             ? "a thread has no registers for its sums beside the operands that it computes"
             : "";
}

std::vector<GemmTiling> gemm_tilings(const target::Machine& machine, const GemmWork& work, size_t most) {
  const GemmWork w = on(machine, work);
  std::vector<GemmTiling> out;
  const double elements = static_cast<double>(w.batches) * static_cast<double>(w.rows) * static_cast<double>(w.columns);
  for (GemmTile t : tiles_for(machine, w)) {
    const int64_t programs = w.batches * tiles_of(w.rows, t.rows) * tiles_of(w.columns, t.columns),
                  waves = tiles_of(programs, machine.processors);
    if (t.ping_pong && waves < 2) continue;
    const double uneven = t.columns % 64 != 0 ? 1.03 : 1,  // of equal ones, tiles of whole lines are the safer
        seconds = uneven * overlapped({seconds_of(machine, w, t, waves), seconds_of_cache(machine, w, t, programs),
                                       seconds_of_memory(machine, w)});
    // A program that has an SM to itself has its shared memory too.
    if (waves == 1) {
      const int64_t room = machine.tensor_core_bytes(w.operands) - exchanged_bytes;
      t.stages = static_cast<int>(std::min(most_stages, room / stage_bytes(t, w)));
    }
    out.push_back(
        {t, elements * rate_of(t, w) / static_cast<double>(waves * machine.processors * t.rows * t.columns), seconds});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.seconds < y.seconds; });
  if (out.size() > most) out.resize(most);
  return out;
}

GemmTiling gemm_tiling(const target::Machine& machine, const GemmWork& work) {
  const std::vector<GemmTiling> best = gemm_tilings(machine, work, 1);
  return best.empty() ? GemmTiling{} : best[0];
}

}  // namespace weft::kernels
