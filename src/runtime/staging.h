#pragma once
// The ring of staging memory for copies to a device: pieces of one block, each in use until the device has read it.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace weft::runtime {

class StagingRing {
 public:
  /// At most `most_pieces` are in use at once.
  StagingRing(size_t bytes, size_t most_pieces) : bytes_(bytes), most_pieces_(most_pieces) {}
  struct Piece {
    size_t offset = 0, bytes = 0;
    int64_t number = 0;  // pieces are counted from 0
  };
  /// Returns the next piece, at most the ring's size. It waits for the pieces that overlap it, the oldest first: `wait`
  /// gets their indices in order.
  Piece take(size_t bytes, const std::function<void(int64_t number)>& wait);
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, most_pieces_, next_ = 0;
  int64_t count_ = 0;
  std::deque<Piece> taken_;  // the oldest first
};

}  // namespace weft::runtime
