// The kernels beside cuSOLVER's routines: compiled wherever NVRTC is, run where WEFT_TEST_DEVICE=cuda.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <tuple>

#include "base/number.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/linalg_kernels.h"
#include "target/target.h"

using namespace weft;
using namespace weft::test;
namespace cuda = target::cuda;

namespace {

cuda::LinalgKernels kernels(cuda::Context& context) {
  return {context, [&context](const std::string& source) { return cuda::compile(source, context.info().arch()); }};
}
/// So that a product of many reflections does not grow without bounds.
std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& v : values) v *= by;
  return values;
}
const int* integers(const DeviceArray& a) { return static_cast<const int*>(a.address()); }

}  // namespace

TEST_CASE("kernels of decompositions compile, and need no local memory") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    CAPTURE(arch);
    std::string log;
    CHECK(!cuda::compile(cuda::source_of(cuda::handwritten_kernel("linalg")), arch, {}, &log).empty());
    const auto usage = cuda::parse_usage(log);
    CHECK(usage.size() == 9);
    for (const auto& use : usage) {
      CAPTURE(use.name);
      CHECK(use.stack_bytes == 0);
      CHECK(use.registers <= 64);
    }
  }
}

TEST_CASE("what a routine could not do becomes NaN in its own matrix") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const auto k = kernels(context);
  for (const Dtype t : {float32, float64}) {
    const DeviceArray info(context, {0, 0, 0, 7, -1, 0, 0, 0}, int32), a(context, numbers(4 * 6, 1), t),
        b(context, numbers(4 * 300, 2), t), c(context, numbers(4, 3), t);
    const cuda::LinalgKernels::Matrices all[] = {
        {a.address(), 6ul * t.size()}, {b.address(), 300ul * t.size()}, {c.address(), 1ul * t.size()}};
    k.poison(integers(info), 2, 4, all);
    for (const auto& [got, before, each] : {std::tuple{a.values(), rounded(numbers(4 * 6, 1), t), 6},
                                            {b.values(), rounded(numbers(4 * 300, 2), t), 300},
                                            {c.values(), rounded(numbers(4, 3), t), 1}})
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t matrix = i / static_cast<size_t>(each);
        if (matrix == 1 || matrix == 2) CHECK(std::isnan(got[i]));
        else CHECK(got[i] == before[i]);
      }
  }
}

TEST_CASE("rows change places as pivots say") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const DeviceArray pivots(context, {3, 2, 4, 1, 2, 3}, int32), rows(context, std::vector<double>(8, -1), int32);
  kernels(context).exchanged_rows(integers(pivots), 3, static_cast<uint32_t*>(rows.address()), 4, 2);
  CHECK(rows.values() == std::vector<double>{2, 1, 3, 0, 0, 1, 2, 3});
}

TEST_CASE("what lies above diagonals is copied, and nothing else") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  for (const Dtype t : {float32, float64})
    for (const size_t n : {1, 4, 37}) {
      const size_t count = 3;
      const DeviceArray from(context, numbers(count * n * n, 7), t), to(context, numbers(count * n * n, 8), t);
      const std::vector<double> source = from.values(), before = to.values();
      kernels(context).upper_parts(t, from.address(), to.address(), static_cast<int>(n), static_cast<int64_t>(count));
      const std::vector<double> got = to.values();
      for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == (i % n > i / n % n ? source[i] : before[i]));
    }
}

TEST_CASE("imaginary parts change signs, and real numbers stay") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const auto k = kernels(context);
  for (const Dtype t : {float32, float64, complex64, complex128}) {
    const DeviceArray a(context, numbers(2 * 300, 4), real_of(t));
    const std::vector<double> before = a.values();
    k.conjugate(t, a.address(), 290);
    const std::vector<double> got = a.values();
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == (is_complex(t) && i % 2 == 1 && i < 2 * 290 ? -before[i] : before[i]));
  }
}

TEST_CASE("columns of Q are products of reflections") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const auto k = kernels(context);
  for (const Dtype t : {float32, float64, complex64, complex128})
    for (const auto& [m, n, columns] : {std::tuple{1, 1, 1}, {8, 8, 8}, {40, 7, 7}, {40, 7, 40}, {130, 70, 70}}) {
      const size_t rows = static_cast<size_t>(m), count = 3, parts = is_complex(t) ? 2 : 1;
      const Dtype real = real_of(t);
      const std::vector<double> a = rounded(numbers(parts * count * rows * static_cast<size_t>(n), 5), real),
                                tau = rounded(scaled(numbers(parts * count * static_cast<size_t>(n), 6), 0.02), real);
      const DeviceArray on_a(context, a, real), on_tau(context, tau, real),
          q(context, std::vector<double>(parts * count * rows * static_cast<size_t>(columns), NAN), real);
      k.columns_of_q(t, on_a.address(), on_tau.address(), q.address(), m, n, columns, static_cast<int64_t>(count));
      const auto number = [parts](const std::vector<double>& of, size_t i) {
        return parts == 2 ? std::complex<double>(of[2 * i], of[2 * i + 1]) : std::complex<double>(of[i]);
      };
      std::vector<double> want;
      for (size_t b = 0; b < count; ++b)
        for (int c = 0; c < columns; ++c) {
          std::vector<std::complex<double>> x(rows, 0.0);
          x[static_cast<size_t>(c)] = 1;
          for (int j = n - 1; j >= 0; --j) {
            const size_t reflection = b * static_cast<size_t>(n) + static_cast<size_t>(j), at = static_cast<size_t>(j);
            const auto v = [&](size_t i) {
              return i < at    ? std::complex<double>(0)
                     : i == at ? std::complex<double>(1)
                               : number(a, reflection * rows + i);
            };
            std::complex<double> sum = 0;
            for (size_t i = 0; i < rows; ++i) sum += std::conj(v(i)) * x[i];
            for (size_t i = 0; i < rows; ++i) x[i] -= number(tau, reflection) * sum * v(i);
          }
          for (const std::complex<double>& z : x) {
            want.push_back(z.real());
            if (parts == 2) want.push_back(z.imag());
          }
        }
      CHECK(beside_largest(q.values(), want) < (real == float64 ? 1e-12 : 1e-4));
    }
}
