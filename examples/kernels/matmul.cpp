// Products of matrices: tiles, tiles with an epilogue, in 16 bits, and batched.
#include "check.h"
#include "weft/kernel_function.h"

using namespace weft;

/// The extents of a tile: a configuration of the kernel. Other values give another trace of it.
struct Tiles {
  int64_t m = 64, n = 64, k = 32;
  friend bool operator==(const Tiles&, const Tiles&) = default;
};

/// C = A · B by tiles; slices at the edges are cut off, and what lies outside loads as 0.
template <class T>
void product(k::In<T, 2> a, k::In<T, 2> b, k::Out<T, 2> c, Tiles tile) {
  const auto rows = k::ds(k::program_id(0) * tile.m, tile.m), columns = k::ds(k::program_id(1) * tile.n, tile.n);
  k::Mut sum = k::zeros<float>({tile.m, tile.n});
  k::loop(0, a.dim(1), tile.k, [&](k::Index i) {
    const auto depth = k::ds(i, tile.k);
    sum = k::dot(a(rows, depth), b(depth, columns), sum.get());
  });
  c(rows, columns) = k::cast<T>(sum);
}

int main() {
  const int64_t m = 150, n = 130, depth = 170;
  const array a = check::normal({m, depth}, 1), b = check::normal({depth, n}, 2), bias = check::normal({n}, 3);
  const array wanted = matmul(a, b);
  const auto result = [](const array& x, const array& y) { return Shape{x.shape(0), y.shape(1)}; };

  const auto by_tiles = [&](auto function) {
    return k::kernel("matmul", function)
        .grid([](auto x, auto y, auto, Tiles t) {
          return k::Grid{k::cdiv(x.dim(0), t.m), k::cdiv(y.dim(1), t.n)};
        })
        .outputs(result);
  };
  const auto tiled = by_tiles(product<float>);
  check::near("tiles of 64 x 64 x 32", tiled(a, b), wanted, 1e-4);
  check::near("tiles of 48 x 100 x 17", tiled.config({48, 100, 17})(a, b), wanted, 1e-4);

  // The compiler takes the fastest of several, by measurement at the first call, and remembers it.
  const auto chosen = tiled.configs({{{.m = 64, .n = 64, .k = 32}, {.warps = 4}},
                                     {{.m = 128, .n = 64, .k = 32}, {.warps = 8, .stages = 3}},
                                     {{.m = 32, .n = 64, .k = 16}}});
  check::near("the fastest of three", chosen(a, b), wanted, 1e-4);

  const auto in_bf16 = by_tiles(product<bfloat16_t>);
  check::near("bfloat16", in_bf16(astype(a, bfloat16), astype(b, bfloat16)), matmul(a, b), 0.5);

  const auto fused =
      k::kernel("matmul_bias_relu", [](k::In<float, 2> x, k::In<float, 2> y, k::In<float, 1> v, k::Out<float, 2> z) {
        constexpr int64_t tile = 64;
        const auto rows = k::ds(k::program_id(0) * tile, tile), columns = k::ds(k::program_id(1) * tile, tile);
        k::Mut sum = k::zeros<float>({tile, tile});
        k::loop(0, x.dim(1), 32,
                [&](k::Index i) { sum = k::dot(x(rows, k::ds(i, 32)), y(k::ds(i, 32), columns), sum.get()); });
        z(rows, columns) = k::maximum(sum + k::row(v(columns)), 0.0);
      }).grid([](auto x, auto y, auto, auto) {
          return k::Grid{k::cdiv(x.dim(0), 64), k::cdiv(y.dim(1), 64)};
        }).outputs([](const array& x, const array& y, const array&) {
        return Shape{x.shape(0), y.shape(1)};
      });
  check::near("with bias and relu", fused(a, b, bias), maximum(wanted + bias, array(0.0f)), 1e-4);

  const array many = check::normal({4, m, depth}, 4);
  const array products =
      vmap([&](const std::vector<array>& in) { return std::vector{tiled(in[0], in[1])}; }, {0, -1})({many, b})[0];
  check::near("a batch by vmap", products, matmul(many, b), 1e-4);
}
