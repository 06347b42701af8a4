// The sum of two vectors, in the steps of a first CUDA lesson. All of it is memory: 12 bytes an element.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Vector = k::In<float, 1>;
using Sum = k::Out<float, 1>;

/// One program that goes through the vectors element by element: one thread.
void one_thread(Vector a, Vector b, Sum c) {
  k::loop(a.dim(0), [&](k::Index i) { c(i) = a(i) + b(i); });
}

/// One program that goes through the vectors tile by tile: one block of threads, or one core's vectors.
void one_block(Vector a, Vector b, Sum c) {
  constexpr int64_t block = 1024;
  k::loop(0, a.dim(0), block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    c(at) = a(at) + b(at);
  });
}

/// A program for each element.
void elements(Vector a, Vector b, Sum c) {
  const auto i = k::program_id(0);
  c(i) = a(i) + b(i);
}

/// A thread for each element, as in a first CUDA kernel: its index from the numbers of its block and its own. Indices
/// behind the end load 0 and store nothing.
void threads(Vector a, Vector b, Sum c) {
  constexpr int64_t block = 256;
  const auto i = k::program_id(0) * block + k::cast<int64_t>(k::this_thread_block(block).thread_rank());
  k::scatter(c, k::gather(a, i) + k::gather(b, i), i);
}

/// A fixed number of programs that stride through the vectors.
void grid_stride(Vector a, Vector b, Sum c) {
  constexpr int64_t block = 1024;
  k::loop(k::program_id(0) * block, a.dim(0), k::num_programs(0) * block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    c(at) = a(at) + b(at);
  });
}

/// A grid of three axes, the last one the fastest.
void three_axes(Vector a, Vector b, Sum c) {
  constexpr int64_t block = 1024;
  const auto plane = k::program_id(0) * k::num_programs(1) + k::program_id(1);
  const auto at = k::ds((plane * k::num_programs(2) + k::program_id(2)) * block, block);
  c(at) = a(at) + b(at);
}

/// A tile a program. The slice that reaches over the end is cut off by itself.
void tiles(Vector a, Vector b, Sum c) {
  const auto at = k::ds(k::program_id(0) * 4096, 4096);
  c(at) = a(at) + b(at);
}

/// The same, but what is read once and what is not read soon does not stay in caches.
void streamed(Vector a, Vector b, Sum c) {
  const auto at = k::ds(k::program_id(0) * 4096, 4096);
  c(at).store(a(at).load(k::Cache::streaming) + b(at).load(k::Cache::streaming), k::Cache::streaming);
}

}  // namespace

Ladder vec_add(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 25, 1 << 25);
  Ladder out{.name = "vec_add", .inputs = {normal({n}, 1), normal({n}, 2)}};
  out.library = one([](const Arrays& in) { return in[0] + in[1]; });
  out.bytes = 12.0 * static_cast<double>(n);
  const auto blocks = [](int64_t block) {
    return [block](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), block)}; };
  };
  out.rungs = {
      loop({{n}},
           [n](auto in, auto to) {
             for (int64_t i = 0; i < n; ++i) to[0][i] = in[0][i] + in[1][i];
           }),
      rung("one thread", k::kernel("add_one_thread", one_thread).grid({1})),
      rung("one block", k::kernel("add_one_block", one_block).grid({1})),
      rung("a program an element", k::kernel("add_elements", elements).grid(blocks(1)),
           "on a GPU a program is a block of threads, of which one works"),
      rung("a thread an element", k::kernel("add_threads", threads).grid(blocks(256))),
      rung("a grid with a stride", k::kernel("add_grid_stride", grid_stride).grid({1056}),
           "pays where starting programs costs something; on a CPU it only scatters the accesses"),
      rung("a grid of three axes", k::kernel("add_three_axes", three_axes).grid([](auto a, auto, auto) {
        return k::Grid{k::cdiv(a.dim(0), 1024 * 64), 8, 8};
      })),
      rung("tiles", k::kernel("add_tiles", tiles).grid(blocks(4096))),
      rung("tiles, streamed", k::kernel("add_streamed", streamed).grid(blocks(4096))),
  };
  return out;
}

}  // namespace ladders
