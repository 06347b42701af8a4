// How often each of 256 values occurs among n: 4 bytes an element are read; the counts are where everybody writes.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Values = k::In<int32_t, 1>;
using Counts = k::InOut<int32_t, 1>;
using Parts = k::Out<int32_t, 2>;

constexpr int64_t bins = 256;

/// A program for each element, which counts it in memory.
void global_atomics(Values x, Counts y) {
  k::atomic("add", y, k::scalar<int32_t>(1), k::cast<int64_t>(x(k::program_id(0))));
}

/// Lanes of a warp that have the same value put theirs together (match), and the first of them adds.
void warps_together(Values x, Counts y) {
  constexpr int64_t block = 1024;
  const auto bin = x(k::ds(k::program_id(0) * block, block)).load(-1);  // no position of y
  const auto warp = k::tiled_partition<32>(k::this_thread_block(block));
  const auto same = k::labeled_partition(warp, bin);
  k::invoke_one(same, [&](const auto& first) { k::atomic("add", y, same.size(), k::where(first, bin, -1)); });
}

/// Each program counts a tile by itself and adds its counts to those in memory.
void counts_of_tiles(Values x, Counts y) {
  constexpr int64_t block = 4096;
  const auto v = x(k::ds(k::program_id(0) * block, block)).load(bins);  // what is outside has no bin
  k::atomic("add", y, k::histogram(v, bins), k::arange(bins));
}

/// A fixed number of programs count many tiles each, and store their counts; a second kernel adds them up.
void counts_of_programs(Values x, Parts y) {
  constexpr int64_t block = 4096;
  k::Mut counts = k::zeros<int32_t>({bins});
  k::loop(k::program_id(0) * block, x.dim(0), k::num_programs(0) * block,
          [&](k::Index i) { counts += k::histogram(x(k::ds(i, block)).load(bins), bins); });
  y(k::program_id(0), k::all) = counts;
}

/// The same in one launch: the program that comes last adds up what all have stored.
void last_program(Values x, Counts come, k::InOut<int32_t, 2> parts, k::Out<int32_t, 1> y) {
  constexpr int64_t block = 4096;
  k::Mut counts = k::zeros<int32_t>({bins});
  k::loop(k::program_id(0) * block, x.dim(0), k::num_programs(0) * block,
          [&](k::Index i) { counts += k::histogram(x(k::ds(i, block)).load(bins), bins); });
  parts(k::program_id(0), k::all) = counts;
  k::when(k::last_program(come, 0), [&] {
    k::Mut total = k::zeros<int32_t>({bins});
    k::loop(k::num_programs(0), [&](k::Index i) { total += parts(i, k::all); });
    y(k::all) = total;
  });
}

}  // namespace

Ladder histogram(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 24, 1 << 28);
  const array x = weft::astype(
      weft::clip(weft::round(normal({n}, 1) * array(40.0f) + array(128.0f)), array(0.0f), array(255.0f)), weft::int32);
  Ladder out{.name = "histogram", .inputs = {x}};
  out.library = one([](const Arrays& in) {
    const array zeros = weft::zeros({static_cast<int>(bins)}, weft::int32);
    return weft::scatter_add(zeros, {in[0]}, weft::ones({in[0].shape(0), 1}, weft::int32), std::vector<int>{0});
  });
  out.bytes = 4.0 * static_cast<double>(n);
  const auto blocks_of = [](auto kernel, int64_t block) {
    return kernel.grid([block](auto a, auto) { return k::Grid{k::cdiv(a.dim(0), block)}; });
  };
  const auto and_zeros = [](const Arrays& in) { return Arrays{in[0], weft::zeros({bins}, weft::int32)}; };
  const auto parts = k::kernel("histogram_programs", counts_of_programs).grid({264}).outputs([](const array&) {
    return Shape{264, bins};
  });
  const auto in_one =
      k::kernel("histogram_last", last_program).grid({264}).outputs([](const array&, const array&, const array&) {
        return Shape{bins};
      });
  Rung first = loop({{bins}}, nullptr);
  first.run = one([n](const Arrays& in) {
    array values = in[0];
    const int32_t* const v = values.data<int32_t>();
    std::vector<int32_t> counts(static_cast<size_t>(bins));
    for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(v[i])];
    return array(counts.data(), {bins});
  });
  out.rungs = {
      first,
      rung("global atomics", blocks_of(k::kernel("histogram_atomics", global_atomics), 1), and_zeros, {0},
           "a program an element, and programs that want one bin wait for each other"),
      rung("atomics of warps", blocks_of(k::kernel("histogram_warps", warps_together), 1024), and_zeros, {0}),
      rung("tiles, then atomics", blocks_of(k::kernel("histogram_tiles", counts_of_tiles), 4096), and_zeros, {0}),
      passes("programs, then a sum", parts, one([parts](const Arrays& in) { return weft::sum(parts(in[0]), 0); })),
      rung("the last program", in_one,
           [](const Arrays& in) {
             return Arrays{in[0], weft::zeros({1}, weft::int32), weft::zeros({264, bins}, weft::int32)};
           },
           {2}),
  };
  return out;
}

}  // namespace ladders
