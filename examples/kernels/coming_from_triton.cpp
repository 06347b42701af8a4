// The kernels of Triton's tutorials as they are written here, each checked against arrays. Their names are those of the
// tutorials. Fused attention with its backward kernels is attention.cpp; docs/kernels.md has the two languages' names.
#include <array>
#include <vector>

#include "check.h"
#include "weft/kernel_code.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"
#include "weft/kernel_library.h"

using namespace weft;

namespace {

// ---- Vector addition ----

void vector_addition() {
  constexpr int64_t block = 1024;
  const auto add = k::kernel("add", [](k::In<float, 1> x, k::In<float, 1> y, k::Out<float, 1> out) {
                     const auto at = k::ds(k::program_id(0) * block, block);  // what lies behind the end is cut off
                     out(at) = x(at) + y(at);
                   }).grid([](auto x, auto, auto) { return k::Grid{k::cdiv(x.dim(0), block)}; });
  const array x = check::normal({98'432}, 1), y = check::normal({98'432}, 2);
  check::near("vector addition", add(x, y), x + y, 0);
}

// ---- Fused softmax ----

/// As many programs as the device runs at once, each of which goes through rows that lie that far apart.
void softmax_rows(k::In<float, 2> x, k::Out<float, 2> y) {
  k::loop(k::program_id(0), x.dim(0), k::num_programs(0), [&](k::Index row) {
    const auto v = x(row, k::all).load();
    const auto e = k::exp(v - k::max(v, 0));
    y(row, k::all) = e / k::sum(e, 0);
  });
}

void fused_softmax() {
  const array x = check::normal({183, 781}, 3);
  check::near("fused softmax", k::kernel("softmax", softmax_rows).grid({64})(x), softmax(x, -1), 1e-6);
}

// ---- Matrix multiplication ----

using Half = k::In<k::f16, 2>;

/// What a program computes: a tile, in bands of `group` rows of tiles, with an activation behind it.
struct Meta {
  int64_t m = 64, n = 64, k = 32, group = 8;
  bool leaky_relu = false;
  friend bool operator==(const Meta&, const Meta&) = default;
};

/// One tile of C = activation(A · B).
void tile_of_product(Half a, Half b, k::Out<k::f16, 2> c, const k::Index& i, const k::Index& j, const Meta& meta) {
  const auto store = [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) {
    const auto active = meta.leaky_relu ? k::where(sum >= 0, sum, sum * 0.01f) : sum;
    c(rows, columns) = k::cast<k::f16>(active);
  };
  k::gemm(a, b, i, j, {meta.m, meta.n, meta.k}, store);
}

void product(Half a, Half b, k::Out<k::f16, 2> c, Meta meta) {
  const int64_t down = k::cdiv(a.dim(0), meta.m), across = k::cdiv(b.dim(1), meta.n);
  const auto [i, j] = k::swizzle2d(k::program_id(0), down, across, meta.group);
  tile_of_product(a, b, c, i, j, meta);
}

/// A fixed number of programs that take tiles in turns.
void persistent_product(Half a, Half b, k::Out<k::f16, 2> c, Meta meta) {
  const int64_t down = k::cdiv(a.dim(0), meta.m), across = k::cdiv(b.dim(1), meta.n);
  k::loop(k::program_id(0), down * across, k::num_programs(0), [&](k::Index tile) {
    const auto [i, j] = k::swizzle2d(tile, down, across, meta.group);
    tile_of_product(a, b, c, i, j, meta);
  });
}

auto shape_of_product(const array& a, const array& b) { return Shape{a.shape(0), b.shape(1)}; }

void matrix_multiplication() {
  const array a = astype(check::normal({200, 96}, 4), float16), b = astype(check::normal({96, 150}, 5), float16);
  const array wanted = matmul(astype(a, float32), astype(b, float32));
  const auto tiled =
      k::kernel("matmul", product)
          .grid([](auto x, auto y, auto, Meta t) { return k::Grid{k::cdiv(x.dim(0), t.m) * k::cdiv(y.dim(1), t.n)}; })
          .outputs(shape_of_product);
  check::near("matrix multiplication", tiled(a, b), wanted, 0.05);
  const auto active = tiled.config({.leaky_relu = true});
  check::near("with a leaky ReLU", active(a, b), where(wanted >= 0.0f, wanted, wanted * 0.01f), 0.05);
  const auto fixed = k::kernel("persistent_matmul", persistent_product).grid({5}).outputs(shape_of_product);
  check::near("persistent matmul", fixed(a, b), wanted, 0.05);
  // The compiler does the same with a grid of tiles: blocks of a GPU take programs in turns, and warps of their own
  // copy by TMA. CPUs know nothing of it.
  const auto turns =
      k::kernel("scheduled_matmul", product)
          .config({.m = 128, .n = 128, .k = 64})
          .grid([](auto x, auto y, auto, Meta t) { return k::Grid{k::cdiv(x.dim(0), t.m) * k::cdiv(y.dim(1), t.n)}; })
          .outputs(shape_of_product)
          .schedule("persistent(on); specialize(on)");
  if (default_device().type == Device::cpu) check::near("the same by a schedule", turns(a, b), wanted, 0.05);
}

// ---- Low-memory dropout ----

/// Philox makes the bits of element i from the seed and i: the backward pass makes them again.
void seeded_dropout(k::In<float, 1> x, k::In<int32_t, 1> seed, k::Out<float, 1> y, double p) {
  constexpr int64_t block = 512;
  const auto first = k::program_id(0) * block;
  const auto at = k::ds(first, block);
  const auto kept = k::rand(k::cast<uint64_t>(seed(0)), first + k::arange(block)) > p;
  y(at) = k::where(kept, x(at) * (1 / (1 - p)), 0.0);
}

void low_memory_dropout() {
  const array x = check::normal({5000}, 6);
  const auto dropout = k::kernel("dropout", seeded_dropout).config(0.5).grid([](auto in, auto, auto) {
    return k::Grid{k::cdiv(in.dim(0), 512)};
  });
  const array first = dropout(x, array({7})), again = dropout(x, array({7})), other = dropout(x, array({8}));
  check::near("low-memory dropout: one seed, one mask", again, first, 0);
  const auto share_of_zeros = [](const array& v) { return mean(astype(v == 0.0f, float32)); };
  check::near("half of the elements is 0", share_of_zeros(first), array(0.5f), 0.03);
  const array both = astype(logical_and(first == 0.0f, other == 0.0f), float32);
  check::near("seeds have nothing in common", mean(both), array(0.25f), 0.03);
}

// ---- Layer normalization ----

constexpr double eps = 1e-5;
using Rows = k::In<float, 2>;
using Row = k::In<float, 1>;

void norm_forward(Rows x, Row weight, Row bias, k::Out<float, 2> y, k::Out<float, 1> means, k::Out<float, 1> factors) {
  const auto row = k::program_id(0);
  const float share = 1 / static_cast<float>(x.dim(1));
  const auto v = x(row, k::all).load();
  const auto mean = k::sum(v, 0) * share;
  const auto apart = v - mean;
  const auto factor = k::rsqrt(k::sum(apart * apart, 0) * share + eps);
  y(row, k::all) = apart * factor * weight(k::all) + bias(k::all);
  means(row) = mean;
  factors(row) = factor;
}

/// dx of a row; and the row's share of dw and db, added to one of a few buffers by whoever has its lock.
void norm_backward(Rows x, Row weight, Row means, Row factors, Rows g, k::Out<float, 2> dx, k::InOut<int32_t, 1> lock,
                   k::InOut<float, 2> dw, k::InOut<float, 2> db) {
  const auto row = k::program_id(0);
  const float share = 1 / static_cast<float>(x.dim(1));
  const auto cotangent = g(row, k::all).load();
  const auto normal = (x(row, k::all) - means(row)) * factors(row);
  const auto weighted = cotangent * weight(k::all);
  const auto along = k::sum(weighted * normal, 0) * share, all = k::sum(weighted, 0) * share;
  dx(row, k::all) = (weighted - normal * along - all) * factors(row);
  const auto buffer = row % dw.dim(0);
  k::Mutex(lock, buffer).locked([&] {
    dw(buffer, k::all) += cotangent * normal;
    db(buffer, k::all) += cotangent;
  });
}

void layer_normalization() {
  const auto per_row = [](const auto& x, const auto&...) { return k::Grid{x.dim(0)}; };
  const auto forward =
      k::kernel("norm_forward", norm_forward).grid(per_row).outputs([](const array& x, const array&, const array&) {
        return std::vector<Shape>{x.shape(), {x.shape(0)}, {x.shape(0)}};
      });
  const auto backward = k::kernel("norm_backward", norm_backward).grid(per_row);
  const auto norm =
      custom_vjp([=](const std::vector<array>& in) { return forward(in); },
                 [=](const std::vector<array>& in, const std::vector<array>& g, const std::vector<array>& out) {
                   const array buffers = zeros({8, in[0].shape(1)});
                   const auto [dx, lock, dw, db] =
                       backward(in[0], in[1], out[1], out[2], g[0], zeros({8}, int32), buffers, buffers);
                   return std::vector<array>{dx, sum(dw, 0), sum(db, 0)};
                 });
  const std::vector<array> in{check::normal({37, 130}, 7), check::normal({130}, 8), check::normal({130}, 9)};
  const array weights = check::normal({37, 130}, 10);
  const auto loss = [&](const auto& f) {
    return [&](const std::vector<array>& v) { return std::vector{sum(f(v)[0] * weights)}; };
  };
  const auto by_arrays = [](const std::vector<array>& v) {
    return std::vector{fast::layer_norm(v[0], v[1], v[2], static_cast<float>(eps))};
  };
  check::near("layer normalization", norm(in)[0], by_arrays(in)[0], 1e-5);
  const auto got = vjp(loss(norm), in, {array(1.0f)}).second, wanted = vjp(loss(by_arrays), in, {array(1.0f)}).second;
  for (size_t i = 0; i < 3; ++i) check::near("its gradient", got[i], wanted[i], 1e-4);
}

// ---- Functions from elsewhere ----

/// Inverse sines by the operator, and on a GPU by the function of its library.
void extern_functions() {
  const auto by = [](const char* name, auto f) {
    return k::kernel(name,
                     [f](k::In<float, 1> x, k::Out<float, 1> y) {
                       const auto at = k::ds(k::program_id(0) * 1024, 1024);
                       y(at) = f(x(at).load());
                     })
        .grid([](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), 1024)}; });
  };
  const auto own = [](const auto& v) { return k::apply("arcsin", v); };
  const array x = random::uniform(array(-1.0f), array(1.0f), {3000}, float32, random::key(11));
  check::near("asin by the operator", by("asin", own)(x), arcsin(x), 1e-6);
  const k::Code code("asinf", {"x"}, {"y"}, "y = asinf(x);");
  check::near("by the GPU's library", by("asin_code", [=](const auto& v) { return k::cuda<float>(code, own, v); })(x),
              arcsin(x), 1e-6);
}

// ---- Grouped products ----

/// Products of many shapes in one launch. All matrices lie in one array each for a, b and c; `problems` has for each
/// product m, n, k and where its matrices begin, `tiles` the number of the product and the place of each tile.
void grouped(k::In<k::f16, 1> a, k::In<k::f16, 1> b, k::In<int32_t, 2> problems, k::In<int32_t, 2> tiles,
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

void grouped_products() {
  const std::vector<std::array<int, 3>> shapes{{40, 70, 33}, {64, 20, 100}, {5, 129, 16}};
  std::vector<array> as, bs, wanted;
  std::vector<int32_t> problems, tiles;
  int a_at = 0, b_at = 0, c_at = 0, count = 0;
  for (const auto [m, n, depth] : shapes) {
    const auto seed = static_cast<uint64_t>(20 + count);
    const array a = astype(check::normal({m, depth}, seed), float16),
                b = astype(check::normal({depth, n}, seed + 10), float16);
    as.push_back(flatten(a)), bs.push_back(flatten(b));
    wanted.push_back(flatten(matmul(astype(a, float32), astype(b, float32))));
    problems.insert(problems.end(), {m, n, depth, a_at, b_at, c_at});
    for (int i = 0; i * 32 < m; ++i)
      for (int j = 0; j * 32 < n; ++j) tiles.insert(tiles.end(), {count, i, j});
    a_at += m * depth, b_at += depth * n, c_at += m * n, ++count;
  }
  const auto kernel = k::kernel("grouped", grouped).grid({7});
  const array result = kernel(concatenate(as), concatenate(bs), array(problems.data(), {count, 6}),
                              array(tiles.data(), {static_cast<int>(tiles.size()) / 3, 3}), zeros({c_at}));
  check::near("grouped products", result, concatenate(wanted), 1e-3);
}

}  // namespace

int main() {
  vector_addition();
  fused_softmax();
  matrix_multiplication();
  low_memory_dropout();
  layer_normalization();
  extern_functions();
  grouped_products();
}
