// Layer norm along rows, and the gradients of its weight and bias, which are sums over all rows.
#include <algorithm>
#include <cmath>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Rows = k::In<float, 2>;
using Row = k::In<float, 1>;
using Result = k::Out<float, 2>;

constexpr double eps = 1e-5;
constexpr int64_t block = 256;

/// Goes along the row for the mean, for the variance about it, and to write.
void three_passes(Rows x, Row w, Row b, Result y) {
  const auto row = k::program_id(0);
  const int64_t n = x.dim(1);
  const float share = 1.0f / static_cast<float>(n);
  k::Mut sum = k::zeros<float>({block}), squares = k::zeros<float>({block});
  k::loop(0, n, block, [&](k::Index i) { sum += x(row, k::ds(i, block)); });
  const auto mean = k::sum(sum.get(), 0) * share;
  k::loop(0, n, block, [&](k::Index i) {
    const auto apart = k::where(i + k::arange(block) < n, x(row, k::ds(i, block)) - mean, 0.0);
    squares += apart * apart;
  });
  const auto factor = k::rsqrt(k::sum(squares.get(), 0) * share + eps);
  k::loop(0, n, block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    y(row, at) = (x(row, at) - mean) * factor * w(at) + b(at);
  });
}

/// One pass for mean and variance by Welford's state, and one to write.
void welford(Rows x, Row w, Row b, Result y) {
  const auto row = k::program_id(0);
  const int64_t n = x.dim(1);
  k::Welford moments(1);
  k::loop(0, n, block, [&](k::Index i) { moments.add(k::row(x(row, k::ds(i, block))), n - i); });
  const auto mean = k::sum(moments.get().mean, 0), factor = k::rsqrt(k::sum(moments.variance(), 0) + eps);
  k::loop(0, n, block, [&](k::Index i) {
    const auto at = k::ds(i, block);
    y(row, at) = (x(row, at) - mean) * factor * w(at) + b(at);
  });
}

/// The row is one tile, which is read once.
void whole_row(Rows x, Row w, Row b, Result y) {
  const auto row = k::program_id(0);
  const float share = 1.0f / static_cast<float>(x.dim(1));
  const auto v = x(row, k::all).load();
  const auto apart = v - k::sum(v, 0) * share;
  y(row, k::all) = apart * k::rsqrt(k::sum(apart * apart, 0) * share + eps) * w(k::all) + b(k::all);
}

/// A program takes several rows.
template <int64_t rows>
void many_rows(Rows x, Row w, Row b, Result y) {
  const auto at = k::ds(k::program_id(0) * rows, rows);
  const float share = 1.0f / static_cast<float>(x.dim(1));
  const auto v = x(at, k::all).load();
  const auto apart = v - k::col(k::sum(v, 1) * share);
  const auto factor = k::rsqrt(k::sum(apart * apart, 1) * share + eps);
  y(at, k::all) = apart * k::col(factor) * k::row(w(k::all)) + k::row(b(k::all));
}

void plain_loop(std::span<const float* const> in, float* y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const x = in[0] + row * n;
    float mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<float>(n);
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<float>(n);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < n; ++i) y[row * n + i] = (x[i] - mean) * factor * in[1][i] + in[2][i];
  }
}

}  // namespace

Ladder layer_norm(Scale scale) {
  const int64_t rows = at(scale, 13, 4096, 32768), n = at(scale, 1003, 4096, 4096);
  Ladder out{.name = "layer_norm", .inputs = {normal({rows, n}, 1), normal({n}, 2), normal({n}, 3)}};
  out.library =
      one([](const Arrays& in) { return weft::fast::layer_norm(in[0], in[1], in[2], static_cast<float>(eps)); });
  out.bytes = 8.0 * static_cast<double>(rows * n);
  out.tolerance = 1e-4;
  const auto by = [](const char* name, auto f, int64_t each) {
    return k::kernel(name, f).grid([=](auto x, auto, auto, auto) { return k::Grid{k::cdiv(x.dim(0), each)}; });
  };
  out.rungs = {
      loop({{rows, n}}, [=](auto in, auto to) { plain_loop(in, to[0], rows, n); }),
      rung("three passes", by("layer_norm_three_passes", three_passes, 1)),
      rung("Welford's state", by("layer_norm_welford", welford, 1), "its divisions cost what the pass saves"),
      rung("a row as one tile", by("layer_norm_row", whole_row, 1)),
      rung("four rows a program", by("layer_norm_4_rows", many_rows<4>, 4)),
  };
  return out;
}

namespace {

using Sums = k::InOut<float, 1>;
using Parts = k::Out<float, 2>;

/// Returns the normalised rows of a tile.
template <class X>
auto normalised(const X& x) {
  const float share = 1.0f / static_cast<float>(x.dim(1));
  const auto apart = x - k::col(k::sum(x, 1) * share);
  return apart * k::col(k::rsqrt(k::sum(apart * apart, 1) * share + eps));
}

/// Sums over rows first, first + step, … of which four are taken at once.
struct RowSums {
  k::Tile<float, 1> weight, bias;
};
RowSums sums_over_rows(Rows x, Rows g, const k::Index& first, const k::Index& end, int64_t step) {
  const int64_t n = x.dim(1);
  k::Mut of_weight = k::zeros<float>({n}), of_bias = k::zeros<float>({n});
  k::loop(first, end, step, [&](k::Index i) {
    const auto at = k::ds(i, 4);
    const auto cotangent = g(at, k::all).load();
    of_weight += k::sum(cotangent * normalised(x(at, k::all).load()), 0);
    of_bias += k::sum(cotangent, 0);
  });
  return {of_weight.get(), of_bias.get()};
}
/// Returns the sums over the 16 rows of this program.
RowSums sums_of_program(Rows x, Rows g) {
  const auto first = k::program_id(0) * 16;
  return sums_over_rows(x, g, first, k::minimum(first + 16, x.dim(0)), 4);
}

/// Each program adds the sums over its rows to the result in memory, in no order.
void atomics(Rows x, Rows g, Sums dw, Sums db) {
  const RowSums sums = sums_of_program(x, g);
  k::atomic("add", dw, sums.weight, k::arange(x.dim(1)));
  k::atomic("add", db, sums.bias, k::arange(x.dim(1)));
}

/// Programs take turns at a few buffers, each of which has a lock: who has it adds the sums over its rows. Another
/// kernel adds up the buffers.
void locks(Rows x, Rows g, k::InOut<int32_t, 1> lock, k::InOut<float, 2> dw, k::InOut<float, 2> db) {
  const RowSums sums = sums_of_program(x, g);
  const auto buffer = k::program_id(0) % dw.dim(0);
  k::Mutex(lock, buffer).locked([&] {
    dw(buffer, k::all) += sums.weight;
    db(buffer, k::all) += sums.bias;
  });
}

/// Each program stores the sums over its rows; what follows adds them up in order.
void partial_sums(Rows x, Rows g, Parts dw, Parts db) {
  const auto part = k::program_id(0);
  const RowSums sums = sums_over_rows(x, g, part * 4, x.dim(0), k::num_programs(0) * 4);
  dw(part, k::all) = sums.weight;
  db(part, k::all) = sums.bias;
}

void gradient_loop(const float* x, const float* g, float* dw, float* db, int64_t rows, int64_t n) {
  std::fill_n(dw, n, 0.0f), std::fill_n(db, n, 0.0f);
  for (int64_t row = 0; row < rows; ++row, x += n, g += n) {
    float mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<float>(n);
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<float>(n);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < n; ++i) dw[i] += g[i] * (x[i] - mean) * factor, db[i] += g[i];
  }
}

}  // namespace

Ladder layer_norm_gradient(Scale scale) {
  const int64_t rows = at(scale, 45, 4096, 32768), n = at(scale, 103, 1024, 4096);
  Ladder out{.name = "layer_norm_gradient", .inputs = {normal({rows, n}, 1), normal({rows, n}, 2)}};
  out.library = [](const Arrays& in) {
    const auto of = [&](const Arrays& weights) {
      const array y = weft::fast::layer_norm(in[0], weights[0], weights[1], static_cast<float>(eps));
      return Arrays{y};
    };
    const Shape row{in[0].shape(1)};
    return weft::vjp(of, {weft::ones(row), weft::zeros(row)}, {in[1]}).second;
  };
  out.bytes = 8.0 * static_cast<double>(rows * n);
  out.tolerance = 1e-3;
  const auto added = k::kernel("layer_norm_atomics", atomics).grid([](auto x, auto, auto, auto) {
    return k::Grid{k::cdiv(x.dim(0), 16)};
  });
  const auto locked = k::kernel("layer_norm_locks", locks).grid([](auto x, auto, auto, auto, auto) {
    return k::Grid{k::cdiv(x.dim(0), 16)};
  });
  const auto with_locks = [](const Arrays& in) {
    const array zeros = weft::zeros({64, in[0].shape(1)});
    return Arrays{in[0], in[1], weft::zeros({64}, weft::int32), zeros, zeros};
  };
  Rung by_locks = rung("64 buffers with locks", [=](const Arrays& in) {
    const Arrays sums = locked(with_locks(in));
    return Arrays{weft::sum(sums[1], 0), weft::sum(sums[2], 0)};
  });
  by_locks.program = [=](const Arrays& in) { return locked.program(with_locks(in)); };
  const auto parts = k::kernel("layer_norm_parts", partial_sums).grid({132}).outputs([](const array& x, const array&) {
    return std::vector<Shape>{{132, x.shape(1)}, {132, x.shape(1)}};
  });
  out.rungs = {
      loop({{n}, {n}}, [=](auto in, auto to) { gradient_loop(in[0], in[1], to[0], to[1], rows, n); }),
      in_any_order(rung("atomics", added,
                        [](const Arrays& in) {
                          const array zeros = weft::zeros({in[0].shape(1)});
                          return Arrays{in[0], in[1], zeros, zeros};
                        },
                        {0, 1})),
      in_any_order(by_locks),
      passes("partial sums of 132 programs", parts,
             [parts](const Arrays& in) {
               const auto [dw, db] = parts(in[0], in[1]);
               return Arrays{weft::sum(dw, 0), weft::sum(db, 0)};
             }),
  };
  return out;
}

}  // namespace ladders
