// Matrix products by generated code, against the same expression in float64. On a GPU they go to tensor cores; what is
// promised there is the same bits at every run and an error within the rounding of float32 sums, not the bits of
// another device.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "compiler/program.h"
#include "device.h"
#include "target/target.h"
#include "weft/array.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"

using namespace weft;

namespace {

/// Generated kernels only, with TF32 if that is asked for, for as long as it lives.
struct Generated {
  bool libraries = target::libraries_enabled();
  Numerics before = numerics();
  explicit Generated(bool with_tf32 = false) {
    target::set_libraries_enabled(false), set_numerics({.tf32 = with_tf32});
  }
  ~Generated() { target::set_libraries_enabled(libraries), set_numerics(before); }
};

array waves(const Shape& shape, double phase, Dtype dtype) {
  std::vector<float> values;
  for (int64_t i = 0; i < num_elements(shape); ++i)
    values.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase)));
  return astype(array::from_data(values.data(), shape, float32), dtype);
}

using Function = std::function<array(const std::vector<array>&)>;

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  Function f;
  bool on_tensor_cores = true;
};

array gelu_of(const array& x) { return fast::gelu_tanh(x); }

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"plain", {{64, 96}, {96, 80}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"ragged", {{67, 41}, {41, 53}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"even lines, ragged tiles", {{200, 72}, {72, 136}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"right side transposed", {{70, 64}, {90, 64}}, [](const auto& in) { return matmul(in[0], transpose(in[1])); }},
      {"left side transposed", {{64, 72}, {64, 48}}, [](const auto& in) { return matmul(transpose(in[0]), in[1]); }},
      {"both transposed",
       {{40, 33}, {65, 40}},
       [](const auto& in) { return matmul(transpose(in[0]), transpose(in[1])); }},
      {"read transposed", {{48, 40}, {40, 72}}, [](const auto& in) { return abs(transpose(matmul(in[0], in[1]))); }},
      {"a part",
       {{80, 64}, {64, 96}},
       [](const auto& in) {
         return matmul(slice(in[0], {3, 5}, {70, 49}), slice(in[1], {7, 2}, {51, 90}));
       }},
      {"every other",
       {{80, 64}, {64, 96}},
       [](const auto& in) {
         return matmul(slice(in[0], {0, 0}, {80, 64}, {2, 1}), slice(in[1], {0, 0}, {64, 96}, {1, 2}));
       }},
      {"batches", {{3, 2, 40, 24}, {3, 2, 24, 56}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"a batch for one", {{3, 40, 24}, {24, 56}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"heads",
       {{2, 48, 3, 16}, {2, 40, 3, 16}},
       [](const auto& in) {
         return matmul(transpose(in[0], {0, 2, 1, 3}), transpose(in[1], {0, 2, 3, 1}));
       }},
      {"bias", {{65, 40}, {40, 72}, {72}}, [](const auto& in) { return matmul(in[0], in[1]) + in[2]; }},
      {"bias, activation",
       {{65, 40}, {40, 72}, {72}},
       [](const auto& in) { return gelu_of(matmul(in[0], in[1]) + in[2]); }},
      {"bias, residual",
       {{64, 40}, {40, 72}, {72}, {64, 72}},
       [](const auto& in) { return matmul(in[0], in[1]) + in[2] + in[3]; }},
      {"bias, activation, residual on ragged tiles",
       {{67, 41}, {41, 53}, {53}, {67, 53}},
       [](const auto& in) { return gelu_of(matmul(in[0], in[1]) + in[2]) + in[3]; }},
      {"a large tile", {{300, 64}, {64, 520}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"many tiles", {{1100, 32}, {32, 2100}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"few rows", {{5, 64}, {64, 96}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"few columns", {{200, 64}, {64, 3}}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {"one row", {{1, 64}, {64, 96}}, [](const auto& in) { return matmul(in[0], in[1]); }, false},
      {"nothing to add up", {{20, 0}, {0, 30}}, [](const auto& in) { return matmul(in[0], in[1]); }, false},
      {"no rows", {{0, 20}, {20, 30}}, [](const auto& in) { return matmul(in[0], in[1]); }, false},
  };
  return all;
}

/// One call of the compiled function, and the tile IR that it became.
array run(const Case& c, const std::vector<array>& in, std::string* kernels = nullptr) {
  const auto f = compile([&](const std::vector<array>& v) { return std::vector<array>{c.f(v)}; }, CompileOptions{});
  const compiler::BuildRecord record(true);
  const array y = f(in)[0];
  eval(y);
  if (kernels)
    for (const auto& program : record.programs()) *kernels += program->print("kernels");
  return y;
}

std::vector<array> inputs(const Case& c, Dtype dtype) {
  std::vector<array> in;
  for (const Shape& shape : c.shapes) in.push_back(waves(shape, 0.3 + static_cast<double>(in.size()), dtype));
  return in;
}

/// `rounding`: of results, relative to the largest of them, which bounds intermediate rounding; `of_sums`: of sums of
/// some hundred numbers below 1.
void check_case(const Case& c, Dtype dtype, double rounding, double of_sums) {
  CAPTURE(c.name);
  CAPTURE(std::string(dtype_name(dtype)));
  const std::vector<array> in = inputs(c, dtype);
  std::string kernels;
  const array y = run(c, in, &kernels);
  CHECK(y.dtype() == dtype);
  std::vector<array> exact;
  for (const array& a : in) exact.push_back(astype(a, float64));
  const array z = run(c, exact);
  REQUIRE(y.shape() == z.shape());
  const auto got = astype(y, float64).to_vector<double>(), expected = z.to_vector<double>();
  double worst = 0, largest = 0;
  for (double v : expected) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]) / (rounding * (std::abs(expected[i]) + largest) + of_sums);
    worst = error <= worst ? worst : error;
  }
  CHECK(worst <= 1);
  CHECK(run(c, in).to_vector<float>() == y.to_vector<float>());
  const bool wanted = test::on_gpu() && c.on_tensor_cores && (dtype != float32 || numerics().tf32);
  if (wanted) CHECK(kernels.find("any_size") != std::string::npos);
}

}  // namespace

TEST_CASE("generated products in bfloat16 and float16 round their results once") {
  const Generated only;
  for (const Case& c : cases()) {
    check_case(c, bfloat16, 0x1p-8, 1e-3);
    check_case(c, float16, 0x1p-10, 1e-3);
  }
}

TEST_CASE("generated products in float32 are full products unless TF32 is asked for") {
  {
    const Generated only;
    for (const Case& c : cases()) check_case(c, float32, 1e-5, 1e-5);
  }
  const Generated only(true);
  for (const Case& c : cases()) check_case(c, float32, 0x1p-9, 0.05);
}
