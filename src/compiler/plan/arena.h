#pragma once
// Static memory planning: places buffers with known lifetimes in one arena, so that those alive at the same time do not
// overlap.
#include <cstdint>
#include <vector>

namespace weft::compiler {

inline constexpr int64_t arena_alignment = 64;  // bytes: a cache line, and the widest vector

struct Lifetime {
  int64_t bytes;
  int first, last;  // steps, inclusive
  int64_t offset = -1;
};

/// Returns the most bytes that are alive at one step, a lower bound for any placement.
int64_t live_bytes(const std::vector<Lifetime>& buffers);

/// Assigns offsets, largest buffer first, each at the lowest free offset (greedy strip packing, arXiv:1804.10001), in
/// multiples of 64 bytes. Returns the arena's size in bytes.
int64_t assign_offsets(std::vector<Lifetime>& buffers);

}  // namespace weft::compiler
