#pragma once
// Tracks which array each byte of the arena belongs to, for the verifier of a plan.
#include <cstdint>
#include <iterator>
#include <map>
#include <set>

namespace weft::compiler {

class ArenaState {
 public:
  /// Gives the bytes to `buffer`. Any earlier owner loses them.
  void write(int buffer, int64_t offset, int64_t bytes) {
    const int64_t end = offset + bytes;
    auto it = owners_.upper_bound(offset);
    if (it != owners_.begin() && std::prev(it)->second.end > offset) --it;
    while (it != owners_.end() && it->first < end) it = owners_.erase(it);
    owners_[offset] = {end, buffer};
    written_.insert(buffer);
  }
  bool written(int buffer) const { return written_.contains(buffer); }
  /// Returns whether everything that was written to the buffer at `offset` is still intact.
  bool holds(int buffer, int64_t offset) const {
    const auto it = owners_.find(offset);
    return it != owners_.end() && it->second.buffer == buffer;
  }

 private:
  struct Owner {
    int64_t end;
    int buffer;
  };
  std::map<int64_t, Owner> owners_;  // by the first byte; they do not overlap
  std::set<int> written_;
};

}  // namespace weft::compiler
