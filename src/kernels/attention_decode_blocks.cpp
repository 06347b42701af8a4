// Chooses how the keys of a head are divided when one query attends to them.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "kernels/attention_decode.h"

namespace weft::kernels {

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
