#include "runtime/staging.h"

#include <algorithm>

#include "base/error.h"

namespace weft::runtime {

StagingRing::Piece StagingRing::take(size_t bytes, const std::function<void(int64_t)>& wait) {
  constexpr size_t alignment = 64;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  check(bytes <= bytes_, "staging", "a piece is larger than the ring");
  if (next_ + bytes > bytes_) next_ = 0;
  const auto in_the_way = [&](const Piece& p) { return p.offset < next_ + bytes && next_ < p.offset + p.bytes; };
  while (!taken_.empty() && (taken_.size() >= most_pieces_ || std::any_of(taken_.begin(), taken_.end(), in_the_way))) {
    wait(taken_.front().number);
    taken_.pop_front();
  }
  taken_.push_back({next_, bytes, count_++});
  next_ += bytes;
  return taken_.back();
}

}  // namespace weft::runtime
