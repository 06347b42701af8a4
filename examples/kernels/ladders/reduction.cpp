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

/// The tree by hand: each step adds the upper half of what lies in shared memory to the lower half, and half of the
/// threads go idle.
void shared_tree(Vector x, Sum y) {
  constexpr int64_t threads = 1024;
  const auto kept = k::shared<float>({threads});
  kept(k::all) = x(k::ds(k::program_id(0) * threads, threads));
  for (int64_t half = threads / 2; half > 0; half /= 2)
    kept(k::ds(0, half)) = kept(k::ds(0, half)) + kept(k::ds(half, half));
  y(k::program_id(0)) = kept(0);
}

/// A warp reduces its 32 elements by shuffles, without memory and barriers; another warp what the 32 warps gave.
void shuffles(Vector x, Sum y) {
  constexpr int64_t lanes = 32, threads = lanes * lanes;
  const auto of_warps = [](auto v) {
    for (int by = 16; by > 0; by /= 2) v = v + k::warp::shfl_down(v, by);
    return v;
  };
  const auto sums = of_warps(x(k::ds(k::program_id(0) * threads, threads)).load());
  const auto firsts = k::slice(k::reshape(sums, {lanes, lanes}), {0, 0}, {lanes, 1});
  const auto total = of_warps(k::reshape(firsts, {lanes}));
  y(k::program_id(0)) = k::sum(k::slice(total, {0}, {1}), 0);
}

/// A program reduces a tile by a tree, and adds one number to the result in memory.
void tree_then_atomic(Vector x, Total y) { k::atomic("add", y, k::block_reduce(x, block, 0, plus), k::Index(0)); }

/// A program reduces a tile by a tree and stores what it gives: the first pass of two, and the second one.
void tree(Vector x, Sum y) { y(k::program_id(0)) = k::block_reduce(x, block, 0, plus); }

/// A program adds up many tiles element by element, and reduces one tile at the end.
void several_elements(Vector x, Sum y) { y(k::program_id(0)) = k::grid_reduce(x, 1024, 0, plus); }

/// The programs of a cluster reach each other's shared memory: one result for eight of them.
void clusters(Vector x, Sum y) {
  constexpr int64_t width = 1024;
  const auto cluster = k::this_cluster();
  const int64_t size = cluster.num_blocks();
  const auto own = k::program_id(0) * size + cluster.block_rank();
  const auto part = k::shared<float>({1});
  k::Mut sum = k::zeros<float>({width});
  k::loop(own * width, x.dim(0), width * size * k::num_programs(0), [&](k::Index i) { sum += x(k::ds(i, width)); });
  part(0) = k::sum(sum.get(), 0);
  cluster.sync();
  k::Mut all = k::scalar<float>(0);
  k::loop(size, [&](k::Index i) { all += k::neighbour(part, i)(0).load(); });
  k::when(cluster.block_rank() == 0, [&] { y(k::program_id(0)) = all.get(); });
  cluster.sync();
}

/// All of it in one launch: the program that comes last finds the sums of all others, and adds them up in their order.
void last_program(Vector x, k::InOut<int32_t, 1> come, Total parts, Sum y) {
  parts(k::program_id(0)) = k::grid_reduce(x, 1024, 0, plus);
  k::when(k::last_program(come, 0), [&] { y(0) = k::sum(parts(k::all), 0); });
}

/// The same, programs one after another in their order: one kernel, and the same bits at every run.
void in_order(Vector x, Sum y) { k::reduce_in_order(y, k::block_reduce(x, block, 0, plus), 0, plus); }

/// Two passes of a kernel: many programs, and one of what they gave.
template <class Kernel, class Blocks>
Rung two_passes(std::string name, Kernel kernel, Blocks blocks, std::string dead_end = {}) {
  const auto of = [=](int64_t programs) {
    return kernel.grid({k::GridAxis(programs)}).outputs([=](const array&) { return Shape{programs}; });
  };
  Rung out = rung(std::move(name), one([=](const Arrays& in) {
                    array left = in[0];
                    while (left.size() > 1) left = of(blocks(left.size()))(left);
                    return left;
                  }),
                  std::move(dead_end));
  out.program = [=](const Arrays& in) { return of(blocks(in[0].size())).program(in); };
  return out;
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
    return sums;
  };
  const auto and_zero = [](const Arrays& in) { return Arrays{in[0], weft::zeros({1})}; };
  const auto threads = [](int64_t left) { return k::cdiv(left, 1024); };
  const auto ordered = [](auto x, auto) {
    return k::Grid{k::GridAxis(k::cdiv(x.dim(0), block), k::Order::sequential)};
  };
  const auto by_clusters = k::kernel("sum_clusters", clusters)
                               .grid({k::GridAxis(132), k::GridAxis(8, k::Order::cluster)})
                               .outputs([](const array&) { return Shape{132}; });
  const auto in_one =
      k::kernel("sum_last_program", last_program).grid({1056}).outputs([](const array&, const array&, const array&) {
        return Shape{1};
      });
  out.rungs = {
      loop({{1}},
           [n](auto in, auto to) {
             double sum = 0;
             for (int64_t i = 0; i < n; ++i) sum += in[0][i];
             to[0][0] = static_cast<float>(sum);
           }),
      in_any_order(rung("global atomics", from_zero(k::kernel("sum_atomics", global_atomics), 1), and_zero, {0},
                        "one address takes one addition at a time")),
      two_passes("a tree in shared memory, in passes", k::kernel("sum_shared_tree", shared_tree), threads),
      two_passes("shuffles, in passes", k::kernel("sum_shuffles", shuffles), threads),
      in_any_order(rung("a tree, then an atomic", from_zero(k::kernel("sum_tree_atomic", tree_then_atomic), block),
                        and_zero, {0})),
      two_passes("a tree, in passes", k::kernel("sum_tree", tree), [](int64_t left) { return k::cdiv(left, block); }),
      two_passes(
          "several elements, in passes", k::kernel("sum_several", several_elements),
          [](int64_t left) { return left > 4096 ? int64_t{1056} : int64_t{1}; },
          "on a CPU the tile of sums lies in memory, not in registers"),
      passes("clusters of eight, in passes", by_clusters,
             one([=](const Arrays& in) { return weft::reshape(weft::sum(by_clusters(in[0])), {1}); })),
      rung("the last program", in_one,
           [](const Arrays& in) {
             return Arrays{in[0], weft::zeros({1}, weft::int32), weft::zeros({1056})};
           },
           {2}),
      rung("in order", k::kernel("sum_in_order", in_order).grid(ordered).outputs([](const array&) { return Shape{1}; }),
           "one program at a time: for bits that depend on no grid, not for speed"),
  };
  return out;
}

}  // namespace ladders
