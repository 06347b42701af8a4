// weft bench user-kernels on a GPU: products and attention as users write them, on tensor cores, beside the fastest
// that the compiler finds for the same operations, libraries with it, alternately in one run.
#include <fmt/format.h>

#include <cmath>

#include "compiler/program.h"
#include "examples/kernels/tutorial_attention.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/kernel_function.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

struct OnTensorCores {
  std::string name;
  std::vector<array> inputs;
  ArrayFunction user, own;
  double operations;
};

/// A product of matrices of bfloat16 with sums in float32.
OnTensorCores low_product(int64_t n) {
  struct Tiles {
    int64_t m = 128, n = 256, k = 64, band = 8;
  };
  using In = k::In<bfloat16_t, 2>;
  const auto kernel =
      k::kernel("matmul", [](In a, In b, k::Out<bfloat16_t, 2> c, Tiles t) {
        const auto [i, j] =
            k::swizzle2d(k::program_id(0), k::program_id(1), k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n), t.band);
        const auto rows = k::ds(i * t.m, t.m), columns = k::ds(j * t.n, t.n);
        k::Mut sum = k::zeros<float>({t.m, t.n});
        k::loop(0, a.dim(1), t.k,
                [&](k::Index x) { sum = k::dot(a(rows, k::ds(x, t.k)), b(k::ds(x, t.k), columns), sum.get()); });
        c(rows, columns) = k::cast<bfloat16_t>(sum.get());
      }).grid([](auto a, auto b, auto, Tiles t) {
          return k::Grid{k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n)};
        }).outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      });
  const auto matrix = [n](uint64_t seed) { return random::normal({n, n}, bfloat16, 0, 1, random::key(seed)); };
  return {fmt::format("matmul_bf16_{}", n),
          {matrix(1), matrix(2)},
          kernel,
          [](const auto& in) { return std::vector{matmul(in[0], in[1])}; },
          2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n)};
}

/// Attention of `heads` heads, 128 queries a program.
OnTensorCores low_attention(int64_t heads, int64_t length, int64_t width, bool causal) {
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  const auto kernel = tutorials::attention_forward<bfloat16_t>({.causal = causal});
  const auto heads_of = [&](uint64_t seed) {
    return random::normal({1, heads, length, width}, bfloat16, 0, 1, random::key(seed));
  };
  const Shape flat{heads, length, width};
  const double pairs = static_cast<double>(length) * static_cast<double>(length) * (causal ? 0.5 : 1);
  return {fmt::format("attention_{}{}", length, causal ? "_causal" : ""),
          {heads_of(1), heads_of(2), heads_of(3)},
          [kernel, flat](const auto& in) {
            return std::vector{kernel({reshape(in[0], flat), reshape(in[1], flat), reshape(in[2], flat)})[0]};
          },
          [scale, causal](const auto& in) {
            return std::vector{fast::scaled_dot_product_attention(in[0], in[1], in[2], scale, causal ? "causal" : "")};
          },
          4.0 * static_cast<double>(heads * width) * pairs};
}

}  // namespace

void bench_tensor_cores(const BenchOptions& o) {
  for (const OnTensorCores& p : {low_product(4096), low_product(8192), low_attention(64, 4096, 128, false),
                                 low_attention(64, 4096, 128, true)}) {
    for (const array& x : p.inputs) eval(x);
    const ArrayFunction user = compiled_as(p.user, p.inputs, false), library = compiled_as(p.own, p.inputs, true);
    std::vector<double> users, libraries;  // alternately: clocks change as the device warms
    for (int turn = 0; turn < 5; ++turn) {
      users.push_back(device_ms(reps_of(o, 5), 10, [&] { user(p.inputs); }));
      libraries.push_back(device_ms(reps_of(o, 5), 10, [&] { library(p.inputs); }));
    }
    std::sort(users.begin(), users.end());
    std::sort(libraries.begin(), libraries.end());
    Row(fmt::format("user_kernel_{}", p.name), o, "bfloat16")
        .number("ms", users[2])
        .number("gflops", p.operations / users[2] / 1e6)
        .number("library_ms", libraries[2])
        .number("of_library", libraries[2] / users[2])
        .print();
  }
}

}  // namespace weft::tool
