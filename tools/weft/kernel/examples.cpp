#include "tools/weft/kernel/examples.h"

#include "weft/fast.h"
#include "weft/kernel_function.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

ExampleKernel vector_sum() {
  constexpr int64_t block = 4096;
  const auto kernel = k::kernel("add", [](k::In<float, 1> a, k::In<float, 1> b, k::Out<float, 1> c) {
                        const auto at = k::ds(k::program_id(0) * block, block);
                        c(at) = a(at) + b(at);
                      }).grid([](auto a, auto, auto) { return k::Grid{k::cdiv(a.dim(0), block)}; });
  return {"add",
          "c = a + b, a block of elements a program",
          "add",
          {{1 << 24}, {1 << 24}},
          {{9000}, {9000}},
          kernel,
          [](const auto& in) { return std::vector{in[0] + in[1]}; }};
}

ExampleKernel row_softmax() {
  const auto kernel = k::kernel("softmax", [](k::In<float, 2> a, k::Out<float, 2> b) {
                        const auto row = k::program_id(0);
                        const auto v = a(row, k::all).load();
                        const auto e = k::exp(v - k::max(v, 0));
                        b(row, k::all) = e * k::recip(k::sum(e, 0));
                      }).grid([](auto a, auto) { return k::Grid{a.dim(0)}; });
  return {"softmax",
          "softmax along rows, a row a program",
          "softmax",
          {{4096, 4096}},
          {{5, 1003}},
          kernel,
          [](const auto& in) { return std::vector{softmax(in[0], -1)}; }};
}

ExampleKernel row_norm() {
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
          "layer norm with weight and bias, a row a program",
          "layer_norm",
          {{4096, 4096}, {4096}, {4096}},
          {{5, 771}, {771}, {771}},
          kernel,
          [](const auto& in) { return std::vector{fast::layer_norm(in[0], in[1], in[2], 1e-5f)}; }};
}

ExampleKernel square_product() {
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
  return {"matmul",
          "matrix product of exact float32, a tile of 128 x 128 a program",
          "matmul_1024",
          {{1024, 1024}, {1024, 1024}},
          {{130, 70}, {70, 40}},
          kernel,
          [](const auto& in) { return std::vector{matmul(in[0], in[1])}; }};
}

}  // namespace

const std::vector<ExampleKernel>& example_kernels() {
  static const std::vector<ExampleKernel> all{vector_sum(), row_softmax(), row_norm(), square_product()};
  return all;
}

std::vector<array> example_arguments(const std::vector<Shape>& shapes) {
  std::vector<array> out;
  for (const Shape& shape : shapes) out.push_back(random::normal(shape, float32, 0, 1, random::key(out.size() + 1)));
  return out;
}

}  // namespace weft::tool
