#pragma once
// How the elements of an array lie along an axis, where one stride does not say it.
#include <cstdint>

namespace weft::kernel {

/// A jump along an axis: behind each `period` elements the next one lies `by` elements further on than the stride says,
/// so that element i lies at i · stride + (i / period) · by. Numbers of fewer bits that share a word have stride 0 and
/// jump by one word; the scale of a group of them does as well, with a longer period. Period 0: no jump.
struct Jump {
  int64_t period = 0, by = 0;
  int64_t at(int64_t i) const { return period > 0 ? i / period * by : 0; }
  friend bool operator==(const Jump&, const Jump&) = default;
};

}  // namespace weft::kernel
