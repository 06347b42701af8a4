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
  const auto from_zero = [](auto kernel, int64_t block) {
    const auto counts = kernel.grid([block](auto a, auto) { return k::Grid{k::cdiv(a.dim(0), block)}; });
    return one(
        [counts](const Arrays& in) { return counts(in[0], weft::zeros({static_cast<int>(bins)}, weft::int32)); });
  };
  const auto parts = k::kernel("histogram_programs", counts_of_programs).grid({264}).outputs([](const array&) {
    return Shape{264, bins};
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
      rung("global atomics", from_zero(k::kernel("histogram_atomics", global_atomics), 1),
           "a program an element, and programs that want one bin wait for each other"),
      rung("tiles, then atomics", from_zero(k::kernel("histogram_tiles", counts_of_tiles), 4096)),
      rung("programs, then a sum", one([parts](const Arrays& in) { return weft::sum(parts(in[0]), 0); })),
  };
  return out;
}

}  // namespace ladders
