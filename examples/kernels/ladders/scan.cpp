// The sums up to each element: 8 bytes an element, and each result depends on all elements before it.
#include "examples/kernels/ladders/ladder.h"

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
  };
  return out;
}

}  // namespace ladders
