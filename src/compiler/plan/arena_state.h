#pragma once
// To which array each byte of the arena belongs: what the verifier of a plan replays.
#include <cstdint>
#include <iterator>
#include <map>
#include <set>

namespace weft::compiler {

class ArenaState {
 public:
  /// From now on the bytes are the buffer's; whoever lay there, even in part, is gone.
  void write(int buffer, int64_t offset, int64_t bytes) {
    const int64_t end = offset + bytes;
    auto it = owners_.upper_bound(offset);
    if (it != owners_.begin() && std::prev(it)->second.end > offset) --it;
    while (it != owners_.end() && it->first < end) it = owners_.erase(it);
    owners_[offset] = {end, buffer};
    written_.insert(buffer);
  }
  bool written(int buffer) const { return written_.contains(buffer); }
  /// Is all that the buffer was written to at `offset` still its own?
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
