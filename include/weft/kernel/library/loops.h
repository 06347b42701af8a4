#pragma once
// Main loops: a transpose, a matrix product and attention, with the user's functions for what is loaded, scored, masked
// and stored.
#include <cmath>
#include <utility>

#include "weft/kernel.h"
#include "weft/kernel/library/states.h"

namespace weft::k {

/// Transposes tile (i, j) of x [m, n] into y [n, m] by way of a scratch buffer of m · n elements: rows are read and
/// rows are written, and what turns them is near.
template <detail::reference X, detail::reference Y>
void transpose_tile(const X& x, const Y& y, const Index& i, const Index& j, int64_t m, int64_t n,
                    Line at = Line::here()) {
  static_assert(X::rank == 2 && Y::rank == 2, "transpose_tile takes arrays of two axes");
  const auto near = scratch<typename X::Element>({m, n}, at);
  const auto rows = ds(i * m, m), columns = ds(j * n, n);
  near(all, all) = x(rows, columns).load(at);
  y(columns, rows) = near.permute({1, 0}, at)(all, all).load(at);
}

/// The extents of a tile of a product and of a step along its depth, and what float32 may lose.
struct GemmTile {
  /// Rows and columns of the result's tile.
  int64_t m = 64, n = 64;
  /// Elements of the depth that one step takes.
  int64_t k = 64;
  /// What a product of float32 may lose.
  Precision precision = Precision::exact;
  friend bool operator==(const GemmTile&, const GemmTile&) = default;
};
/// Returns Σ A(k) · B(k) over the depth, a tile [m, n] in float32 (float64 of float64, int32 of integers), k ascending.
/// `a(span)` gives a tile [m, k] of the depth's slice `span`, `b(span)` one [k, n]; beyond the depth either is 0.
template <class A, class B>
auto gemm_loop(const Index& depth, const GemmTile& tile, const A& a, const B& b, Line at = Line::here()) {
  using Left = TileOf<std::invoke_result_t<A, Ds>>;
  Mut sum = zeros<detail::Sum<typename Left::Element>>({tile.m, tile.n}, at);
  loop(
      Index(0, at), depth, tile.k,
      [&](const Index& i) {
        const Ds span = ds(i, tile.k);
        sum = dot(a(span), b(span), sum.get(at), tile.precision, at);
      },
      at);
  return sum.get(at);
}
/// Computes tile (i, j) of A · B for a [m, k] and b [k, n] and gives it to store(rows, columns, sum): what follows
/// there is an epilogue.
template <detail::reference A, detail::reference B, class Store>
void gemm(const A& a, const B& b, const Index& i, const Index& j, const GemmTile& tile, const Store& store,
          Line at = Line::here()) {
  static_assert(A::rank == 2 && B::rank == 2, "gemm takes arrays of two axes");
  const Ds rows = ds(i * tile.m, tile.m), columns = ds(j * tile.n, tile.n);
  const auto left = [&](const Ds& depth) { return a(rows, depth).load(at); };
  const auto right = [&](const Ds& depth) { return b(depth, columns).load(at); };
  store(rows, columns, gemm_loop(a.extent(1, at), tile, left, right, at));
}

/// What attention gives for a block of queries.
struct Attended {
  /// The weighted sums of the values [queries, dv]; 0 where no key is seen.
  Tile<f32, 2> out;
  /// The logarithm to base 2 of each row's sum of exponentials of its scores [queries].
  Tile<f32, 1> log2_sum;
};
/// Attends over keys from … end-1, `block` at once, by the online softmax. `q` is a tile [queries, d]; keys(span) gives
/// [block, d] of the same dtype, values(span) [block, width] of any, and what lies past the end of either is 0.
/// score(s, key) makes scores to base 2 of the products s [queries, block], `key` [1, block] being the keys' indices
/// (int64): it scales them (by log2(e) / √d for a softmax), adds biases, and gives -inf where a key is not seen.
template <TileLike Q, class Keys, class Values, class Score>
Attended attention_loop(const Q& q, const Index& from, const Index& end, int64_t block, int64_t width, const Keys& keys,
                        const Values& values, const Score& score, Line at = Line::here()) {
  static_assert(rank_of<Q> == 2, "attention_loop takes queries [queries, d]");
  using V = TileOf<std::invoke_result_t<Values, Ds>>;
  const auto queries = detail::as_tile(q, at);
  const int64_t rows = queries.dim(0, at);
  OnlineSoftmax softmax(rows, at);
  Mut sum = zeros<f32>({rows, width}, at);
  loop(
      from, end, block,
      [&](const Index& j) {
        const Ds span = ds(j, block);
        const auto key = row(j + arange(block, at), at);
        const auto s = dot(queries, trans(keys(span), at), Precision::exact, at);
        const auto step = softmax.add(where(key < reshape(end, {1, 1}, at), score(s, key), -INFINITY, at), at);
        sum = dot(cast<typename V::Element>(step.weights, at), values(span), sum.get(at) * col(step.rescale, at),
                  Precision::exact, at);
      },
      at);
  const auto total = col(softmax.sum(at), at);
  return {where(total == 0, 0.0, sum.get(at) / total, at), softmax.log2_sum(at)};
}

}  // namespace weft::k
