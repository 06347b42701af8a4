// Products in 8-bit floats and their derivatives: against the same roundings in float64, by generated code and through
// a library that reads their scales from memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/half.h"
#include "compiler/program.h"
#include "compiler/simt_target.h"
#include "device.h"
#include "target/cuda/libraries/cublaslt.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

double element(const void* data, Dtype t, int64_t at) {
  if (t == float32) return static_cast<const float*>(data)[at];
  return t.size() == 2 ? static_cast<double>(low_to_float(static_cast<const uint16_t*>(data)[at], t))
                       : static_cast<double>(low_to_float(static_cast<const uint8_t*>(data)[at], t));
}

/// Many threads, and the products that cuBLASLt takes in 8 bits, computed as their descriptor says; other products by
/// generated code.
class EightBits final : public target::Target {
 public:
  EightBits() {
    machine_ = weft::test::as_gpu({});
    machine_.min_lanes = machine_.max_lanes = 32;
    machine_.vector_registers = 64;
  }
  std::string fingerprint() const override { return "eight bits " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    if (!is_float8(desc.a) || !target::cuda::cublaslt_form(desc)) return nullptr;
    return std::make_shared<Product>(desc, calls);
  }
  target::CompileStats stats() const override { return {}; }
  mutable int calls = 0;

 private:
  struct Product final : target::LibraryCall {
    Product(kernel::DotDesc desc, int& count) : d(std::move(desc)), calls(count) {}
    std::string name() const override { return "eight bits"; }
    void run(std::span<void* const> operands) const override {
      ++calls;
      REQUIRE(d.batch.empty());
      REQUIRE(operands.size() == 3u + (d.bias ? 1 : 0) + (d.residual ? 1 : 0) + static_cast<size_t>(d.scales));
      double scale = 1;
      for (int64_t k = 0; k < d.scales; ++k)
        scale *= *static_cast<const float*>(operands[operands.size() - 2 - static_cast<size_t>(k)]);
      for (int64_t i = 0; i < d.m; ++i)
        for (int64_t j = 0; j < d.n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < d.k; ++l)
            sum += element(operands[0], d.a, i * d.a_m + l * d.a_k) * element(operands[1], d.b, l * d.b_k + j * d.b_n);
          sum *= scale;
          if (d.bias) sum += element(operands[2], d.c, j);
          const int64_t at = i * d.c_m + j * d.c_n;
          if (d.residual) sum += element(operands[d.bias ? 3 : 2], d.c, at);
          if (d.c == float32) static_cast<float*>(operands.back())[at] = static_cast<float>(sum);
          else
            static_cast<uint16_t*>(operands.back())[at] =
                static_cast<uint16_t>(float_to_low(static_cast<float>(sum), d.c));
        }
    }
    kernel::DotDesc d;
    int& calls;
  };
};

EightBits& eight_bits() {
  static auto* const target = new EightBits;  // programs in the table outlive tests
  return *target;
}

struct OnEightBits {
  OnEightBits() { compiler::set_default_target(eight_bits()); }
  ~OnEightBits() { compiler::set_default_target(weft::test::target_under_test()); }
};

struct Matrix {
  int64_t rows, columns;
  std::vector<double> at;
  double operator()(int64_t i, int64_t j) const { return at[static_cast<size_t>(i * columns + j)]; }
};

Matrix read(const array& a, int64_t rows) {
  const std::vector<float> values = astype(a, float32).to_vector<float>();
  return {rows, static_cast<int64_t>(values.size()) / rows, {values.begin(), values.end()}};
}

/// What the numbers become: scaled by a power of two into the upper half of the format, rounded, and back.
Matrix rounded(Matrix m, Dtype t) {
  double largest = 0;
  for (const double v : m.at) largest = std::max(largest, std::fabs(v));
  const double limit = t == float8_e4m3 ? 448 : 57344,
               scale = largest > 0 ? std::exp2(std::ceil(std::log2(largest / limit))) : 1;
  for (double& v : m.at)
    v = scale * static_cast<double>(low_to_float(float_to_low(static_cast<float>(v / scale), t), t));
  return m;
}

Matrix turned(const Matrix& m) {
  Matrix out{m.columns, m.rows, {}};
  for (int64_t i = 0; i < m.columns; ++i)
    for (int64_t j = 0; j < m.rows; ++j) out.at.push_back(m(j, i));
  return out;
}

/// a · bᵀ
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out{a.rows, b.rows, {}};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.rows; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < a.columns; ++l) sum += a(i, l) * b(j, l);
      out.at.push_back(sum);
    }
  return out;
}

double distance(const Matrix& got, const Matrix& want) {
  REQUIRE(got.at.size() == want.at.size());
  double off = 0, size = 0;
  for (size_t k = 0; k < want.at.size(); ++k)
    off += std::pow(got.at[k] - want.at[k], 2), size += std::pow(want.at[k], 2);
  return std::sqrt(off / size);
}

/// y, dx and dw of one product; x [2, rows, k], w [n, k].
void compare(Dtype dtype, double magnitude, int64_t rows = 24, int64_t k = 64, int64_t n = 32) {
  CAPTURE(std::string(dtype_name(dtype)));
  CAPTURE(magnitude);
  const array x = random::normal({2, rows, k}, dtype, 0, static_cast<float>(magnitude), random::key(1)),
              w = random::normal({n, k}, dtype, 0, 0.02f, random::key(2));
  const array g = random::normal({2, rows, n}, dtype, 0, static_cast<float>(1e-3 / magnitude), random::key(3));
  eval(x, w, g);
  const auto step = compile(
      [](const std::vector<array>& in) {
        const auto [y, back] =
            vjp([](const std::vector<array>& p) { return std::vector<array>{fast::float8_linear(p[0], p[1])}; },
                {in[0], in[1]}, {in[2]});
        return std::vector<array>{y[0], back[0], back[1]};
      },
      {});
  const std::vector<array> got = step({x, w, g});
  const Matrix x8 = rounded(read(x, 2 * rows), float8_e4m3), w8 = rounded(read(w, n), float8_e4m3),
               g8 = rounded(read(g, 2 * rows), float8_e5m2);
  // A Hopper's tensor cores keep some 14 bits of partial sums of 8-bit floats.
  const double tolerance = dtype == bfloat16 ? 3e-3 : weft::test::on_gpu() ? 3e-4 : 2e-6;
  CHECK(got[0].dtype() == dtype);
  CHECK(got[0].shape() == g.shape());
  CHECK(distance(read(got[0], 2 * rows), times(x8, w8)) < tolerance);
  CHECK(distance(read(got[1], 2 * rows), times(g8, turned(w8))) < tolerance);
  CHECK(distance(read(got[2], n), times(turned(g8), turned(x8))) < tolerance);
}

void compare_all() {
  for (const Dtype dtype : {float32, bfloat16}) compare(dtype, 1);
  compare(bfloat16, 1e-6);
  compare(float32, 1e20);
}

}  // namespace

TEST_CASE("float8: a linear product and its derivatives are those of the rounded operands") { compare_all(); }

TEST_CASE("float8: through a library, each of the three products is one call with its scales") {
  const OnEightBits on;
  const int before = eight_bits().calls;
  compare_all();
  compare(bfloat16, 1, 64, 144, 80);  // large enough for tiles to be transposed, with remainders
  CHECK(eight_bits().calls - before == 5 * 3);
}

TEST_CASE("float8: a bias and a residual go into the library's call") {
  const OnEightBits on;
  const array x = random::normal({48, 64}, bfloat16, 0, 1, random::key(1)),
              w = random::normal({32, 64}, bfloat16, 0, 1, random::key(2));
  const array bias = random::normal({32}, bfloat16, 0, 1, random::key(3)),
              residual = random::normal({48, 32}, bfloat16, 0, 1, random::key(4));
  eval(x, w, bias, residual);
  const compiler::BuildRecord record;
  const auto f = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{fast::float8_linear(in[0], in[1]) + in[2] + in[3]};
      },
      {});
  Matrix want = times(rounded(read(x, 48), float8_e4m3), rounded(read(w, 32), float8_e4m3));
  const Matrix b = read(bias, 1), r = read(residual, 48);
  for (int64_t i = 0; i < 48; ++i)
    for (int64_t j = 0; j < 32; ++j) want.at[static_cast<size_t>(i * 32 + j)] += b(0, j) + r(i, j);
  CHECK(distance(read(f({x, w, bias, residual})[0], 48), want) < 3e-3);
}

TEST_CASE("float8: zeros, infinities and NaN") {
  const array w = ones({16, 16});
  CHECK(max(abs(fast::float8_linear(zeros({16, 16}), w))).item<float>() == 0);
  const array large = fast::float8_linear(full({16, 16}, array(INFINITY)), w),
              none = fast::float8_linear(full({16, 16}, array(NAN)), w);
  CHECK(!std::isfinite(large.to_vector<float>()[0] / 1e30f * 1e10f));
  CHECK(std::isnan(none.to_vector<float>()[5]));
  const array exact = fast::float8_linear(full({16, 16}, array(448 * 1024.f)), w);
  CHECK(exact.to_vector<float>()[0] == 16 * 448 * 1024.f);
}

TEST_CASE("float8: shapes and dtypes are checked") {
  CHECK_THROWS_WITH_AS(
      fast::float8_linear(ones({4, 8}), ones({8, 4})),
      doctest::Contains("[float8_linear] needs floating arrays x [..., k] and w [n, k], got f32(4,8) and f32(8,4)"),
      std::invalid_argument);
  CHECK_THROWS_AS(fast::float8_linear(ones({4, 8}, int32), ones({8, 8})), std::invalid_argument);
  CHECK_THROWS_AS(fast::float8_linear(ones({4, 8}), ones({8, 8, 8})), std::invalid_argument);
}

TEST_CASE("float8: tangents and batches") {
  const array x = random::normal({32, 16}, float32, 0, 1, random::key(1)),
              w = random::normal({16, 16}, float32, 0, 1, random::key(2)),
              t = random::normal({32, 16}, float32, 0, 1, random::key(3));
  const auto f = [&](const std::vector<array>& in) { return std::vector<array>{fast::float8_linear(in[0], w)}; };
  CHECK(distance(read(jvp(f, {x}, {t}).second[0], 32), times(read(t, 32), read(w, 16))) < 1e-6);
  const array both = vmap(f)({reshape(x, {2, 16, 16})})[0];
  const array second = fast::float8_linear(slice(x, {16, 0}, {32, 16}), w);
  CHECK(array_equal(slice(reshape(both, {32, 16}), {16, 0}, {32, 16}), second).item<bool>());
}

TEST_CASE("float8: layers whose sizes do not fit compute as without") {
  random::seed(7);
  nn::Linear fits(32, 48), odd(32, 40);
  nn::Linear plain(32, 40);
  for (nn::Linear* layer : {&fits, &odd}) nn::use_float8(*layer);
  CHECK(fits.float8);
  plain.weight = odd.weight.value();
  plain.bias.value() = odd.bias.value().value();
  const array x = random::normal({16, 32}, float32, 0, 1, random::key(1));
  CHECK(array_equal(odd(x), plain(x)).item<bool>());
  const array rounded_product = fits(x), exact = matmul(x, transpose(fits.weight)) + fits.bias.value();
  CHECK(!array_equal(rounded_product, exact).item<bool>());
  CHECK(allclose(rounded_product, exact, 0, 0.2).item<bool>());
  const array few = slice(x, {0, 0}, {15, 32});
  CHECK(array_equal(fits(few), matmul(few, transpose(fits.weight)) + fits.bias.value()).item<bool>());
}
