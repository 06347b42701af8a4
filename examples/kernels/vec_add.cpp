// The sum of two vectors, in the steps of a first CUDA lesson: a plain loop, one program, a grid of programs, a grid
// with a stride, two axes, and tiles.
#include "check.h"
#include "weft/kernel_function.h"

using namespace weft;

int main() {
  const int64_t n = 100'003;  // a multiple of nothing
  const array x = check::normal({n}, 1), y = check::normal({n}, 2), wanted = x + y;

  // A plain loop on the host.
  {
    const array a = x, b = y;
    std::vector<float> sum(static_cast<size_t>(n));
    const float *left = a.data<float>(), *right = b.data<float>();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
    check::near("a loop in C++", array(sum.data(), {n}), wanted, 0);
  }

  // One program that goes through the vector element by element. A Mut is a variable; here none is needed.
  const auto one = k::kernel("add_one_program", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                     k::loop(a.dim(0), [&](k::Index i) { c(i) = a(i) + b(i); });
                   }).grid({1});
  check::near("one program, one element a step", one(x, y), wanted, 0);

  // A program for each element: what a CUDA thread does. `program_id` is blockIdx and threadIdx in one.
  const auto each = k::kernel("add_elements", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                      const auto i = k::program_id(0);
                      c(i) = a(i) + b(i);
                    }).grid([](auto a, auto, auto) { return k::Grid{a.dim(0)}; });
  check::near("a program an element", each(x, y), wanted, 0);

  // A fixed number of programs that stride through the vector.
  const auto stride = k::kernel("add_grid_stride", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                        constexpr int64_t block = 256, programs = 64;
                        k::loop(k::program_id(0) * block, a.dim(0), programs * block, [&](k::Index first) {
                          const auto at = k::ds(first, block);
                          c(at) = a(at) + b(at);
                        });
                      }).grid({64});
  check::near("a grid with a stride", stride(x, y), wanted, 0);

  // A grid of three axes; the last one is the fastest.
  const auto axes = k::kernel("add_three_axes", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                      constexpr int64_t block = 64;
                      const auto i = (k::program_id(0) * 20 + k::program_id(1)) * 20 + k::program_id(2);
                      const auto at = k::ds(i * block, block);
                      c(at) = a(at) + b(at);
                    }).grid([](auto a, auto, auto) {
    return k::Grid{k::cdiv(a.dim(0), 64 * 400), 20, 20};
  });
  check::near("three axes", axes(x, y), wanted, 0);

  // Tiles: each program adds a block. The slice that reaches over the end is cut off by itself.
  const auto tiles = k::kernel("add", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                       const auto at = k::ds(k::program_id(0) * 4096, 4096);
                       c(at) = a(at) + b(at);
                     }).grid([](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), 4096)}; });
  check::near("tiles", tiles(x, y), wanted, 0);

  // The same kernel for a batch of vectors: vmap adds an axis to the grid.
  const array xs = check::normal({3, n}, 3);
  const array sums =
      vmap([&](const std::vector<array>& in) { return std::vector{tiles(in[0], in[1])}; }, {0, -1})({xs, y})[0];
  check::near("a batch by vmap", sums, xs + y, 0);

  // Indices, printed by the interpreter.
  const auto indices = k::kernel("indices",
                                 [](k::Out<int64_t, 2> c) {
                                   const auto i = k::program_id(0), j = k::program_id(1);
                                   k::print("i and j:", i, j);
                                   c(i, j) = i * 2 + j;
                                 })
                           .grid({2, 2})
                           .outputs([] {
                             return Shape{2, 2};
                           });
  check::near("indices", indices.interpret(), reshape(arange(4), {2, 2}), 0);
}
