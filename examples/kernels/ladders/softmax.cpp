// Softmax along rows: 8 bytes an element if each is read once.
#include <cmath>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Rows = k::In<float, 2>;
using Result = k::Out<float, 2>;

constexpr int64_t block = 256;

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
      rung("a row as one tile", by("softmax_row", whole_row, 1)),
      rung("four rows a program", by("softmax_4_rows", many_rows<4>, 4)),
      rung("sixteen rows a program", by("softmax_16_rows", many_rows<16>, 16)),
  };
  return out;
}

}  // namespace ladders
