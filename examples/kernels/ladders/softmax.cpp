// Softmax along rows: 8 bytes an element if each is read once.
#include <cmath>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Rows = k::In<float, 2>;
using Result = k::Out<float, 2>;

constexpr int64_t block = 256;
constexpr double lowest = -1e30;  // for -inf, whose differences are NaN

/// Goes along the row for its maximum, for the sum, and to write.
void three_passes(Rows x, Result y) {
  const auto row = k::program_id(0);
  const int64_t n = x.dim(1);
  k::Mut most = k::full<float>({block}, -INFINITY), sum = k::zeros<float>({block});
  k::loop(0, n, block, [&](k::Index i) { most = k::maximum(most, x(row, k::ds(i, block)).load(-INFINITY)); });
  const auto m = k::max(most.get(), 0);
  k::loop(0, n, block, [&](k::Index i) { sum += k::exp(x(row, k::ds(i, block)).load(-INFINITY) - m); });
  const auto s = k::sum(sum.get(), 0);
  k::loop(0, n, block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    y(row, at) = k::exp(x(row, at) - m) / s;
  });
}

/// One pass keeps the maximum and the sum of what is scaled by it; a second one writes.
void online(Rows x, Result y) {
  const auto row = k::program_id(0);
  const int64_t n = x.dim(1);
  constexpr double log2_of_e = 1.4426950408889634;
  k::OnlineSoftmax state(1);
  k::loop(0, n, block, [&](k::Index i) { state.add(k::row(x(row, k::ds(i, block)).load(-INFINITY) * log2_of_e)); });
  const auto most = k::max(state.most(), 0), share = k::recip(k::max(state.sum(), 0));
  k::loop(0, n, block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    y(row, at) = k::exp2(x(row, at) * log2_of_e - most) * share;
  });
}

/// A warp a row, eight rows a program: each lane goes along the row by the online rule, and lanes meet at the end.
void warps(Rows x, Result y) {
  constexpr int64_t rows = 8, lanes = 32;
  const auto at = k::ds(k::program_id(0) * rows, rows);
  const auto warp = k::tiled_partition<lanes>(k::this_thread_block({rows, lanes}));
  k::Mut most = k::full<float>({rows, lanes}, lowest), sum = k::zeros<float>({rows, lanes});
  k::loop(0, x.dim(1), lanes, [&](k::Index i) {
    const auto v = x(at, k::ds(i, lanes)).load(-INFINITY);
    const auto larger = k::maximum(most, v);
    sum = sum * k::exp(most - larger) + k::exp(v - larger);
    most = larger;
  });
  const auto m = k::reduce(warp, most.get(), k::By::max);
  const auto share = k::recip(k::reduce(warp, sum * k::exp(most - m), k::By::add));
  k::loop(0, x.dim(1), lanes, [&](k::Index i) {
    const auto columns = k::ds(i, lanes);
    y(at, columns) = k::exp(x(at, columns) - m) * share;
  });
}

/// A cluster a row: each of its programs keeps a part, and reads maxima and sums from the others' shared memory.
void clusters(Rows x, Result y) {
  const auto cluster = k::this_cluster();
  const int64_t size = cluster.num_blocks(), part = k::cdiv(x.dim(1), size);
  const auto row = k::program_id(0);
  const auto at = k::ds(cluster.block_rank() * part, part);
  const auto own = k::shared<float>({2});  // the part's maximum, and the sum of its exponentials
  const auto v = x(row, at).load(lowest);
  own(0) = k::max(v, 0);
  cluster.sync();
  k::Mut most = k::scalar<float>(lowest), sum = k::scalar<float>(0);
  k::loop(size, [&](k::Index i) { most = k::maximum(most, k::neighbour(own, i)(0).load()); });
  const auto e = k::exp(v - most);
  own(1) = k::sum(e, 0);
  cluster.sync();
  k::loop(size, [&](k::Index i) { sum += k::neighbour(own, i)(1).load(); });
  y(row, at) = e * k::recip(sum);
  cluster.sync();
}

/// The row is one tile: it is read once and stays in registers, or in the nearest memory.
void whole_row(Rows x, Result y) {
  const auto row = k::program_id(0);
  const auto v = x(row, k::all).load();
  const auto e = k::exp(v - k::max(v, 0));
  y(row, k::all) = e * k::recip(k::sum(e, 0));
}

/// A program takes several rows.
template <int64_t rows>
void many_rows(Rows x, Result y) {
  const auto at = k::ds(k::program_id(0) * rows, rows);
  const auto v = x(at, k::all).load();
  const auto e = k::exp(v - k::col(k::max(v, 1)));
  y(at, k::all) = e * k::col(k::recip(k::sum(e, 1)));
}

void plain_loop(const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  }
}

}  // namespace

Ladder softmax(Scale scale) {
  const int64_t rows = at(scale, 13, 4096, 16384), n = at(scale, 1003, 4096, 4096);
  Ladder out{.name = "softmax", .inputs = {normal({rows, n}, 1)}};
  out.library = one([](const Arrays& in) { return weft::softmax(in[0], -1); });
  out.bytes = 8.0 * static_cast<double>(rows * n);
  out.tolerance = 1e-6;
  const auto by = [](const char* name, auto f, int64_t rows_each) {
    return k::kernel(name, f).grid([=](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), rows_each)}; });
  };
  out.rungs = {
      loop({{rows, n}}, [=](auto in, auto to) { plain_loop(in[0], to[0], rows, n); }),
      rung("three passes", by("softmax_three_passes", three_passes, 1)),
      rung("online", by("softmax_online", online, 1),
           "a row that a cache holds is read again for less than the state costs"),
      rung("a warp a row", by("softmax_warps", warps, 8)),
      rung("a row as one tile", by("softmax_row", whole_row, 1)),
      rung("four rows a program", by("softmax_4_rows", many_rows<4>, 4)),
      rung("eight rows a program", by("softmax_8_rows", many_rows<8>, 8)),
      rung("a cluster a row", k::kernel("softmax_clusters", clusters).grid([](auto x, auto) {
        return k::Grid{x.dim(0), k::GridAxis(4, k::Order::cluster)};
      }),
           "a row of 4096 fits the registers of one program"),
  };
  return out;
}

}  // namespace ladders
