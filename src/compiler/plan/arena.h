#pragma once
// Static memory: buffers with lifetimes are placed in one arena, so that those alive together do not overlap.
#include <cstdint>
#include <vector>

namespace weft::compiler {

inline constexpr int64_t arena_alignment = 64;  // bytes: a cache line, and the widest vector

struct Lifetime {
  int64_t bytes;
  int first, last;  // steps, inclusive
  int64_t offset = -1;
};

/// The most bytes that are alive at one step: no placement takes less.
int64_t live_bytes(const std::vector<Lifetime>& buffers);

/// Places the largest first, each at the lowest free offset (greedy strip packing, arXiv:1804.10001); multiples of 64
/// bytes. Returns the arena's size.
int64_t assign_offsets(std::vector<Lifetime>& buffers);

}  // namespace weft::compiler
