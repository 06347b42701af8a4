// The sums up to each element: 8 bytes an element, and each result depends on all elements before it.
#include "examples/kernels/ladders/ladder.h"
#include "weft/kernel_async.h"

namespace ladders {

namespace {

using Vector = k::In<float, 1>;
using Result = k::Out<float, 1>;

constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
constexpr int64_t block = 4096;

/// One program goes through all blocks with a carry.
void one_program(Vector x, Result y) { k::scan_all(x, y, block, 0, plus); }

/// Programs in order: each reads what the one before it stored last.
void in_order(Vector x, Result y) { k::scan_in_order(x, y, block, 0, plus); }

/// The first of three kernels: sums of blocks. The second one scans them, the third one scans each block behind its
/// sum.
void sums(Vector x, Result y) { y(k::program_id(0)) = k::block_reduce(x, block, 0, plus); }
void starts(Vector x, Result y) { k::scan_all(x, y, block, 0, plus, true); }
void blocks(Vector x, Vector before, Result y) { k::block_scan(x, y, block, before(k::program_id(0)), 0, plus); }

/// One pass, with decoupled look-back (Merrill and Garland 2016). A program publishes the sum of its block, its bits
/// below a 1; adds the sums of blocks before it up to one that has published the sum of all up to its end, below a 2;
/// and publishes that of its own.
void look_back(Vector x, k::InOut<int64_t, 1> words, Result y) {
  constexpr int64_t one = int64_t{1} << 32;
  const auto own = k::program_id(0);
  const auto here = k::ds(own * block, block);
  const auto v = x(here).load();
  const auto publish = [&](int64_t what, const k::Tile<float, 0>& sum) {
    const auto bits = k::cast<int64_t>(k::bitcast<int32_t>(sum)) & (one - 1);
    k::atomic({"exchange", k::MemoryOrder::release}, words, bits + what * one, own);
  };
  const auto total = k::sum(v, 0);
  k::when(own > 0, [&] { publish(1, total); });
  k::Mut before = k::scalar<float>(0);
  k::Mut at = own - 1;
  k::while_([&] { return at.get() >= 0; },
            [&] {
              const auto word = k::wait_until(words, at.get(), [](const auto& w) { return w != 0; });
              before = k::bitcast<float>(k::cast<int32_t>(word & (one - 1))) + before.get();
              at = k::where(word >= 2 * one, k::scalar<int64_t>(-1), at.get() - 1);
            });
  publish(2, before.get() + total);
  y(here) = k::cumsum(v, 0) + before.get();
}

}  // namespace

Ladder scan(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 24, 1 << 28);
  Ladder out{.name = "scan", .inputs = {normal({n}, 1)}};
  out.library = one([](const Arrays& in) { return weft::cumsum(in[0], 0); });
  out.bytes = 8.0 * static_cast<double>(n);
  out.tolerance = 1e-3;
  const auto first = k::kernel("scan_sums", sums)
                         .grid([](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), block)}; })
                         .outputs([](const array& x) { return Shape{k::cdiv(x.shape(0), block)}; });
  const auto second = k::kernel("scan_starts", starts).grid({1});
  const auto third =
      k::kernel("scan_blocks", blocks).grid([](auto x, auto, auto) { return k::Grid{k::cdiv(x.dim(0), block)}; });
  const auto one_pass = k::kernel("scan_look_back", look_back).grid([](auto x, auto, auto) {
    return k::Grid{k::GridAxis(k::cdiv(x.dim(0), block), k::Order::ordered)};
  });
  const auto ordered = [](auto x, auto) {
    return k::Grid{k::GridAxis(k::cdiv(x.dim(0), block), k::Order::sequential)};
  };
  out.rungs = {
      loop({{n}},
           [n](auto in, auto to) {
             double sum = 0;
             for (int64_t i = 0; i < n; ++i) to[0][i] = static_cast<float>(sum += in[0][i]);
           }),
      rung("one program", k::kernel("scan_one", one_program).grid({1})),
      rung("programs in order", k::kernel("scan_in_order", in_order).grid(ordered),
           "one program at a time, as one program does it without going through memory"),
      rung("three kernels", one([=](const Arrays& in) { return third(in[0], second(first(in[0]))); }),
           "x is read twice: pays where several threads run"),
      in_any_order(rung("look-back", one([=](const Arrays& in) {
                          const array words = weft::zeros({k::cdiv(in[0].shape(0), block)}, weft::int64);
                          return std::get<1>(one_pass(in[0], words));
                        }))),
  };
  return out;
}

}  // namespace ladders
