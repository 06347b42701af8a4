#pragma once
// Which weights dropout of attention keeps: what the region's definition and the kernels agree on.
//
// Scores [queries, keys] are covered with blocks of 16 × 16. A call of Philox-4x32-10 has the words of four weights of
// a block, two queries and two keys that lie 8 apart: a thread that holds fragments of tensor cores has all four,
// whether queries or keys run along its rows. The call of (query, key) has the number of the element (query | 8, key |
// 8) in row-major order of [matrices…, queries, keys], both lengths rounded up to whole blocks: of four numbers one is
// used, and compilers of GPUs see that the four weights have the same. Words 0 to 3 are those of (query, key), (query,
// key + 8), (query + 8, key), (query + 8, key + 8).
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace weft::kernel {

constexpr int64_t dropout_block = 16;

/// Returns the number below which the word of a weight lies that is kept, with probability 1 - rate.
inline uint32_t dropout_limit(double rate) {
  return static_cast<uint32_t>(std::clamp(std::round((1 - rate) * 0x1p32), 1.0, 0x1p32 - 1));
}

}  // namespace weft::kernel
