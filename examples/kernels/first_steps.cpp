// A first kernel: traced and read, run, interpreted with what it prints, and batched.
#include <cstdio>

#include "check.h"
#include "weft/kernel_function.h"

using namespace weft;

int main() {
  const int64_t n = 100'003;  // a multiple of nothing
  const array x = check::normal({n}, 1), y = check::normal({n}, 2), wanted = x + y;

  // Each program adds a tile. The slice that reaches over the end is cut off by itself.
  const auto add = k::kernel("add", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                     const auto at = k::ds(k::program_id(0) * 4096, 4096);
                     c(at) = a(at) + b(at);
                   }).grid([](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), 4096)}; });
  check::near("tiles", add(x, y), wanted, 0);
  check::near("in the interpreter", add.interpret(x, y), wanted, 0);
  std::printf("%s\n", add.program(x, y).to_string().c_str());

  // The same kernel for a batch of vectors: vmap adds an axis to the grid.
  const array xs = check::normal({3, n}, 3);
  const array sums =
      vmap([&](const std::vector<array>& in) { return std::vector{add(in[0], in[1])}; }, {0, -1})({xs, y})[0];
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
