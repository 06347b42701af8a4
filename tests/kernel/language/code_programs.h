#pragma once
// Kernels with code of GPUs, which has counterparts.
#include "weft/kernel_code.h"

namespace test_kernels {

namespace k = weft::k;

/// CUDA C++ on tiles of several shapes, one element and several at once, with one result and two.
inline k::Program coded(int pack) {
  using weft::float32, weft::int32;
  const std::vector<k::Param> params = {{k::Use::in, float32, {1200}}, {k::Use::out, float32, {1200}},
                                        {k::Use::in, int32, {77}},     {k::Use::out, int32, {77}},
                                        {k::Use::out, int32, {77}},    {k::Use::out, float32, {1}}};
  return k::trace("coded", params, {1}, [pack](std::span<const k::AnyRef> r) {
    const k::In<float, 1> x(r[0]);
    const k::In<int32_t, 1> n(r[2]);
    const k::Out<float, 1> y(r[1]), one(r[5]);
    const k::Out<int32_t, 1> sum(r[3]), product(r[4]);
    const k::Code affine =
        pack == 1 ? k::Code("affine", {"x", "by"}, {"y"}, "const float twice = x * 2.0f; y = twice + by;")
                  : k::Code("affine", {"x", "by"}, {"y"},
                            "for (int k = 0; k < " + std::to_string(pack) + "; ++k) y[k] = x[k] * 2.0f + by[k];", pack);
    const auto same = [](auto v, auto by) { return v * 2.f + by; };
    y(k::all) = k::cuda<float>(affine, same, x(k::all), k::scalar<float>(3));
    one(0) = k::sum(k::cuda<float>(affine, same, k::full<float>({1}, 2), k::scalar<float>(3)), 0);
    const k::Code both("both", {"a"}, {"s", "p"}, pack == 1 ? "s = a + a; p = a * a;" : "s[0] = 0; p[0] = 0;");
    const auto values = k::cuda<int32_t, int32_t>(
        pack == 1
            ? both
            : k::Code("both", {"a"}, {"s", "p"},
                      "for (int k = 0; k < " + std::to_string(pack) + "; ++k) s[k] = a[k] + a[k], p[k] = a[k] * a[k];",
                      pack),
        [](auto a) { return std::make_tuple(a + a, a * a); }, n(k::all));
    sum(k::all) = std::get<0>(values);
    product(k::all) = std::get<1>(values);
  });
}

}  // namespace test_kernels
