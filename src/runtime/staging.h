#pragma once
// Where bytes on their way to a device lie meanwhile: pieces of one block, taken in a ring, each until the device has
// read it.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace weft::runtime {

class StagingRing {
 public:
  /// At most `most_pieces` are on their way at once.
  StagingRing(size_t bytes, size_t most_pieces) : bytes_(bytes), most_pieces_(most_pieces) {}
  struct Piece {
    size_t offset = 0, bytes = 0;
    int64_t number = 0;  // pieces are counted from 0
  };
  /// The next piece. Those that lie in its way are waited for, the oldest first: `wait` gets their numbers, in order.
  /// `bytes` is at most the ring's.
  Piece take(size_t bytes, const std::function<void(int64_t number)>& wait);
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, most_pieces_, next_ = 0;
  int64_t count_ = 0;
  std::deque<Piece> taken_;  // the oldest first
};

}  // namespace weft::runtime
