// Kernels with groups, atomics and code that must not compile: tests/checks/check_must_not_compile.py says how a case
// is written.
#include "weft/kernel_code.h"
#include "weft/kernel_group.h"

namespace k = weft::k;
using k::Matrix;

// case a vote of numbers: a vote is taken of a tile of bool
inline void kernel(k::Tile<float, 1> f) {
  auto z = k::warp::ballot(f);  // wrong
  // instead: auto z = k::warp::ballot(f > 0);
}
// case lanes of a scalar: lanes lie along the last axis of a tile: it has one axis at least
inline void kernel(k::Tile<float, 0> s, k::Tile<float, 1> f) {
  auto z = k::warp::shfl_xor(s, 1);  // wrong
  // instead: auto z = k::warp::shfl_xor(f, 1);
}
// case lanes that are no integers: lanes are integers
inline void kernel(k::Tile<float, 1> f, k::Tile<int32_t, 1> i) {
  auto z = k::warp::shfl(f, f);  // wrong
  // instead: auto z = k::warp::shfl(f, i);
}
// case a group of 12: a group has 1, 2, 4, 8, 16 or 32 lanes
inline void kernel() {
  auto z = k::tiled_partition<12>(k::this_thread_block(48)).thread_rank();  // wrong
  // instead: auto z = k::tiled_partition<16>(k::this_thread_block(48)).thread_rank();
}
// case a tile of another rank than the block: the tile has the axes of the group's block
inline void kernel(k::Tile<float, 1> f, k::Tile<float, 2> p) {
  const auto warp = k::tiled_partition<32>(k::this_thread_block(64));
  auto z = k::reduce(warp, p, k::By::add);  // wrong
  // instead: auto z = k::reduce(warp, f, k::By::add);
}
// case bits of floats: popc takes a tile of u32 or i32
inline void kernel(k::Tile<float, 1> f) {
  auto z = k::popc(f);  // wrong
  // instead: auto z = k::popc(k::bitcast<uint32_t>(f));
}
// case a fragment of no shape: a fragment has a shape of its type
inline void kernel() {
  k::Fragment<Matrix::a, 16, 8, 16, k::bf16> a;  // wrong
  // instead: k::Fragment<Matrix::a, 32, 8, 16, k::bf16> a;
}
// case a sum that does not go with its factors: bf16, tf32 and f16 add up in float
inline void kernel(const k::Fragment<Matrix::a, 16, 16, 16, k::bf16>& a,
                   const k::Fragment<Matrix::b, 16, 16, 16, k::bf16>& b,
                   k::Fragment<Matrix::accumulator, 16, 16, 16, k::f16>& h,
                   k::Fragment<Matrix::accumulator, 16, 16, 16, float>& s) {
  k::mma_sync(h, a, b, h);  // wrong
  // instead: k::mma_sync(s, a, b, s);
}
// case an addition of another dtype: the value has another element type than the array: cast it
inline void kernel(k::InOut<int32_t, 1> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i) {
  k::atomic("add", y(k::all), f);  // wrong
  // instead: k::atomic("add", y(k::all), i);
}
// case a lock of floats: a lock is an element of an array of int32
inline void kernel(k::InOut<float, 1> y, k::InOut<int32_t, 1> n) {
  k::Mutex lock(y, 0);  // wrong
  // instead: k::Mutex lock(n, 0);
}
// case a counterpart of another dtype: the counterpart returns tiles of the results' types and rank
inline void kernel(k::Tile<float, 1> f) {
  const k::Code code("f", {"x"}, {"y"}, "y = x;");
  const auto whole = [](auto x) { return k::cast<int32_t>(x); };
  auto z = k::cuda<float>(code, whole, f);  // wrong
  // instead: auto z = k::cuda<float>(code, [](auto x) { return x; }, f);
}
