#include "compiler/plan/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::compiler {

namespace {

int64_t rounded(int64_t bytes) { return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment; }

}  // namespace

int64_t live_bytes(const std::vector<Lifetime>& buffers) {
  std::map<int, int64_t> change;  // by step: bytes that begin there, less those that ended before
  for (const Lifetime& b : buffers) {
    change[b.first] += rounded(b.bytes);
    change[b.last + 1] -= rounded(b.bytes);
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

int64_t assign_offsets(std::vector<Lifetime>& buffers) {
  std::vector<size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  int64_t arena = 0;
  std::vector<Lifetime> placed;  // ascending offsets, of rounded sizes: each search runs through all of it
  placed.reserve(buffers.size());
  for (size_t k : by_size) {
    Lifetime& buffer = buffers[k];
    int64_t size = rounded(buffer.bytes), offset = 0;
    for (const Lifetime& o : placed) {
      if (o.last < buffer.first || o.first > buffer.last) continue;
      if (offset + size <= o.offset) break;
      offset = std::max(offset, o.offset + o.bytes);
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [](int64_t at, const Lifetime& o) { return at < o.offset; }),
                  {size, buffer.first, buffer.last, offset});
  }
  return arena;
}

}  // namespace weft::compiler
