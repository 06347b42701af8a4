// Kernels with atomics and code of GPUs as functions of arrays: what is deterministic, and what runs where.
#include "weft/kernel_code.h"
#include "device.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int sum_line = __LINE__ + 5;
auto sum_kernel() {
  return k::kernel("sums",
                   [](k::In<float, 2> x, k::InOut<float, 1> y) {
                     // in no order
                     k::atomic("add", y(k::all), x(k::program_id(0), k::all));
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("sums of floats in no order are refused unless results may differ from run to run") {
  const array x = ones({5, 8}), y = zeros({8});
  CHECK(numerics().deterministic);  // the default
  const std::string message = refusal([&] { eval(sum_kernel()(x, y)); });
  CHECK(message.find("[kernel sums] " + std::string(__FILE__) + ":" + std::to_string(sum_line) + ": atomic") == 0);
  CHECK(message.find("k::Order::sequential") != std::string::npos);
  CHECK(message.find("set_numerics({.deterministic = false})") != std::string::npos);
  const Numerics before = numerics();
  set_numerics({.deterministic = false});
  const array sum = sum_kernel()(x, y);
  eval(sum);
  set_numerics(before);
  CHECK(array_equal(sum, full({8}, array(5.0f))).item<bool>());
  // The ordered form, and whole numbers, which end up the same in every order.
  const auto ordered = k::kernel("ordered", [](k::In<float, 2> a, k::InOut<float, 1> b) {
                         b(k::all) += a(k::program_id(0), k::all);
                       }).grid([](auto a, auto) {
    return k::Grid{{a.dim(0), k::Order::sequential}};
  });
  CHECK(array_equal(ordered(x, y), full({8}, array(5.0f))).item<bool>());
  const auto counted = k::kernel("counted", [](k::In<int32_t, 2> a, k::InOut<int32_t, 1> b) {
                         k::atomic("add", b(k::all), a(k::program_id(0), k::all));
                       }).grid([](auto a, auto) { return k::Grid{a.dim(0)}; });
  CHECK(array_equal(counted(astype(x, int32), zeros({8}, int32)), full({8}, array(5))).item<bool>());
}

TEST_CASE("a kernel with code runs its counterpart on a CPU, and is refused there without one") {
  const auto doubled = [](bool alone) {
    return k::kernel("doubled",
                     [alone](k::In<float, 1> x, k::Out<float, 1> y) {
                       const k::Code code("twice", {"a"}, {"b"}, "b = a + a;");
                       const auto v = x(k::all).load();
                       y(k::all) = alone ? k::cuda<float>(code, k::gpu_only, v)
                                         : k::cuda<float>(
                                               code, [](auto a) { return a + a; }, v);
                     })
        .grid({1});
  };
  const array x = arange(8.0);
  CHECK(array_equal(doubled(false)(astype(x, float32)), astype(x, float32) * 2.0f).item<bool>());
  if (test::on_gpu()) {
    CHECK(array_equal(doubled(true)(astype(x, float32)), astype(x, float32) * 2.0f).item<bool>());
    return;
  }
  const std::string message = refusal([&] { eval(doubled(true)(astype(x, float32))); });
  CHECK(message.find("[kernel doubled] ") == 0);
  CHECK(message.find("'twice' is code for GPUs alone") != std::string::npos);
}

TEST_CASE("a kernel of source is a function of arrays, with a function for CPUs") {
  const char* const source =
      "const int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < x_shape[0]) y[i] = x[i] * N;";
  const auto scaled = fast::cuda_kernel("scaled", {"x"}, {"y"}, source, "", true, 0,
                                        [](const std::vector<array>& in) { return std::vector{in[0] * 3.0f}; });
  const array x = astype(arange(10.0), float32);
  const auto call = [&](const fast::CustomKernelFunction& f, std::tuple<int, int, int> block = {32, 1, 1},
                        std::vector<Shape> shapes = {{10}}) {
    return f({x}, shapes, {float32}, {10, 1, 1}, block, {{"N", 3}}, std::nullopt, false, Device::cpu);
  };
  CHECK(array_equal(call(scaled)[0], x * 3.0f).item<bool>());
  const auto alone = fast::cuda_kernel("alone", {"x"}, {"y"}, source);
  CHECK(refusal([&] { call(alone); }).find("[kernel alone] is CUDA source and its stream is a CPU's") == 0);
  CHECK(refusal([&] { call(scaled, {1, 0, 1}); }).find("give 1 or more along each axis") != std::string::npos);
  CHECK(refusal([&] {
          call(scaled, {32, 1, 1}, {{10}, {10}});
        }).find("has 1 outputs, but 2 shapes") != std::string::npos);
  CHECK(refusal([&] { call(scaled, {32, 1, 1}, {{11}}); }).find("its function for CPUs returns") != std::string::npos);
  CHECK(refusal([&] {
          scaled({x}, {{10}}, {float32}, {4096, 1, 1}, {2048, 1, 1}, {}, std::nullopt, false, Device::cpu);
        }).find("has 2048 threads: give 1024 at most") != std::string::npos);
  CHECK(refusal([&] { fast::cuda_kernel("none", {"x"}, {}, source); }).find("has no output") != std::string::npos);
  CHECK(refusal([&] {
          scaled({x, x}, {{10}}, {float32}, {10, 1, 1}, {32, 1, 1}, {}, std::nullopt, false, Device::cpu);
        }).find("takes 1 arrays, got 2") != std::string::npos);
}
