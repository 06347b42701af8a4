// The product of two matrices in bfloat16, summed in float32: what tensor cores are for. Every rung of tiles is one
// kernel; its schedule says by which instruction it multiplies, who copies, and in which order programs take tiles.
#include <algorithm>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Matrix = k::In<k::bf16, 2>;
using Product = k::Out<k::bf16, 2>;

/// A warp a program, a tile of 16 x 16, as the first kernel with WMMA: fragments come from memory at each step.
void fragments(Matrix a, Matrix b, Product c) {
  constexpr int side = 16;
  using Sum = k::Fragment<k::Matrix::accumulator, side, side, side, float>;
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  Sum sum;
  k::loop(0, a.dim(1), side, [&](k::Index i) {
    k::Fragment<k::Matrix::a, side, side, side, k::bf16> left;
    k::Fragment<k::Matrix::b, side, side, side, k::bf16> right;
    k::load_matrix_sync(left, a(rows, k::ds(i, side)));
    k::load_matrix_sync(right, b(k::ds(i, side), columns));
    k::mma_sync(sum, left, right, sum);
  });
  c(rows, columns) = k::cast<k::bf16>(sum.tile());
}

/// Tiles, multiplied and copied as the schedule says.
void tiles(Matrix a, Matrix b, Product c, k::GemmTile tile) {
  k::gemm(a, b, k::program_id(0), k::program_id(1), tile,
          [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) { c(rows, columns) = k::cast<k::bf16>(sum); });
}

/// A product for each matrix of a stack, the stack's axis first.
void of_a_stack(k::In<k::bf16, 3> a, k::In<k::bf16, 3> b, k::Out<k::bf16, 3> c, k::GemmTile tile) {
  const auto one = k::program_id(0);
  const k::Ds rows = k::ds(k::program_id(1) * tile.m, tile.m), columns = k::ds(k::program_id(2) * tile.n, tile.n);
  c(one, rows, columns) = k::cast<k::bf16>(k::gemm_loop(
      a.dim(2), tile, [&](const k::Ds& depth) { return a(one, rows, depth).load(); },
      [&](const k::Ds& depth) { return b(one, depth, columns).load(); }));
}

auto shape_of_product(const array& a, const array& b) { return Shape{a.shape(0), b.shape(1)}; }

auto by(const char* name, k::GemmTile tile, const char* steps) {
  return k::kernel(name, tiles)
      .config(tile)
      .grid([](auto a, auto b, auto, k::GemmTile t) {
        return k::Grid{k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n)};
      })
      .outputs(shape_of_product)
      .schedule(steps);
}

/// A loop in C++, on the numbers in float32.
Rung plain_loop(int64_t m, int64_t n, int64_t depth) {
  Rung out = loop({{m, n}}, [=](auto in, auto to) {
    std::fill_n(to[0], m * n, 0.0f);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t j = 0; j < n; ++j) to[0][i * n + j] += in[0][i * depth + p] * in[1][p * n + j];
  });
  out.run = [run = out.run](const Arrays& in) {
    const array sums = run({weft::astype(in[0], weft::float32), weft::astype(in[1], weft::float32)})[0];
    return Arrays{weft::astype(sums, weft::bfloat16)};
  };
  return out;
}

/// The same product with an axis of one matrix in front.
Rung stacked(k::GemmTile tile, const char* steps) {
  const auto kernel = k::kernel("matmul_stack", of_a_stack)
                          .config(tile)
                          .grid([](auto a, auto b, auto, k::GemmTile t) {
                            return k::Grid{a.dim(0), k::cdiv(a.dim(1), t.m), k::cdiv(b.dim(2), t.n)};
                          })
                          .outputs([](const array& a, const array& b) {
                            return Shape{a.shape(0), a.shape(1), b.shape(2)};
                          })
                          .schedule(steps);
  const auto stacks = [](const Arrays& in) { return Arrays{weft::expand_dims(in[0], 0), weft::expand_dims(in[1], 0)}; };
  Rung out = passes("batched: an axis more", kernel,
                    one([=](const Arrays& in) { return weft::squeeze(kernel(stacks(in))[0], 0); }));
  out.program = [=](const Arrays& in) { return kernel.program(stacks(in)); };
  return out;
}

}  // namespace

Ladder matmul_tensor(Scale scale) {
  // Rows of whole words of 16 bytes, as TMA wants them.
  const int64_t m = at(scale, 70, 1024, 4096), n = at(scale, 48, 1024, 4096), depth = at(scale, 136, 1024, 4096);
  const auto half = [](const array& x) { return weft::astype(x, weft::bfloat16); };
  Ladder out{.name = "matmul_tensor", .inputs = {half(normal({m, depth}, 1)), half(normal({depth, n}, 2))}};
  out.library = one([](const Arrays& in) { return weft::matmul(in[0], in[1]); });
  out.operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(depth);
  out.tolerance = scale == Scale::check ? 0.25 : 4;  // a step of bfloat16 at the largest results
  const auto wmma = k::kernel("matmul_wmma", fragments)
                        .grid([](auto a, auto b, auto) {
                          return k::Grid{k::cdiv(a.dim(0), 16), k::cdiv(b.dim(1), 16)};
                        })
                        .outputs(shape_of_product);
  const k::GemmTile square{128, 128, 64}, wide{128, 256, 64};
  out.rungs = {
      plain_loop(m, n, depth),
      rung("fma, no tensor cores", by("matmul_fma", {64, 64, 32}, "tensorize(fma)"),
           "16-bit numbers are multiplied as float32, one by one"),
      rung("WMMA: a fragment a warp", wmma),
      rung("mma.sync, copies by cp.async", by("matmul_mma", square, "tensorize(mma); pipeline(l0, 3); warps(8)")),
      rung("wgmma, all warps copy", by("matmul_wgmma", square, "tensorize(wgmma); specialize(off)")),
      rung("wgmma, a warpgroup copies by TMA",
           by("matmul_tma", square, "tensorize(wgmma); specialize(on); persistent(off)")),
      rung("two stages, two programs an SM", by("matmul_two_stages", square, "tensorize(wgmma); pipeline(l0, 2)")),
      rung("128 x 256, two warpgroups multiply", by("matmul_wide", wide, "specialize(on); persistent(off); warps(8)")),
      rung("blocks take tiles in turns", by("matmul_persistent", wide, "specialize(on); persistent(on); warps(8)")),
      rung("tiles in bands of eight rows",
           by("matmul_raster", wide, "specialize(on); persistent(on); raster(8); warps(8)")),
      rung("two tiles of 128 x 128 multiply in turns",
           by("matmul_ping_pong", square, "specialize(on); persistent(on); raster(8); ping_pong(on)")),
      stacked(wide, "specialize(on); persistent(on); warps(8)"),
  };
  return out;
}

}  // namespace ladders
