// The examples of Pallas's quick start and of its guides as they are written here, each checked against arrays:
// references and grids, blocks chosen by functions, a fused activation, vmap and compile, a grid that pipelines a sum,
// lists of blocks that are read first (scalar prefetch), random numbers. docs/kernels.md has the two languages' names.
#include <tuple>
#include <vector>

#include "check.h"
#include "weft/compile.h"
#include "weft/kernel_async.h"
#include "weft/kernel_function.h"
#include "weft/kernel_library.h"

using namespace weft;

namespace {

// ---- References: whole arrays in one program, and a grid ----

void add_vectors(k::In<float, 1> x, k::In<float, 1> y, k::Out<float, 1> o) { o(k::all) = x(k::all) + y(k::all); }

/// Each program writes its own number.
void iota(k::Out<int32_t, 1> o, k::In<float, 1>) { o(k::program_id(0)) = k::cast<int32_t>(k::program_id(0)); }

void references() {
  const array x = check::normal({8}, 1), y = check::normal({8}, 2);
  check::near("add_vectors", k::kernel("add_vectors", add_vectors).grid({1})(x, y), x + y, 0);
  check::near("iota", k::kernel("iota", iota).grid({8}).outputs([](const array&) { return Shape{8}; })(x), arange(8),
              0);
}

// ---- Blocks: a product by a grid of two axes, with an activation, batched and compiled ----

/// Each program has a block of rows, a block of columns, and their product in whole. `active`: what follows.
template <class F>
auto product(int64_t down, int64_t across, F active) {
  return k::kernel("matmul",
                   [=](k::In<float, 2> x, k::In<float, 2> y, k::Out<float, 2> z) {
                     const k::Block rows(std::tuple{x.dim(0) / down, x.dim(1)}, [](auto i, auto) {
                       return std::tuple{i, 0};
                     });
                     const k::Block columns(std::tuple{y.dim(0), y.dim(1) / across}, [](auto, auto j) {
                       return std::tuple{0, j};
                     });
                     const k::Block tile(std::tuple{x.dim(0) / down, y.dim(1) / across}, [](auto i, auto j) {
                       return std::tuple{i, j};
                     });
                     const auto i = k::program_id(0), j = k::program_id(1);
                     tile(z, i, j) = active(k::dot(rows(x, i, j), columns(y, i, j)));
                   })
      .grid(k::Grid{down, across})
      .outputs([](const array& x, const array& y) {
        return Shape{x.shape(0), y.shape(1)};
      });
}

void blocks() {
  const array x = check::normal({64, 96}, 3), y = check::normal({96, 80}, 4);
  const auto plain = product(2, 2, [](auto v) { return v; });
  check::near("matmul by blocks", plain(x, y), matmul(x, y), 1e-4);
  const auto fused = product(2, 2, [](auto v) { return k::maximum(v, 0.0); });
  check::near("with a fused activation", fused(x, y), maximum(matmul(x, y), array(0.0f)), 1e-4);
  const auto call = [=](const std::vector<array>& in) { return std::vector{plain(in[0], in[1])}; };
  const array xs = check::normal({3, 64, 96}, 5);
  check::near("vmap: an axis of the grid more", vmap(call, {0, -1})({xs, y})[0], matmul(xs, y), 1e-4);
  const auto step = compile([=](const std::vector<array>& in) { return std::vector{sum(tanh(call(in)[0]))}; });
  check::near("in a compiled function", step({x, y})[0], sum(tanh(matmul(x, y))), 1e-2);
  const auto derived = vjp(call, {x, y}, {ones({64, 80})}).second;
  check::near("and its derivative", derived[0], matmul(ones({64, 80}), transpose(y)), 1e-4);
}

// ---- Pipelining: a grid with an axis that runs in order ----

/// A sum over the last axis of the grid: the first program of it stores, others add. On a GPU a loop does the same with
/// copies that run ahead; emit_pipeline, with slots and barriers by hand, is pipeline.cpp.
void sum_along_grid(k::In<float, 3> x, k::Out<float, 2> o) {
  const auto tile = k::program_id(0), step = k::program_id(1);
  const k::Block of_x(std::tuple{k::squeezed, 32, x.dim(2)}, [](auto i, auto j) { return std::tuple{j, i, 0}; });
  const k::Block of_o(std::tuple{32, x.dim(2)}, [](auto i, auto) { return std::tuple{i, 0}; });
  k::when(step == 0, [&] { of_o(o, tile, step) = k::zeros<float>({32, x.dim(2)}); });
  of_o(o, tile, step) += of_x(x, tile, step);
}

void pipelining() {
  const array x = check::normal({8, 70, 40}, 6);
  const auto sums = k::kernel("sum_along_grid", sum_along_grid)
                        .grid([](auto in, auto) {
                          return k::Grid{k::cdiv(in.dim(1), 32), k::GridAxis(in.dim(0), k::Order::sequential)};
                        })
                        .outputs([](const array& in) {
                          return Shape{in.shape(1), in.shape(2)};
                        });
  check::near("a sum along the grid", sums(x), sum(x, 0), 1e-4);
}

// ---- Scalar prefetch: integers that choose blocks ----

/// A slice of each axis that begins where an array says.
void dynamic_slice(k::In<float, 2> x, k::In<int32_t, 1> at, k::Out<float, 2> o) {
  const k::Block block(std::tuple{k::window(64), k::window(64)}, [&] { return std::tuple{at(0), at(1)}; });
  o(k::all, k::all) = block(x);
}

/// Blocks of a sparse matrix, sorted by rows, times a dense one. Programs along the list run in order, and the first
/// block of a row begins its sum.
void sparse_by_dense(k::In<int32_t, 1> rows, k::In<int32_t, 1> columns, k::In<float, 3> blocks, k::In<float, 2> y,
                     k::InOut<float, 2> o) {
  const int64_t side = blocks.dim(1);
  const auto j = k::program_id(0), item = k::program_id(1);
  const k::Block of_y(std::tuple{side, 64}, [&](auto n, auto i) { return std::tuple{columns(i), n}; });
  const k::Block of_o(std::tuple{side, 64}, [&](auto n, auto i) { return std::tuple{rows(i), n}; });
  of_o(o, j, item) += k::dot(blocks(item, k::all, k::all), of_y(y, j, item));
}

void scalar_prefetch() {
  const array x = check::normal({256, 256}, 7);
  const auto cut = k::kernel("dynamic_slice", dynamic_slice).grid({1}).outputs([](const array&, const array&) {
    return Shape{64, 64};
  });
  check::near("a dynamic slice", cut(x, array({10, 130})), slice(x, {10, 130}, {74, 194}), 0);

  const array rows({0, 0, 2, 3}), columns({1, 3, 0, 2}), values = check::normal({4, 32, 32}, 8),
                                                         y = check::normal({128, 100}, 9);
  array dense = zeros({128, 128});
  const int row[] = {0, 0, 2, 3}, column[] = {1, 3, 0, 2};
  for (int i = 0; i < 4; ++i)
    dense = slice_update(dense, squeeze(slice(values, Shape{i, 0, 0}, Shape{i + 1, 32, 32}), 0),
                         Shape{32 * row[i], 32 * column[i]}, Shape{32 * row[i] + 32, 32 * column[i] + 32});
  const auto multiplied =
      k::kernel("sparse_by_dense", sparse_by_dense).grid([](auto list, auto, auto, auto other, auto) {
        return k::Grid{k::cdiv(other.dim(1), 64), k::GridAxis(list.dim(0), k::Order::sequential)};
      });
  check::near("sparse by dense", multiplied(rows, columns, values, y, zeros({128, 100})), matmul(dense, y), 1e-4);
}

// ---- Random numbers ----

/// Uniform numbers of a seed and a counter, the same on every device.
void uniform(k::In<int32_t, 1> seed, k::Out<float, 1> o) {
  const auto at = k::program_id(0) * 1024;
  o(k::ds(at, 1024)) = k::rand(k::cast<uint64_t>(seed(0)), at + k::arange(1024));
}

void random_numbers() {
  const auto draw = k::kernel("uniform", uniform).grid({4}).outputs([](const array&) { return Shape{4096}; });
  const array drawn = draw(array({3}));
  check::near("the mean of uniform numbers", mean(drawn), array(0.5f), 0.02);
  check::near("the interpreter draws the same", draw.interpret(array({3})), drawn, 0);
}

}  // namespace

int main() {
  references();
  blocks();
  pipelining();
  scalar_prefetch();
  random_numbers();
}
