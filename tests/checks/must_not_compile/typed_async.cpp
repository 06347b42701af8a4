#include "weft/kernel_async.h"

namespace k = weft::k;

// case copy of another type: a copy converts nothing: both slices have one element type
void copies(const k::In<float, 1>& x) {
  const auto slots = k::shared<k::bf16>({8});
  k::copy_async(slots(k::all), x(k::ds(0, 8)));  // wrong
  // instead: k::copy_async(k::shared<float>({8})(k::all), x(k::ds(0, 8)));
}
// case copy of another rank: a copy keeps the shape: both slices have one rank
void copies(const k::In<float, 1>& x) {
  const auto slots = k::shared<float>({2, 8});
  k::copy_async(slots(k::all, k::all), x(k::ds(0, 8)));  // wrong
  // instead: k::copy_async(slots(0, k::all), x(k::ds(0, 8)));
}
// case copy of a tile: a copy goes from a slice of an array to a slice of shared memory
void copies(const k::In<float, 1>& x) {
  const auto slots = k::shared<float>({8});
  const k::Barrier full;
  full.copy(slots(k::all), x(k::ds(0, 8)).load());  // wrong
  // instead: full.copy(slots(k::all), x(k::ds(0, 8)));
}
