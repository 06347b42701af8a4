// The kernels of Triton's tutorials (tutorials.h), each checked against arrays. Fused attention with its backward
// kernels is attention.cpp; docs/kernels.md has the two languages' names.
#include <array>
#include <vector>

#include "check.h"
#include "tutorials.h"

using namespace weft;

namespace {

// ---- Vector addition ----

void vector_addition() {
  const auto add = k::kernel("add", tutorials::add).grid([](auto x, auto, auto) {
    return k::Grid{k::cdiv(x.dim(0), tutorials::vector_block)};
  });
  const array x = check::normal({98'432}, 1), y = check::normal({98'432}, 2);
  check::near("vector addition", add(x, y), x + y, 0);
}

// ---- Fused softmax ----

void fused_softmax() {
  const array x = check::normal({183, 781}, 3);
  check::near("fused softmax", k::kernel("softmax", tutorials::softmax_rows).grid({64})(x), softmax(x, -1), 1e-6);
}

// ---- Matrix multiplication ----

void matrix_multiplication() {
  const array a = astype(check::normal({200, 96}, 4), float16), b = astype(check::normal({96, 150}, 5), float16);
  const array wanted = matmul(astype(a, float32), astype(b, float32));
  const auto tiled =
      k::kernel("matmul", tutorials::product<k::f16>)
          .grid([](auto x, auto y, auto, tutorials::Meta t) { return tutorials::grid_of_product(x, y, t); })
          .outputs(tutorials::shape_of_product);
  check::near("matrix multiplication", tiled(a, b), wanted, 0.05);
  const auto active = tiled.config({.leaky_relu = true});
  check::near("with a leaky ReLU", active(a, b), where(wanted >= 0.0f, wanted, wanted * 0.01f), 0.05);
  const array narrow_a = astype(a, float8_e5m2), narrow_b = astype(transpose(b), float8_e5m2);
  const auto narrow = k::kernel("narrow_matmul", tutorials::narrow_product<k::e5m2>)
                          .grid([](auto x, auto y, auto, tutorials::Meta t) {
                            return k::Grid{k::cdiv(x.dim(0), t.m) * k::cdiv(y.dim(0), t.n)};
                          })
                          .outputs([](const array& x, const array& y) {
                            return Shape{x.shape(0), y.shape(0)};
                          });
  check::near("of 8-bit floats", narrow(narrow_a, narrow_b),
              matmul(astype(narrow_a, float32), transpose(astype(narrow_b, float32))), 0.05);
  const auto fixed = k::kernel("persistent_matmul", tutorials::persistent_product<k::f16>)
                         .grid({5})
                         .outputs(tutorials::shape_of_product);
  check::near("persistent matmul", fixed(a, b), wanted, 0.05);
  // The compiler does the same with a grid of tiles: blocks of a GPU take programs in turns, and warps of their own
  // copy by TMA. CPUs know nothing of it.
  const auto turns =
      k::kernel("scheduled_matmul", tutorials::product<k::f16>)
          .config({.m = 128, .n = 128, .k = 64})
          .grid([](auto x, auto y, auto, tutorials::Meta t) { return tutorials::grid_of_product(x, y, t); })
          .outputs(tutorials::shape_of_product)
          .schedule("persistent(on); specialize(on)");
  if (default_device().type == Device::cpu) check::near("the same by a schedule", turns(a, b), wanted, 0.05);
}

// ---- Low-memory dropout ----

void low_memory_dropout() {
  const array x = check::normal({5000}, 6);
  const auto dropout = k::kernel("dropout", tutorials::seeded_dropout).config(0.5).grid([](auto in, auto, auto) {
    return k::Grid{k::cdiv(in.dim(0), tutorials::dropout_block)};
  });
  const array first = dropout(x, array({7})), again = dropout(x, array({7})), other = dropout(x, array({8}));
  check::near("low-memory dropout: one seed, one mask", again, first, 0);
  const auto share_of_zeros = [](const array& v) { return mean(astype(v == 0.0f, float32)); };
  check::near("half of the elements is 0", share_of_zeros(first), array(0.5f), 0.03);
  const array both = astype(logical_and(first == 0.0f, other == 0.0f), float32);
  check::near("seeds have nothing in common", mean(both), array(0.25f), 0.03);
}

// ---- Layer normalization ----

void layer_normalization() {
  const ArrayFunction norm = tutorials::norm_of<float>(8);
  const std::vector<array> in{check::normal({37, 130}, 7), check::normal({130}, 8), check::normal({130}, 9)};
  const array weights = check::normal({37, 130}, 10);
  const auto loss = [&](const auto& f) {
    return [&](const std::vector<array>& v) { return std::vector{sum(f(v)[0] * weights)}; };
  };
  const auto by_arrays = [](const std::vector<array>& v) {
    return std::vector{fast::layer_norm(v[0], v[1], v[2], static_cast<float>(tutorials::eps))};
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
  const auto kernel = k::kernel("grouped", tutorials::grouped).grid({7});
  const array result = kernel(concatenate(as), concatenate(bs), array(problems.data(), {count, 6}),
                              array(tiles.data(), {static_cast<int>(tiles.size()) / 3, 3}), zeros({c_at}));
  check::near("grouped products", result, concatenate(wanted), 1e-3);
  // Rows of three groups below each other, a tile of 64 the least.
  const array a = astype(check::normal({256, 96}, 30), float16), b = astype(check::normal({3, 96, 80}, 31), float16);
  const std::vector<int32_t> list{0, 0, 0, 1, 1, 2, 2, 3};
  const auto rows = k::kernel("grouped_rows", tutorials::grouped_rows<k::f16>)
                        .grid([](auto, auto right, auto table, auto, tutorials::Meta t) {
                          return k::Grid{table.dim(0) * k::cdiv(right.dim(2), t.n)};
                        })
                        .outputs([](const array& left, const array& right, const array&) {
                          return Shape{left.shape(0), right.shape(2)};
                        });
  const auto part = [&](int64_t first, int64_t last, int group) {
    return matmul(astype(slice(a, {static_cast<int>(first), 0}, {static_cast<int>(last), 96}), float32),
                  astype(take(b, array(group), 0), float32));
  };
  check::near("of groups of rows", rows(a, b, array(list.data(), {4, 2})),
              concatenate({part(0, 128, 0), part(128, 192, 1), part(192, 256, 2)}, 0), 0.05);
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
