// weft bench user-kernels: kernels as users write them beside what the compiler makes of the same operations,
// alternately in one run, on either device.
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

struct UserKernel {
  std::string name;
  std::vector<array> inputs;
  ArrayFunction user, own;
  double work;       // bytes, or operations
  const char* rate;  // what `work` is counted in
};

ArrayFunction compiled_as(const ArrayFunction& f, const std::vector<array>& inputs, bool libraries) {
  const compiler::Policy before = compiler::default_policy();
  compiler::Policy policy = before;
  policy.libraries = libraries;
  compiler::set_default_policy(policy);
  const auto program = compile(f, {});
  eval(program(inputs));  // built now, under this policy
  compiler::set_default_policy(before);
  return program;
}

array normal_array(const Shape& shape, uint64_t seed) {
  return random::normal(shape, float32, 0, 1, random::key(seed));
}

UserKernel vector_sum(int64_t n) {
  constexpr int64_t block = 4096;
  const auto kernel = k::kernel("add", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                        const auto at = k::ds(k::program_id(0) * block, block);
                        c(at) = a(at) + b(at);
                      }).grid([](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), block)}; });
  return {"add",
          {normal_array({n}, 1), normal_array({n}, 2)},
          kernel,
          [](const auto& in) { return std::vector{in[0] + in[1]}; },
          12.0 * static_cast<double>(n),
          "GBps"};
}

UserKernel row_softmax(int64_t rows, int64_t columns) {
  const auto kernel = k::kernel("softmax", [](k::In<float, 2> a, k::Out<float, 2> b) {
                        const auto row = k::program_id(0);
                        const auto v = a(row, k::all).load();
                        const auto e = k::exp(v - k::max(v, 0));
                        b(row, k::all) = e * k::recip(k::sum(e, 0));
                      }).grid([](auto a, auto) { return k::Grid{a.dim(0)}; });
  return {"softmax",
          {normal_array({rows, columns}, 1)},
          kernel,
          [](const auto& in) { return std::vector{softmax(in[0], -1)}; },
          8.0 * static_cast<double>(rows * columns),
          "GBps"};
}

UserKernel row_norm(int64_t rows, int64_t columns) {
  const auto kernel =
      k::kernel("layer_norm", [](k::In<float, 2> a, k::In<float, 1> w, k::In<float, 1> c, k::Out<float, 2> b) {
        const auto row = k::program_id(0);
        const float share = 1.0f / static_cast<float>(a.dim(1));
        const auto v = a(row, k::all).load();
        const auto centred = v - k::sum(v, 0) * share;
        const auto variance = k::sum(centred * centred, 0) * share;
        b(row, k::all) = centred * k::rsqrt(variance + 1e-5) * w(k::all) + c(k::all);
      }).grid([](auto a, auto, auto, auto) { return k::Grid{a.dim(0)}; });
  return {"layer_norm",
          {normal_array({rows, columns}, 1), normal_array({columns}, 2), normal_array({columns}, 3)},
          kernel,
          [](const auto& in) { return std::vector{fast::layer_norm(in[0], in[1], in[2], 1e-5f)}; },
          8.0 * static_cast<double>(rows * columns),
          "GBps"};
}

UserKernel square_product(int64_t n) {
  struct Tiles {
    int64_t m = 128, n = 128, k = 64;
  };
  const auto kernel =
      k::kernel("matmul", [](k::In<float, 2> a, k::In<float, 2> b, k::Out<float, 2> c, Tiles t) {
        const auto rows = k::ds(k::program_id(0) * t.m, t.m), columns = k::ds(k::program_id(1) * t.n, t.n);
        k::Mut sum = k::zeros<float>({t.m, t.n});
        k::loop(0, a.dim(1), t.k,
                [&](k::Index i) { sum = k::dot(a(rows, k::ds(i, t.k)), b(k::ds(i, t.k), columns), sum.get()); });
        c(rows, columns) = sum;
      }).grid([](auto a, auto b, auto, Tiles t) {
          return k::Grid{k::cdiv(a.dim(0), t.m), k::cdiv(b.dim(1), t.n)};
        }).outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      });
  return {fmt::format("matmul_{}", n),
          {normal_array({n, n}, 1), normal_array({n, n}, 2)},
          kernel,
          [](const auto& in) { return std::vector{matmul(in[0], in[1])}; },
          2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n),
          "gflops"};
}

}  // namespace

void bench_user_kernels(const BenchOptions& o) {
  for (const UserKernel& p :
       {vector_sum(1 << 24), row_softmax(4096, 4096), row_norm(4096, 4096), square_product(1024)}) {
    for (const array& x : p.inputs) eval(x);
    const ArrayFunction user = compiled_as(p.user, p.inputs, false), own = compiled_as(p.own, p.inputs, false);
    const auto time = [&](const ArrayFunction& f) {
      return median_of(
          reps_of(o, 9), [&] { eval(f(p.inputs)), synchronize(); }, o.cpu_time);
    };
    std::vector<double> users, compilers;  // alternately: other work of the machine affects both
    for (int turn = 0; turn < 5; ++turn) {
      users.push_back(time(user));
      compilers.push_back(time(own));
    }
    std::sort(users.begin(), users.end());
    std::sort(compilers.begin(), compilers.end());
    Row(fmt::format("user_kernel_{}", p.name), o)
        .number("ms", users[2])
        .number(p.rate, p.work / users[2] / 1e6)
        .number("compiler_ms", compilers[2])
        .number("of_compiler", compilers[2] / users[2])
        .print();
  }
}

}  // namespace weft::tool
