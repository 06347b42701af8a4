// Chooses the blocks of attention by what programs hold: sums and scores in registers; in shared memory the operands
// that stay, and two stages of those that a loop copies ahead. And how the keys of a head are divided when one query
// attends to them.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "kernels/attention/attention.h"
#include "kernels/attention/decode.h"
#include "kernels/attention/tiles.h"

namespace weft::kernels {

namespace {

constexpr int64_t most_registers = 210;       // of a thread, for accumulators and an operand made of them
constexpr int64_t reserved_bytes = 20 << 10;  // of shared memory: exchanges, barriers
// Of a CPU: the tiles of a block stay in its L2 cache, and the rows that a program keeps are lanes of a few registers.
constexpr int64_t kept_of_core = 32;
// Of few rows of which some are hidden, small blocks leave out more.
constexpr int64_t short_step_of_core = 64, step_of_core = 128, few_rows = 256;
// Of a loop: the begin and the end of a program take as long as several of its iterations.
constexpr int64_t few_steps = 16;

/// What a program of `rows` rows holds while its loop goes on by `step` rows.
struct Footprint {
  int64_t rows = 0, step = 0;
  int64_t sums = 0;               // columns of the accumulators that the loop carries
  int64_t scores = 1;             // tiles of scores that live together
  int64_t stays = 0, copied = 0;  // columns of what stays in shared memory, and of what the loop copies
};

bool fits(const Footprint& f, const Attention& a, const AttentionLimits& limits) {
  const int64_t threads = limits.warpgroups && a.dtype.size() == 2 ? 2 * f.rows : f.rows;
  const int64_t operand = f.step * a.dtype.size() / 4;  // scores as the next product takes them
  const int64_t registers = f.rows * (f.sums + f.scores * f.step + operand) / threads;
  const int64_t bytes = (f.rows * f.stays + 2 * f.step * f.copied) * a.dtype.size();
  return registers <= most_registers && bytes + reserved_bytes <= limits.shared_bytes;
}

bool by_tensor_cores(const Attention& a) { return a.dtype.size() == 2 || a.tf32; }

/// Returns rows and step of the first that fit, large ones first; zeros where none do.
std::pair<int64_t, int64_t> largest(const Attention& a, const AttentionLimits& limits, int64_t rows, Footprint f) {
  if (limits.cores > 0) {
    const int64_t others = a.queries.bound() + a.keys.bound() - rows;
    const bool hides = a.after != Attention::all || a.before != Attention::all;
    const int64_t step = hides && others <= few_rows ? short_step_of_core : step_of_core;
    return {std::min(kept_of_core, padded_width(rows)), std::min(step, padded_width(others))};
  }
  if (!by_tensor_cores(a)) return {32, 32};
  for (f.rows = rows <= 64 ? 64 : 128; f.rows >= 32; f.rows /= 2)
    for (f.step = 128; f.step >= 32; f.step /= 2)
      if (fits(f, a, limits)) return {f.rows, f.step};
  return {0, 0};
}

/// Programs of a forward kernel that share an SM: while one begins or ends, the others multiply.
struct SharedSm {
  int64_t programs, step;
  int64_t columns;  // of sums and scores together that the registers of a thread hold the entries of
};

/// Returns whether all blocks are whole, so that TMA copies every one of them.
bool are_whole(const Attention& a, const AttentionBlocks& blocks) {
  return !ends_within(a.queries, blocks.queries) && !ends_within(a.keys, blocks.keys);
}

/// Returns whether programs of 64 queries share an SM so. What masks, scores of users and words of
/// dropout take is not known.
bool shares_sm(const Attention& a, const AttentionLimits& limits, const SharedSm& s) {
  constexpr int64_t rows = 64, stored_bytes = 16 << 10;
  if (!limits.warpgroups || a.dtype.size() != 2 || a.score.value || a.dropout > 0 ||
      (a.mask && !is_integer(a.mask.dtype)) || !are_whole(a, {rows, s.step}))
    return false;
  const int64_t w = padded_width(a.width), v = padded_width(a.value_width);
  const int64_t bytes = (rows * w + 2 * s.step * (w + v)) * a.dtype.size() + stored_bytes;
  return v + s.step <= s.columns && s.programs * (bytes + (1 << 10)) <= limits.shared_bytes;
}

/// Says how programs of `rows` rows each, which take `others` in steps, follow each other. Where some are longer, the
/// longest come first; short ones that have an SM each take turns.
void order(const Attention& a, AttentionBlocks& blocks, int64_t rows, const Dim& others, int64_t step) {
  const bool hides = a.after != Attention::all || a.before != Attention::all;
  const bool is_short = others.bound() <= few_steps * step;
  blocks.persistent = hides && is_short && rows >= 128;
  blocks.longest_first = hides && (!is_short || blocks.persistent);
}

/// What programs of dQ, and of dK and dV, hold.
Footprint queries_footprint(const Attention& a) {
  const int64_t w = padded_width(a.width), v = padded_width(a.value_width);
  return {.sums = w, .scores = 2, .stays = w + v, .copied = w + v};
}
Footprint keys_footprint(const Attention& a, bool dk, bool dv) {
  const int64_t w = padded_width(a.width), v = padded_width(a.value_width);
  return {.sums = (dk ? w : 0) + (dv ? v : 0), .scores = dk ? 2 : 1, .stays = w + (dk ? v : 0), .copied = w + v};
}

}  // namespace

AttentionLimits attention_limits(const target::Machine& machine) {
  return {.shared_bytes = machine.shared_bytes,
          .warpgroups = machine.arch == "sm_90a",
          .cores = machine.simt ? 0 : machine.processors};
}

AttentionBlocks scheduled(const Attention& a, AttentionBlocks blocks, const AttentionLimits& limits) {
  if (!limits.warpgroups || a.dtype.size() != 2) return blocks;
  blocks.overlapped = are_whole(a, blocks) && a.dropout == 0;  // whose words take the registers of a second tile
  order(a, blocks, blocks.queries, a.keys, blocks.keys);
  return blocks;
}

AttentionBlocks forward_blocks(const Attention& a, const AttentionLimits& limits) {
  constexpr SharedSm three{3, 64, 128}, two{2, 128, 192};
  if (a.keys.bound() <= few_steps * three.step && shares_sm(a, limits, three))
    return scheduled(a, {64, three.step}, limits);
  if (shares_sm(a, limits, two)) return scheduled(a, {64, two.step}, limits);
  const int64_t w = padded_width(a.width), v = padded_width(a.value_width);
  const auto [rows, step] = largest(a, limits, a.queries.bound(), {.sums = v, .stays = w, .copied = w + v});
  return scheduled(a, rows > 0 ? AttentionBlocks{rows, step, limits.cores > 0} : AttentionBlocks{32, 32}, limits);
}

bool forward_fits(const Attention& a, const AttentionBlocks& blocks, const AttentionLimits& limits) {
  const int64_t w = padded_width(a.width), v = padded_width(a.value_width);
  return limits.cores > 0 || !by_tensor_cores(a) ||
         fits({.rows = blocks.queries, .step = blocks.keys, .sums = v, .stays = w, .copied = w + v}, a, limits);
}

AttentionBlocks queries_blocks(const Attention& a, const AttentionLimits& limits) {
  const auto [rows, step] = largest(a, limits, a.queries.bound(), queries_footprint(a));
  AttentionBlocks out = rows > 0 ? AttentionBlocks{rows, step, limits.cores > 0} : AttentionBlocks{32, 32};
  if (limits.warpgroups) order(a, out, out.queries, a.keys, out.keys);
  return out;
}

AttentionBlocks keys_blocks(const Attention& a, const AttentionLimits& limits, bool dk, bool dv) {
  const auto [rows, step] = largest(a, limits, a.keys.bound(), keys_footprint(a, dk, dv));
  if (rows == 0) return dk && dv ? AttentionBlocks{0, 0, true} : AttentionBlocks{32, 32, true};
  AttentionBlocks out{step, rows, limits.cores == 0};
  if (limits.warpgroups) order(a, out, rows, a.queries, step);
  return out;
}

bool backward_fits(const Attention& a, const AttentionLimits& limits) {
  return largest(a, limits, a.queries.bound(), queries_footprint(a)).first > 0 &&
         largest(a, limits, a.keys.bound(), keys_footprint(a, true, true)).first > 0;
}

namespace {

constexpr int64_t tile_elements = 1024;          // 16 registers of each of 64 threads, if programs are many
constexpr int64_t cluster_tile_elements = 2048;  // if the blocks of a cluster share a head
// If the warps of those blocks have their own tiles: with 32 iterations the remainder too is one warp's.
constexpr int64_t tile_elements_of_a_warp = 512;
constexpr int64_t warps_of_block = 4;
// With more blocks than this, some share an SM, and the registers of such warps keep neighbouring kernels from starting
// early.
constexpr int64_t few_blocks = 128;
constexpr int64_t least_keys_of_cluster = 128;  // with fewer keys one block is as fast

}  // namespace

int64_t decode_columns(int64_t width) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width))); }

DecodeBlocks decode_blocks(const Attention& a, int64_t cluster) {
  const int64_t heads = std::accumulate(a.batch.begin(), a.batch.end(), int64_t{1}, std::multiplies<>()),
                keys = a.keys.bound();
  const bool shared = cluster > 1 && keys >= least_keys_of_cluster;
  const int64_t warps = heads * cluster <= few_blocks ? warps_of_block : 1;
  const int64_t elements = !shared ? tile_elements : warps > 1 ? tile_elements_of_a_warp : cluster_tile_elements;
  const int64_t columns = std::max(decode_columns(a.width), decode_columns(a.value_width));
  DecodeBlocks out;
  out.rows = std::clamp<int64_t>(elements / columns, 1, decode_columns(keys));
  if (!shared) return out;
  const auto tiles = static_cast<uint64_t>((keys + out.rows - 1) / out.rows);
  out.sharers = std::min(cluster * warps, static_cast<int64_t>(std::bit_floor(tiles)));
  return out;
}

}  // namespace weft::kernels
