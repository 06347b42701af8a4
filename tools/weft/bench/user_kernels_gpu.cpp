// weft bench user-kernels on a GPU: products and attention as users write them, on tensor cores, beside the fastest
// that the compiler finds for the same operations, libraries with it, alternately in one run.
#include <fmt/format.h>

#include <cmath>

#include "compiler/program.h"
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

/// Attention of `heads` heads by online softmax: 128 queries a program, keys in blocks of 128.
OnTensorCores low_attention(int64_t heads, int64_t length, int64_t width, bool causal) {
  using In = k::In<bfloat16_t, 3>;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  const auto kernel =
      k::kernel("attention", [causal, scale](In queries, In keys, In values, k::Out<bfloat16_t, 3> out) {
        constexpr int64_t block = 128;
        constexpr double log2_e = 1.4426950408889634;
        const int64_t rows_of_keys = keys.dim(1);
        const auto head = k::program_id(0);
        // Long rows of causal attention come first.
        const auto first = (causal ? k::cdiv(rows_of_keys, block) - 1 - k::program_id(1) : k::program_id(1)) * block;
        const auto rows = k::ds(first, block);
        const auto q = queries(head, rows, k::all).load();
        k::Mut most = k::full<float>({block}, -INFINITY), total = k::zeros<float>({block});
        k::Mut sum = k::zeros<float>({block, queries.dim(2)});
        const auto step = [&](k::Index at, bool masked) {
          auto s = k::dot(q, k::trans(keys(head, k::ds(at, block), k::all)));
          if (masked) {
            const auto columns = k::row(at + k::arange(block));
            s = k::where(columns < rows_of_keys, s, -INFINITY);
            if (causal) s = k::where(columns <= k::col(first + k::arange(block)), s, -INFINITY);
          }
          const auto larger = k::maximum(most, k::max(s, 1) * (scale * log2_e));
          const auto p = k::exp2(k::fma(s, scale * log2_e, -k::col(larger)));
          const auto shrink = k::exp2(most - larger);
          total = total * shrink + k::sum(p, 1);
          sum = sum * k::col(shrink) + k::dot(k::cast<bfloat16_t>(p), values(head, k::ds(at, block), k::all));
          most = larger;
        };
        const k::Index whole = causal ? first : k::Index(rows_of_keys / block * block);
        k::loop(0, whole, block, [&](k::Index at) { step(at, false); });
        if (causal || rows_of_keys % block != 0)
          k::loop(whole, causal ? k::minimum(first + block, rows_of_keys) : k::Index(rows_of_keys), block,
                  [&](k::Index at) { step(at, true); });
        out(head, rows, k::all) = k::cast<bfloat16_t>(sum * k::col(1.0f / total));
      }).grid([](auto queries, auto, auto, auto) {
        return k::Grid{queries.dim(0), k::cdiv(queries.dim(1), 128)};
      });
  const auto heads_of = [&](uint64_t seed) {
    return random::normal({1, heads, length, width}, bfloat16, 0, 1, random::key(seed));
  };
  const Shape flat{heads, length, width};
  const double pairs = static_cast<double>(length) * static_cast<double>(length) * (causal ? 0.5 : 1);
  return {fmt::format("attention_{}{}", length, causal ? "_causal" : ""),
          {heads_of(1), heads_of(2), heads_of(3)},
          [kernel, flat](const auto& in) {
            return kernel({reshape(in[0], flat), reshape(in[1], flat), reshape(in[2], flat)});
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
