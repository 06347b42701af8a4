// weft bench gpu-products: products of squares and of models' layers by generated code and with libraries, alternately
// in one run. A program makes four products, each of another right operand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/weft/bench/support.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace weft::tool {

namespace {

constexpr int operands = 4, most_burst = 50;

/// What follows a product: nothing; a bias, gelu, and its argument beside it; a float32 residual.
enum class Then { nothing, gelu, residual };

struct DeviceProduct {
  const char* name;
  int m, n, k;
  bool transpose_a, transpose_b;  // the operand is transposed in memory
  Then then;
};

constexpr DeviceProduct device_products[] = {
    {"512", 512, 512, 512, false, false, Then::nothing},
    {"1024", 1024, 1024, 1024, false, false, Then::nothing},
    {"2048", 2048, 2048, 2048, false, false, Then::nothing},
    {"4096", 4096, 4096, 4096, false, false, Then::nothing},
    {"4096_b_across", 4096, 4096, 4096, false, true, Then::nothing},
    {"4096_a_across", 4096, 4096, 4096, true, false, Then::nothing},
    {"8192", 8192, 8192, 8192, false, false, Then::nothing},
    {"gpt2_qkv", 8192, 2304, 768, false, true, Then::nothing},
    {"gpt2_projection", 8192, 768, 768, false, true, Then::residual},
    {"gpt2_up_gelu", 8192, 3072, 768, false, true, Then::gelu},
    {"gpt2_down", 8192, 768, 3072, false, true, Then::residual},
    {"gpt2_down_input_gradient", 8192, 3072, 768, false, false, Then::nothing},
    {"gpt2_projection_weight_gradient", 768, 768, 8192, true, false, Then::nothing},
    {"gpt2_qkv_weight_gradient", 2304, 768, 8192, true, false, Then::nothing},
    {"gpt2_up_weight_gradient", 3072, 768, 8192, true, false, Then::nothing},
    {"llama_qkv", 4096, 6144, 4096, false, true, Then::nothing},
    {"llama_up", 4096, 14336, 4096, false, true, Then::nothing},
    {"llama_down", 4096, 4096, 14336, false, true, Then::residual},
};

/// Returns the results of one product.
std::vector<array> results_of(const DeviceProduct& p, const array& a, const array& b, const array& bias,
                              const array& residual) {
  const array y = matmul(p.transpose_a ? transpose(a) : a, p.transpose_b ? transpose(b) : b);
  if (p.then == Then::residual) return {astype(y, float32) + residual};
  if (p.then == Then::nothing) return {y};
  const array x = y + bias;
  return {fast::gelu_tanh(x), x};
}

}  // namespace

void bench_gpu_products(const BenchOptions& o) {
  need_gpu("gpu-products");
  const Dtype dtype = compute_dtype(o.dtype);
  for (const DeviceProduct& p : device_products) {
    if (!o.only.empty() && o.only != p.name) continue;
    const auto normal = [&](Shape shape, Dtype t, uint64_t key) {
      return random::normal(std::move(shape), t, 0, 1 / std::sqrt(static_cast<float>(p.k)), random::key(key));
    };
    std::vector<array> in{normal(p.transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, dtype, 0), normal({p.n}, dtype, 1),
                          normal({p.m, p.n}, float32, 2)};
    for (uint64_t k = 0; k < operands; ++k)
      in.push_back(normal(p.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, dtype, 3 + k));
    eval(in);
    const ArrayFunction f = [&p](const std::vector<array>& x) {
      std::vector<array> out;
      for (size_t k = 0; k < operands; ++k)
        for (const array& y : results_of(p, x[0], x[3 + k], x[1], x[2])) out.push_back(y);
      return out;
    };
    const auto own = compiled_as(f, in, false), library = compiled_as(f, in, true);
    const double flops = 2.0 * p.m * p.n * p.k;
    const int burst = std::clamp(static_cast<int>(1e13 / flops), 3, most_burst);
    const auto ms = [&](const ArrayFunction& program) {
      return device_ms(reps_of(o, 5), burst, [&] { program(in); }) / operands;
    };
    std::vector<double> ours, theirs;  // alternately: clocks and other work affect both
    for (int turn = 0; turn < 3; ++turn) ours.push_back(ms(own)), theirs.push_back(ms(library));
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    Row(fmt::format("product_{}", p.name), o, std::string(dtype_name(dtype)))
        .number("ms", ours[1])
        .number("tflops", flops / ours[1] / 1e9)
        .number("library_ms", theirs[1])
        .number("of_library", theirs[1] / ours[1])
        .print();
  }
}

}  // namespace weft::tool
