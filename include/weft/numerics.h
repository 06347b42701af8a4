#pragma once

namespace weft {

/// What results may give up for speed. By default nothing.
struct Numerics {
  bool tf32 = false;  ///< float32 products and convolutions of a GPU may round their operands to ten bits of mantissa
  bool deterministic = true;  ///< the same bits on every run; without it a GPU may add up in any order (derivatives of
                              ///< attention, convolutions and embeddings)
  friend bool operator==(const Numerics&, const Numerics&) = default;
};

}  // namespace weft
