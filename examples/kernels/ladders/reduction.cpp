// The sum of all elements: 4 bytes an element are read, and next to nothing is written.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Vector = k::In<float, 1>;
using Sum = k::Out<float, 1>;
using Total = k::InOut<float, 1>;

constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
constexpr int64_t block = 1 << 14;

/// A program for each element, which adds it to the result in memory. All of them want one address.
void global_atomics(Vector x, Total y) { k::atomic("add", y, x(k::program_id(0)).load(), k::Index(0)); }

/// A program reduces a tile by a tree, and adds one number to the result in memory.
void tree_then_atomic(Vector x, Total y) { k::atomic("add", y, k::block_reduce(x, block, 0, plus), k::Index(0)); }

/// A program reduces a tile by a tree and stores what it gives: the first pass of two, and the second one.
void tree(Vector x, Sum y) { y(k::program_id(0)) = k::block_reduce(x, block, 0, plus); }

/// A program adds up many tiles element by element, and reduces one tile at the end.
void several_elements(Vector x, Sum y) { y(k::program_id(0)) = k::grid_reduce(x, 1024, 0, plus); }

/// The same, programs one after another in their order: one kernel, and the same bits at every run.
void in_order(Vector x, Sum y) { k::reduce_in_order(y, k::block_reduce(x, block, 0, plus), 0, plus); }

/// Two passes of a kernel: many programs, and one of what they gave.
template <class Kernel, class Blocks>
Rung two_passes(std::string name, Kernel kernel, Blocks blocks, std::string dead_end = {}) {
  const auto of = [=](int64_t programs) {
    return kernel.grid({k::GridAxis(programs)}).outputs([=](const array&) { return Shape{programs}; });
  };
  return rung(std::move(name), one([=](const Arrays& in) {
                array left = in[0];
                while (left.size() > 1) left = of(blocks(left.size()))(left);
                return left;
              }),
              std::move(dead_end));
}

}  // namespace

Ladder reduction(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 26, 1 << 30);
  Ladder out{.name = "reduction", .inputs = {normal({n}, 1)}};
  out.library = one([](const Arrays& in) { return weft::reshape(weft::sum(in[0]), {1}); });
  out.bytes = 4.0 * static_cast<double>(n);
  out.tolerance = 1e-3;
  const auto from_zero = [](auto kernel, int64_t each) {
    const auto sums = kernel.grid([each](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), each)}; });
    return one([sums](const Arrays& in) { return sums(in[0], weft::zeros({1})); });
  };
  const auto ordered = [](auto x, auto) {
    return k::Grid{k::GridAxis(k::cdiv(x.dim(0), block), k::Order::sequential)};
  };
  out.rungs = {
      loop({{1}},
           [n](auto in, auto to) {
             double sum = 0;
             for (int64_t i = 0; i < n; ++i) sum += in[0][i];
             to[0][0] = static_cast<float>(sum);
           }),
      in_any_order(rung("global atomics", from_zero(k::kernel("sum_atomics", global_atomics), 1),
                        "one address takes one addition at a time")),
      in_any_order(rung("a tree, then an atomic", from_zero(k::kernel("sum_tree_atomic", tree_then_atomic), block))),
      two_passes("a tree, in passes", k::kernel("sum_tree", tree), [](int64_t left) { return k::cdiv(left, block); }),
      two_passes(
          "several elements, in passes", k::kernel("sum_several", several_elements),
          [](int64_t left) { return left > 4096 ? int64_t{1056} : int64_t{1}; },
          "on a CPU the tile of sums lies in memory, not in registers"),
      rung("in order", k::kernel("sum_in_order", in_order).grid(ordered).outputs([](const array&) { return Shape{1}; }),
           "one program at a time: for bits that depend on no grid, not for speed"),
  };
  return out;
}

}  // namespace ladders
