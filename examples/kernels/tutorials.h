#pragma once
// The kernels of Triton's tutorials as they are written here. coming_from_triton.cpp checks them, `weft bench
// tutorials` times them; attention with its backward kernels is tutorial_attention.h.
#include <algorithm>
#include <vector>

#include "weft/kernel_code.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"
#include "weft/kernel_library.h"
#include "weft/weft.h"

namespace tutorials {

namespace k = weft::k;

// ---- Vector addition ----

inline constexpr int64_t vector_block = 1024;

inline void add(k::In<float, 1> x, k::In<float, 1> y, k::Out<float, 1> out) {
  const auto at = k::ds(k::program_id(0) * vector_block, vector_block);  // what lies behind the end is cut off
  out(at) = x(at) + y(at);
}

// ---- Fused softmax ----

/// As many programs as the device runs at once, each of which goes through rows that lie that far apart.
inline void softmax_rows(k::In<float, 2> x, k::Out<float, 2> y) {
  k::loop(k::program_id(0), x.dim(0), k::num_programs(0), [&](k::Index row) {
    const auto v = x(row, k::all).load();
    const auto e = k::exp(v - k::max(v, 0));
    y(row, k::all) = e / k::sum(e, 0);
  });
}

// ---- Matrix multiplication ----

/// What a program computes: a tile, in bands of `group` rows of tiles, with an activation behind it.
struct Meta {
  int64_t m = 64, n = 64, k = 32, group = 8;
  bool leaky_relu = false;
  friend bool operator==(const Meta&, const Meta&) = default;
};

/// One tile of C = activation(A · B).
template <class A, class B>
void tile_of_product(const A& a, const B& b, k::Out<k::f16, 2> c, const k::Index& i, const k::Index& j,
                     const Meta& meta) {
  const auto store = [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) {
    const auto active = meta.leaky_relu ? k::where(sum >= 0, sum, sum * 0.01f) : sum;
    c(rows, columns) = k::cast<k::f16>(active);
  };
  k::gemm(a, b, i, j, {meta.m, meta.n, meta.k}, store);
}

template <class T>
void product(k::In<T, 2> a, k::In<T, 2> b, k::Out<k::f16, 2> c, Meta meta) {
  const int64_t down = k::cdiv(a.dim(0), meta.m), across = k::cdiv(b.dim(1), meta.n);
  const auto [i, j] = k::swizzle2d(k::program_id(0), down, across, meta.group);
  tile_of_product(a, b, c, i, j, meta);
}

/// The same of 8-bit floats, of which tensor cores want the columns of B to lie one after the other: `b` is Bᵀ.
template <class T>
void narrow_product(k::In<T, 2> a, k::In<T, 2> b, k::Out<k::f16, 2> c, Meta meta) {
  const int64_t down = k::cdiv(a.dim(0), meta.m), across = k::cdiv(b.dim(0), meta.n);
  const auto [i, j] = k::swizzle2d(k::program_id(0), down, across, meta.group);
  tile_of_product(a, b.permute({1, 0}), c, i, j, meta);
}

/// A fixed number of programs that take tiles in turns.
template <class T>
void persistent_product(k::In<T, 2> a, k::In<T, 2> b, k::Out<k::f16, 2> c, Meta meta) {
  const int64_t down = k::cdiv(a.dim(0), meta.m), across = k::cdiv(b.dim(1), meta.n);
  k::loop(k::program_id(0), down * across, k::num_programs(0), [&](k::Index tile) {
    const auto [i, j] = k::swizzle2d(tile, down, across, meta.group);
    tile_of_product(a, b, c, i, j, meta);
  });
}

inline weft::Shape shape_of_product(const weft::array& a, const weft::array& b) { return {a.shape(0), b.shape(1)}; }

/// A grid of tiles, one a program.
template <class A, class B>
k::Grid grid_of_product(A a, B b, const Meta& meta) {
  return {k::cdiv(a.dim(0), meta.m) * k::cdiv(b.dim(1), meta.n)};
}

// ---- Low-memory dropout ----

inline constexpr int64_t dropout_block = 1024;

/// Philox makes the bits of element i from the seed and i: the backward pass makes them again.
inline void seeded_dropout(k::In<float, 1> x, k::In<int32_t, 1> seed, k::Out<float, 1> y, double p) {
  constexpr int64_t block = dropout_block;
  const auto first = k::program_id(0) * block;
  const auto at = k::ds(first, block);
  const auto kept = k::rand(k::cast<uint64_t>(seed(0)), first + k::arange(block)) > p;
  y(at) = k::where(kept, x(at) * (1 / (1 - p)), 0.0);
}

// ---- Layer normalization ----

inline constexpr double eps = 1e-5;

/// A row of y = (x - mean) / deviation · weight + bias, its mean and what it is multiplied by.
template <class T>
void norm_forward(k::In<T, 2> x, k::In<T, 1> weight, k::In<T, 1> bias, k::Out<T, 2> y, k::Out<float, 1> means,
                  k::Out<float, 1> factors) {
  const auto row = k::program_id(0);
  const float share = 1 / static_cast<float>(x.dim(1));
  const auto wide = [](const auto& vector) { return k::cast<float>(vector(k::all).load()); };
  const auto v = k::cast<float>(x(row, k::all).load());
  const auto mean = k::sum(v, 0) * share;
  const auto apart = v - mean;
  const auto factor = k::rsqrt(k::sum(apart * apart, 0) * share + eps);
  y(row, k::all) = k::cast<T>(apart * factor * wide(weight) + wide(bias));
  means(row) = mean;
  factors(row) = factor;
}

/// A program takes rows in turns, makes their dx, and adds up what they give to dw and db; at its end it adds that to
/// one of a few buffers, when it has the buffer's lock. (Triton's programs have a row each, and take the lock for it.)
template <class T>
void norm_backward(k::In<T, 2> x, k::In<T, 1> weight, k::In<float, 1> means, k::In<float, 1> factors, k::In<T, 2> g,
                   k::Out<T, 2> dx, k::InOut<int32_t, 1> lock, k::InOut<float, 2> dw, k::InOut<float, 2> db) {
  const float share = 1 / static_cast<float>(x.dim(1));
  const auto weights = k::cast<float>(weight(k::all).load());
  k::Mut to_weight = k::zeros<float>({x.dim(1)}), to_bias = k::zeros<float>({x.dim(1)});
  k::loop(k::program_id(0), x.dim(0), k::num_programs(0), [&](k::Index row) {
    const auto cotangent = k::cast<float>(g(row, k::all).load());
    const auto normal = (k::cast<float>(x(row, k::all).load()) - means(row)) * factors(row);
    const auto weighted = cotangent * weights;
    const auto along = k::sum(weighted * normal, 0) * share, all = k::sum(weighted, 0) * share;
    dx(row, k::all) = k::cast<T>((weighted - normal * along - all) * factors(row));
    to_weight = to_weight + cotangent * normal;
    to_bias = to_bias + cotangent;
  });
  const auto buffer = k::program_id(0) % dw.dim(0);
  k::Mutex(lock, buffer).locked([&] {
    dw(buffer, k::all) += to_weight.get();
    db(buffer, k::all) += to_bias.get();
  });
}

/// Returns the forward kernel: x [rows, columns], weights and biases [columns] → y, means and factors.
template <class T>
auto norm_forward_kernel() {
  using weft::array, weft::Shape;
  return k::kernel("norm_forward", norm_forward<T>)
      .grid([](auto x, const auto&...) { return k::Grid{x.dim(0)}; })
      .outputs([](const array& x, const array&, const array&) {
        return std::vector<Shape>{x.shape(), {x.shape(0)}, {x.shape(0)}};
      });
}

/// Returns the backward kernel, with locks [buffers] and sums for weights and biases [buffers, columns]: four programs
/// for each buffer.
template <class T>
auto norm_backward_kernel() {
  return k::kernel("norm_backward", norm_backward<T>)
      .grid([](auto x, auto, auto, auto, auto, auto, auto lock, const auto&...) {
        return k::Grid{std::min(x.dim(0), 4 * lock.dim(0))};
      });
}

/// Returns the backward pass as a function of x [rows, columns], weights, means, factors and the cotangents of y; it
/// gives those of x, weights and biases. Sums for the weights go through `buffers` rows.
template <class T>
weft::ArrayFunction norm_gradient(int buffers) {
  using weft::array;
  const auto backward = norm_backward_kernel<T>();
  return [=](const std::vector<array>& in) {
    const array sums = weft::zeros({buffers, in[0].shape(1)});
    const auto [dx, lock, dw, db] =
        backward(in[0], in[1], in[2], in[3], in[4], weft::zeros({buffers}, weft::int32), sums, sums);
    const auto total = [&](const array& v) { return astype(weft::sum(v, 0), in[1].dtype()); };
    return std::vector<array>{dx, total(dw), total(db)};
  };
}

/// Returns the norm of rows x [rows, columns] by weights and biases [columns], with a derivative of its own; its
/// results are y, means and factors.
template <class T>
weft::ArrayFunction norm_of(int buffers) {
  using weft::array;
  const auto forward = norm_forward_kernel<T>();
  return weft::custom_vjp(
      [=](const std::vector<array>& in) { return forward(in); },
      [=](const std::vector<array>& in, const std::vector<array>& g, const std::vector<array>& out) {
        return norm_gradient<T>(buffers)({in[0], in[1], out[1], out[2], g[0]});
      });
}

// ---- Grouped products ----

/// Products of many shapes in one launch. All matrices lie in one array each for a, b and c; `problems` has for each
/// product m, n, k and where its matrices begin, `tiles` the number of the product and the tile's row and column.
inline void grouped(k::In<k::f16, 1> a, k::In<k::f16, 1> b, k::In<int32_t, 2> problems, k::In<int32_t, 2> tiles,
                    k::InOut<float, 1> c) {
  constexpr int64_t side = 32, depth = 32;
  k::loop(k::program_id(0), tiles.dim(0), k::num_programs(0), [&](k::Index tile) {
    const auto whole = [](const auto& v) { return k::cast<int64_t>(v); };
    const auto problem = whole(tiles(tile, 0));
    const auto of = [&](int64_t i) { return whole(problems(problem, i)); };
    const auto m = of(0), n = of(1), length = of(2);
    const auto rows = k::col(whole(tiles(tile, 1)) * side + k::arange(side)),
               columns = k::row(whole(tiles(tile, 2)) * side + k::arange(side));
    k::Mut sum = k::zeros<float>({side, side});
    k::loop(k::Index(0), length, depth, [&](k::Index first) {
      const auto steps = first + k::arange(depth);
      const auto left = k::where((rows < m) & (k::row(steps) < length), of(3) + rows * length + k::row(steps), -1);
      const auto right = k::where((columns < n) & (k::col(steps) < length), of(4) + k::col(steps) * n + columns, -1);
      sum = k::dot(k::gather(a, left), k::gather(b, right), sum.get());  // 0 outside
    });
    k::scatter(c, sum.get(), k::where((rows < m) & (columns < n), of(5) + rows * n + columns, -1));
  });
}

/// Products of the same width and depth in one launch, each of whole tiles of rows: a [rows, k] with all left operands
/// below each other, b [groups, k, n], and for each tile of rows its group and its number. That both lie in bounds is
/// said, so that tiles are loaded as those of a product.
template <class T>
void grouped_rows(k::In<T, 2> a, k::In<T, 3> b, k::In<int32_t, 2> tiles, k::Out<k::f16, 2> c, Meta meta) {
  const auto [i, j] = k::swizzle2d(k::program_id(0), tiles.dim(0), k::cdiv(b.dim(2), meta.n), meta.group);
  const auto group = k::assume_range(k::cast<int64_t>(tiles(i, 0)), 0, b.dim(0) - 1),
             tile = k::assume_range(k::cast<int64_t>(tiles(i, 1)), 0, a.dim(0) / meta.m - 1);
  const auto rows = k::ds(tile * meta.m, meta.m), columns = k::ds(j * meta.n, meta.n);
  const auto left = [&](const k::Ds& depth) { return a(rows, depth).load(); };
  const auto right = [&](const k::Ds& depth) { return b(group, depth, columns).load(); };
  c(rows, columns) = k::cast<k::f16>(k::gemm_loop(a.dim(1), {meta.m, meta.n, meta.k}, left, right));
}

}  // namespace tutorials
