// The hand-written GEMM with a fused epilogue (target/cuda/handwritten/gemm.h): which products it takes, that its code
// keeps its sums in registers, and what it computes, against float64.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/gemm.h"
#include "target/cuda/handwritten/loaded.h"
#include "target/cuda/libraries/cublaslt.h"
#include "target/own_call.h"
#include "target/target.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::Activation;
using kernel::DotDesc;
using kernel::PreActivation;

namespace {

DotDesc product(int64_t m, int64_t n, int64_t k, Dtype t = bfloat16, bool a_m_major = false, bool b_n_major = false,
                int64_t gap = 0) {
  DotDesc d;
  d.a = d.b = d.c = t;
  d.m = m, d.n = n, d.k = k;
  d.a_m = a_m_major ? 1 : k + gap, d.a_k = a_m_major ? m + gap : 1;
  d.b_n = b_n_major ? 1 : k + gap, d.b_k = b_n_major ? n + gap : 1;
  d.c_m = n + gap, d.c_n = 1;
  return d;
}

DotDesc with(DotDesc d, Activation activation, PreActivation argument = PreActivation::none, bool bias = false) {
  d.activation = activation, d.pre_activation = argument, d.bias = bias;
  return d;
}

DotDesc with_residual(DotDesc d, bool bias) {
  d.residual = true, d.bias = bias;
  return d;
}

DotDesc with_sums(DotDesc d) {
  d.sum = kernel::OperandSum::c;
  return d;
}

/// All epilogues and layouts once.
std::vector<DotDesc> products() {
  const auto gelu = Activation::gelu_tanh;
  return {
      product(128, 256, 64),
      product(128, 256, 72, float16, true, true),
      with(product(304, 520, 200, bfloat16, false, false, 8), gelu, PreActivation::stored, true),
      with(product(303, 264, 320, float16), gelu, PreActivation::stored),
      with(product(304, 520, 200, bfloat16, false, true, 8), gelu, PreActivation::derivative),
      with(product(200, 1032, 136, float16, true, false), gelu, PreActivation::derivative),
      with(product(264, 248, 640, bfloat16, true, true), Activation::relu, PreActivation::none, true),
      with(product(1, 8, 8, bfloat16), gelu),
      with_residual(product(392, 520, 128, bfloat16), true),
      with_residual(product(300, 256, 200, float16, false, true, 8), false),
      with(product(5000, 2056, 192, bfloat16, false, true), gelu, PreActivation::stored,
           true),  // several tiles an SM
      with(product(5000, 2056, 64, bfloat16), gelu, PreActivation::derivative),
      with_sums(with(product(384, 448, 128, bfloat16, false, true, 8), gelu, PreActivation::derivative)),
      with_sums(with(product(4864, 2056, 64, float16), gelu, PreActivation::derivative)),
      with_sums(with_residual(product(128, 264, 64), false)),
      with(product(264, 250, 90, bfloat16, false, false, 6), Activation::relu, PreActivation::none, true),
      product(300, 1030, 70, float16, false, true, 2),
      with_residual(product(130, 1029, 61, bfloat16, false, true, 3), false),
  };
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }

double gelu_slope(double x) {
  const double root = std::sqrt(2 / std::acos(-1.0)), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

/// Runs a product twice on the device, directly or as the target would, and compares some of its rows.
void run(const DotDesc& d, double bound, const std::function<void(std::span<void* const>)>& go,
         cuda::Context& context) {
  CAPTURE(d.to_string());
  CAPTURE(d.a_m);
  CAPTURE(d.b_n);
  const auto size = [](int64_t rows, int64_t row, int64_t columns, int64_t column) {
    return static_cast<size_t>((rows - 1) * row + (columns - 1) * column + 1);
  };
  const std::vector<double> a = rounded(numbers(size(d.m, d.a_m, d.k, d.a_k), 1), d.a),
                            b = rounded(numbers(size(d.k, d.b_k, d.n, d.b_n), 2), d.a);
  const std::vector<double> bias = rounded(numbers(static_cast<size_t>(d.n), 3), d.a),
                            argument = rounded(numbers(size(d.m, d.c_m, d.n, 1), 4), d.a);
  const bool slope = d.pre_activation == PreActivation::derivative, written = d.pre_activation == PreActivation::stored;
  const std::vector<double> before(size(d.m, d.c_m, d.n, 1), -7);
  const DeviceArray on_a(context, a, d.a), on_b(context, b, d.a), on_bias(context, bias, d.a),
      z(context, slope || d.residual ? argument : before, d.a), c(context, before, d.a);
  const bool sums = d.sum == kernel::OperandSum::c;
  const int64_t parts = sums ? d.m / kernel::rows_of_a_sum : 0;
  const DeviceArray on_sums(context, std::vector<double>(static_cast<size_t>(parts * d.n), -7), float32);
  std::vector<void*> operands = {on_a.address(), on_b.address()};
  if (d.bias) operands.push_back(on_bias.address());
  if (d.residual) operands.push_back(z.address());
  if (sums) operands.push_back(on_sums.address());
  if (slope || written) operands.push_back(z.address());
  operands.push_back(c.address());
  go(operands);
  const std::vector<double> got = c.values(), got_z = z.values();
  double worst = 0, worst_z = 0, gaps = 0;
  const auto note = [](double& most, double x, double want) {
    const double error = std::abs(x - want) / (1 + std::abs(want));
    most = test::larger(most, error);
  };
  for (int64_t i = 0; i<d.m; i += d.m> 600 && i < d.m - 140 ? 61 : 1)
    for (int64_t j = 0; j < d.c_m && i * d.c_m + j < static_cast<int64_t>(got.size()); ++j) {
      const auto at = static_cast<size_t>(i * d.c_m + j);
      if (j >= d.n) {
        if (j >= (d.n + 7) / 8 * 8) note(gaps, got[at], -7);  // before, stores of 8 elements end
        continue;
      }
      double sum = d.bias ? bias[static_cast<size_t>(j)] : 0;
      for (int64_t l = 0; l < d.k; ++l)
        sum += a[static_cast<size_t>(i * d.a_m + l * d.a_k)] * b[static_cast<size_t>(l * d.b_k + j * d.b_n)];
      if (d.residual) sum += argument[at];
      if (written) note(worst_z, got_z[at], sum);
      note(worst, got[at],
           slope                                   ? sum * gelu_slope(argument[at])
           : d.activation == Activation::gelu_tanh ? gelu(sum)
           : d.activation == Activation::relu      ? std::max(sum, 0.0)
                                                   : sum);
    }
  std::vector<double> want_sums(static_cast<size_t>(parts * d.n), 0),
      sizes(want_sums.size(), 1e-30);  // of what was stored
  for (int64_t i = 0; sums && i < d.m; ++i)
    for (int64_t j = 0; j < d.n; ++j) {
      const auto at = static_cast<size_t>(i / kernel::rows_of_a_sum * d.n + j);
      want_sums[at] += got[static_cast<size_t>(i * d.c_m + j)],
          sizes[at] += std::abs(got[static_cast<size_t>(i * d.c_m + j)]);
    }
  const std::vector<double> got_sums = on_sums.values();
  int wrong_sums = 0;
  for (size_t k = 0; k < got_sums.size(); ++k)
    wrong_sums += !(std::abs(got_sums[k] - want_sums[k]) < 0x1p-20 * sizes[k]);  // NaN is wrong, too
  CHECK(wrong_sums == 0);
  CHECK(worst < bound);
  CHECK(worst_z < bound);
  CHECK(gaps == 0);
  go(operands);
  CHECK(c.values() == got);
}

/// One rounding, or two: that of the sum may grow by gelu's derivative, which is at most 1.13.
double bound_of(const DotDesc& d) {
  return (d.a == bfloat16 ? 0x1p-8 : 0x1p-11) *
         (d.pre_activation == PreActivation::derivative || d.residual || d.activation == Activation::gelu_tanh ? 2.2
                                                                                                               : 1.05);
}

const target::Machine& machine = target::stated_machine("NVIDIA H200");

cuda::Match match_of(const DotDesc& d) {
  std::optional<cuda::Match> match = cuda::match_gemm(d, machine);
  REQUIRE(match.has_value());
  return *match;
}

}  // namespace

TEST_CASE("hand-written GEMM: what the kernel takes") {
  for (const DotDesc& d : products()) {
    CAPTURE(d.to_string());
    DotDesc merged;
    const auto form = cuda::gemm_form(d, &merged);
    REQUIRE(form.has_value());
    CHECK(form->a_m_major == (d.a_m == 1 && d.m > 1));
    CHECK(form->b_n_major == (d.b_n == 1));
    CHECK(merged == d);
  }
  DotDesc rows = product(40, 48, 64);  // [3, 40] rows of one product
  rows.batch = {3}, rows.a_batch = {40 * 64}, rows.b_batch = {0}, rows.c_batch = {40 * 48};
  DotDesc merged;
  REQUIRE(cuda::gemm_form(rows, &merged).has_value());
  CHECK(merged == product(120, 48, 64));

  const auto refused = [](DotDesc d, auto edit) {
    edit(d);
    return !cuda::gemm_form(d).has_value();
  };
  const DotDesc base = product(128, 256, 64), slope = with(base, Activation::gelu_tanh, PreActivation::derivative);
  CHECK(!refused(base, [](DotDesc&) {}));
  CHECK(refused(base, [](DotDesc& d) { d.c = float32; }));
  CHECK(refused(base, [](DotDesc& d) { d.a = d.b = d.c = float32; }));
  CHECK(refused(base, [](DotDesc& d) { d.b = float16; }));
  CHECK(refused(base, [](DotDesc& d) { d.sum = kernel::OperandSum::a; }));
  CHECK(refused(base, [](DotDesc& d) { d.m = 136, d.sum = kernel::OperandSum::c; }));  // not in parts of 128 rows
  CHECK(refused(base, [](DotDesc& d) { d.residual = true, d.activation = Activation::relu; }));
  CHECK(refused(base, [](DotDesc& d) { d.activation = Activation::gelu; }));
  CHECK(!refused(base, [](DotDesc& d) { d.n = 252; }));              // a chunk at the edge, in the padding of rows
  CHECK(refused(base, [](DotDesc& d) { d.n = 252, d.c_m = 264; }));  // more than padding
  CHECK(refused(base, [](DotDesc& d) { d.n = 251, d.bias = true; }));
  CHECK(refused(base, [](DotDesc& d) { d.c_m = 260; }));  // rows at 8 bytes
  CHECK(refused(base, [](DotDesc& d) { d.a_m = 68; }));
  CHECK(refused(base, [](DotDesc& d) { d.a_m = 128, d.a_k = 2; }));  // nothing contiguous
  CHECK(refused(base, [](DotDesc& d) { d.c_m = 1, d.c_n = 128; }));
  CHECK(refused(slope, [](DotDesc& d) { d.bias = true; }));
  CHECK(refused(rows, [](DotDesc& d) { d.b_batch = {64 * 48}; }));  // every batch with a matrix of its own

  CHECK(cuda::gemm_may_win(with(product(65536, 3072, 768), Activation::gelu_tanh, PreActivation::stored, true), 132));
  CHECK(!cuda::gemm_may_win(slope, 132));                      // little work
  CHECK(!cuda::gemm_may_win(product(768, 3072, 65536), 132));  // 72 tiles
  CHECK(cuda::gemm_may_win(product(768, 3072, 65536), 72));    // of a device with fewer SMs
  CHECK(!cuda::gemm_may_win(product(8192, 768, 30528), 132));
  CHECK(cuda::gemm_may_win(product(8192, 768, 30522, bfloat16, false, true, 6), 132));  // slow for a library
}

TEST_CASE("hand-written GEMM: sums stay in registers") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const std::vector<DotDesc> all = products();
  for (const size_t k : {1, 2, 12}) {
    std::string log;
    const cuda::Match match = match_of(all[k]);
    CHECK(!cuda::compile(cuda::source_of(cuda::handwritten_kernel("gemm"), match.parameters), "sm_90a", {}, &log)
               .empty());
    CHECK(log.find("serializ") == std::string::npos);
    CHECK(log.find("setmaxnreg") == std::string::npos);  // what ptxas says where it pays no attention to it
    const auto usage = cuda::parse_usage(log);
    REQUIRE(usage.size() == 1);
    CAPTURE(usage[0].name);
    CHECK(usage[0].spill_store_bytes == 0);
    CHECK(usage[0].stack_bytes == 0);
    CHECK(usage[0].registers * match.entries[0].shape.threads <= 65536);
    CHECK(match.entries[0].shape.shared_bytes <= 227 << 10);
  }
}

TEST_CASE("hand-written GEMM on the device: layouts, edges and epilogues, alone and beside cuBLASLt") {
  if (!on_hopper()) return;
  cuda::Context& context = test::context();
  for (const DotDesc& d : products()) {
    const cuda::Match match = match_of(d);
    const auto compile = [](const std::string& source) { return cuda::compile(source, "sm_90a"); };
    const auto own = cuda::handwritten_call(
        std::make_shared<cuda::LoadedKernel>(
            context, compile, cuda::source_of(cuda::handwritten_kernel("gemm"), match.parameters), match.entries),
        match);
    run(
        d, bound_of(d), [&](std::span<void* const> operands) { own->run(operands); }, context);
    if (d.pre_activation == PreActivation::none || d.sum != kernel::OperandSum::none) continue;
    const auto call = cuda::cublaslt(d, context, {.others = {{own, "gemm of the test", 16}}});
    if (call)
      run(
          d, bound_of(d), [&](std::span<void* const> operands) { call->run(operands); }, context);
  }
  const DotDesc large = with(product(8192, 1024, 1024), Activation::gelu_tanh, PreActivation::stored, true);
  const auto call = target::gpu(test::gpu_ordinal()).library(large);
  REQUIRE(call);
  run(
      large, bound_of(large), [&](std::span<void* const> operands) { call->run(operands); }, context);
  MESSAGE(large.to_string() << ": " << call->name());
}
