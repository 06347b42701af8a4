// The product of two matrices in float32: 2 m n k operations on few bytes, so that each element that is loaded has to
// be used many times. The tiles of registers are what `k::dot` makes by itself; the rungs before it show why.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Matrix = k::In<float, 2>;
using Product = k::Out<float, 2>;

/// A program for each element: a row and a column are read for one result.
void elements(Matrix a, Matrix b, Product c) {
  const auto i = k::program_id(0), j = k::program_id(1);
  k::Mut sum = k::scalar<float>(0);
  k::loop(a.dim(1), [&](k::Index p) { sum += a(i, p) * b(p, j); });
  c(i, j) = sum;
}

/// A program for a part of a row: rows of b are read in order, an element of a is used 256 times.
void row_parts(Matrix a, Matrix b, Product c) {
  const auto i = k::program_id(0);
  const auto columns = k::ds(k::program_id(1) * 256, 256);
  k::Mut sum = k::zeros<float>({256});
  k::loop(a.dim(1), [&](k::Index p) { sum = k::fma(b(p, columns), a(i, p).load(), sum.get()); });
  c(i, columns) = sum;
}

/// A tile that grows by outer products: a column of a and a row of b are used m and n times.
template <int64_t m, int64_t n>
void outer_products(Matrix a, Matrix b, Product c) {
  const auto rows = k::ds(k::program_id(0) * m, m), columns = k::ds(k::program_id(1) * n, n);
  k::Mut sum = k::zeros<float>({m, n});
  k::loop(a.dim(1), [&](k::Index p) {
    const auto left = k::broadcast_to(k::col(a(rows, p)), {m, n}),
               right = k::broadcast_to(k::row(b(p, columns)), {m, n});
    sum = k::fma(left, right, sum.get());
  });
  c(rows, columns) = sum;
}

/// The same by way of shared memory: a slab of a, turned, and one of b are loaded once, and read m and n times. With
/// m · n / 32 / warps elements a thread: one, a column of eight, or a square of 64, which reads 16 for 64
/// multiplications.
template <int64_t m, int64_t n, int64_t depth>
void through_shared(Matrix a, Matrix b, Product c) {
  const auto rows = k::ds(k::program_id(0) * m, m), columns = k::ds(k::program_id(1) * n, n);
  const auto as = k::shared<float>({depth, m}), bs = k::shared<float>({depth, n});
  k::Mut sum = k::zeros<float>({m, n});
  k::loop(0, a.dim(1), depth, [&](k::Index i) {
    as(k::all, k::all) = k::trans(a(rows, k::ds(i, depth)));
    bs(k::all, k::all) = b(k::ds(i, depth), columns);
    k::loop(depth, [&](k::Index p) {
      const auto left = k::broadcast_to(k::col(as(p, k::all)), {m, n}),
                 right = k::broadcast_to(k::row(bs(p, k::all)), {m, n});
      sum = k::fma(left, right, sum.get());
    });
  });
  c(rows, columns) = sum;
}

/// Tiles by `dot`: operands go through shared memory, or packed panels; accumulators fill the registers.
void tiles(Matrix a, Matrix b, Product c, k::GemmTile tile) {
  k::gemm(a, b, k::program_id(0), k::program_id(1), tile,
          [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) { c(rows, columns) = sum; });
}

/// Roles by hand: a warp fills a ring of slabs, four warps multiply what has come. Each waits at barriers for nobody
/// but the other.
void copier_and_multiplier(Matrix a, Matrix b, Product c) {
  constexpr int64_t side = 64, depth = 32, stages = 3;
  const auto as = k::shared<float>({stages, side, depth}, k::SharedLayout::swizzle128),
             bs = k::shared<float>({stages, depth, side});
  const int64_t steps = k::cdiv(a.dim(1), depth);
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  const k::Pipeline ring(stages);
  const auto copies = [&] {
    k::loop(steps, [&](k::Index i) {
      const auto at = k::ds(i * depth, depth);
      ring.acquire(i);
      ring.copy(i, as(ring.slot(i), k::all, k::all), a(rows, at));
      ring.copy(i, bs(ring.slot(i), k::all, k::all), b(at, columns));
      ring.commit(i);
    });
  };
  const auto multiplies = [&] {
    k::Mut sum = k::zeros<float>({side, side});
    k::loop(steps, [&](k::Index i) {
      ring.wait(i);
      sum = k::dot(as(ring.slot(i), k::all, k::all), bs(ring.slot(i), k::all, k::all), sum.get());
      ring.release(i);
    });
    c(rows, columns) = sum;
  };
  k::roles({{.warps = 1, .body = copies}, {.warps = 4, .body = multiplies}});
}

/// The same, tiles in bands: programs that run at once share rows of a and columns of b.
void bands(Matrix a, Matrix b, Product c, k::GemmTile tile) {
  const int64_t down = k::cdiv(a.dim(0), tile.m), across = k::cdiv(b.dim(1), tile.n);
  const auto [i, j] = k::swizzle2d(k::program_id(0), down, across, 8);
  k::gemm(a, b, i, j, tile, [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) { c(rows, columns) = sum; });
}

/// The depth in parts: each program has a part of it, a second kernel adds them up.
void parts_of_depth(Matrix a, Matrix b, k::Out<float, 3> parts, k::GemmTile tile) {
  const int64_t depth = k::cdiv(a.dim(1), parts.dim(0));
  const auto part = k::program_id(0);
  const k::Ds rows = k::ds(k::program_id(1) * tile.m, tile.m), columns = k::ds(k::program_id(2) * tile.n, tile.n);
  const auto first = part * depth;
  const auto within = [&](const k::Ds& at) { return k::Index(at.span.start) + first; };
  const auto left = [&](const k::Ds& at) {
    const auto inside = k::row(k::Index(at.span.start) + k::arange(tile.k)) < depth;
    return k::where(inside, a(rows, k::ds(within(at), tile.k)).load(), 0.0);
  };
  const auto right = [&](const k::Ds& at) { return b(k::ds(within(at), tile.k), columns).load(); };
  parts(part, rows, columns) = k::gemm_loop(depth, tile, left, right);
}

auto of_tiles(const char* name, void (*f)(Matrix, Matrix, Product, k::GemmTile), k::GemmTile tile) {
  return k::kernel(name, f)
      .config(tile)
      .grid([](auto a, auto b, auto, k::GemmTile t) {
        return k::Grid{k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n)};
      })
      .outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      });
}

void plain_loop(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t depth) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += a[i * depth + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
}

}  // namespace

Ladder matmul(Scale scale) {
  const int64_t m = at(scale, 70, 1024, 4096), n = at(scale, 45, 1024, 4096), depth = at(scale, 50, 1024, 4096);
  Ladder out{.name = "matmul", .inputs = {normal({m, depth}, 1), normal({depth, n}, 2)}};
  out.library = one([](const Arrays& in) { return weft::matmul(in[0], in[1]); });
  out.operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(depth);
  out.tolerance = 1e-4;
  const auto shape = [](const array& a, const array& b) { return Shape{a.shape(0), b.shape(1)}; };
  const auto by = [&](const char* name, auto f, int64_t rows, int64_t columns) {
    return k::kernel(name, f)
        .grid([=](auto a, auto b, auto) {
          return k::Grid{k::cdiv(a.dim(0), rows), k::cdiv(b.dim(1), columns)};
        })
        .outputs(shape);
  };
  const k::GemmTile small{32, 32, 32}, large{128, 128, 64};
  const auto banded = of_tiles("matmul_bands", bands, large).grid([](auto a, auto b, auto, k::GemmTile t) {
    return k::Grid{k::cdiv(a.dim(0), t.m) * k::cdiv(b.dim(1), t.n)};
  });
  const auto split = k::kernel("matmul_parts", parts_of_depth)
                         .config(large)
                         .grid([](auto a, auto b, auto parts, k::GemmTile t) {
                           return k::Grid{parts.dim(0), k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n)};
                         })
                         .outputs([](const array& a, const array& b) {
                           return Shape{2, a.shape(0), b.shape(1)};
                         });
  const auto tuned = of_tiles("matmul_tuned", tiles, small)
                         .configs({{small, {.warps = 4}},
                                   {{64, 128, 32}, {.warps = 4}},
                                   {{128, 128, 32}, {.warps = 8}},
                                   {large, {.warps = 8}}});
  out.rungs = {
      loop({{m, n}}, [=](auto in, auto to) { plain_loop(in[0], in[1], to[0], m, n, depth); }),
      rung("a program an element", by("matmul_elements", elements, 1, 1)),
      rung("parts of rows", by("matmul_row_parts", row_parts, 1, 256)),
      rung("outer products 8 x 32", by("matmul_outer", outer_products<8, 32>, 8, 32)),
      rung("shared memory, an element a thread",
           by("matmul_shared", through_shared<32, 32, 32>, 32, 32).schedule("warps(32)")),
      rung("shared memory, eight elements a thread",
           by("matmul_register_columns", through_shared<64, 64, 8>, 64, 64).schedule("warps(16)")),
      rung("shared memory, 64 elements a thread",
           by("matmul_register_squares", through_shared<128, 128, 8>, 128, 128).schedule("warps(8)")),
      rung("tiles 32 x 32 x 32", of_tiles("matmul_small_tiles", tiles, small)),
      rung("a warp copies, four multiply", by("matmul_roles", copier_and_multiplier, 64, 64),
           "in roles a product is one fused multiply-add after the other, without tiles of registers"),
      rung("tiles 128 x 128 x 64", of_tiles("matmul_tiles", tiles, large)),
      rung("the same in bands", banded),
      rung("tuned: the fastest of four", tuned),
      passes("the depth in two parts", split,
             one([split](const Arrays& in) { return weft::sum(split(in[0], in[1]), 0); }),
             "pays where the result has fewer tiles than the device has processors"),
  };
  return out;
}

namespace {

using Stack = k::In<float, 3>;
using Products = k::Out<float, 3>;

/// A program a matrix: all of it is one tile.
void whole_matrices(Stack a, Stack b, Products c) {
  const auto i = k::program_id(0);
  c(i, k::all, k::all) = k::dot(a(i, k::all, k::all), b(i, k::all, k::all));
}

/// Several matrices a program, by a dot of three axes.
template <int64_t count>
void several_matrices(Stack a, Stack b, Products c) {
  const auto some = k::ds(k::program_id(0) * count, count);
  c(some, k::all, k::all) = k::dot(a(some, k::all, k::all), b(some, k::all, k::all));
}

}  // namespace

Ladder batched_matmul(Scale scale) {
  const int64_t count = at(scale, 7, 4096, 16384), n = at(scale, 19, 32, 64);
  Ladder out{.name = "batched_matmul", .inputs = {normal({count, n, n}, 1), normal({count, n, n}, 2)}};
  out.library = one([](const Arrays& in) { return weft::matmul(in[0], in[1]); });
  out.operations = 2.0 * static_cast<double>(count * n * n * n);
  out.tolerance = 1e-4;
  const auto by = [](const char* name, auto f, int64_t each) {
    return k::kernel(name, f).grid([=](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), each)}; });
  };
  const auto tiled = of_tiles("matmul_of_each", tiles, {32, 32, 32});
  out.rungs = {
      loop({{count, n, n}},
           [=](auto in, auto to) {
             for (int64_t i = 0; i < count; ++i)
               plain_loop(in[0] + i * n * n, in[1] + i * n * n, to[0] + i * n * n, n, n, n);
           }),
      rung("the kernel of one product by vmap",
           weft::vmap([tiled](const Arrays& in) { return Arrays{tiled(in[0], in[1])}; }, {0, 0})),
      rung("a program a matrix", by("matmul_whole", whole_matrices, 1)),
      rung("four matrices a program", by("matmul_several", several_matrices<4>, 4),
           "the matrices of a tile are multiplied one after the other all the same"),
  };
  return out;
}

}  // namespace ladders
