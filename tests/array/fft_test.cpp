// Discrete Fourier transforms against their definition in float64: lengths of every kind, axes, cutting and padding,
// norms, real arrays, derivatives, batches, and what is refused.
#include <doctest/doctest.h>

#include <complex>
#include <functional>
#include <limits>
#include <numbers>

#include "device.h"
#include "weft/weft.h"

using namespace weft;
using C = std::complex<float>;
using Z = std::complex<double>;
using fft::FFTNorm;

namespace {

std::vector<C> numbers(int64_t count) {
  std::vector<C> out;
  for (int64_t k = 0; k < count; ++k)
    out.emplace_back(std::sin(static_cast<float>(k * k % 101)), std::cos(static_cast<float>(3 * k * k % 89)));
  return out;
}

array of(const std::vector<C>& values, Shape shape) {
  return array::from_data(values.data(), std::move(shape), complex64);
}
array sample(Shape shape) { return of(numbers(num_elements(shape)), shape); }

std::vector<Z> values(const array& a) {
  const array z = contiguous(astype(a, complex64));
  eval(z);
  const C* data = z.data<C>();
  return {data, data + z.size()};
}

/// [rows, n], each row by the definition.
std::vector<Z> direct(const std::vector<Z>& x, int64_t n, bool inverse = false) {
  std::vector<Z> roots, out(x.size());
  for (int64_t k = 0; k < n; ++k)
    roots.push_back(
        std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(n))
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j)
        out[row + static_cast<size_t>(k)] += x[row + static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
  return out;
}

double distance(const std::vector<Z>& got, const std::vector<Z>& want) {
  REQUIRE(got.size() == want.size());
  double off = 0, size = 1e-30;
  for (size_t k = 0; k < want.size(); ++k) off += std::norm(got[k] - want[k]), size += std::norm(want[k]);
  return std::sqrt(off / size);
}

constexpr double tolerance = 1e-6;

}  // namespace

TEST_CASE("fft: lengths of every kind, forward and back, real and not") {
  for (const int64_t n : {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,  12,  13,  15,  16,   17,  20,
                          23, 27, 31, 34, 49, 60, 64, 97, 121, 143, 210, 256, 289, 509, 1000, 1024}) {
    CAPTURE(n);
    const array z = sample({2, n});
    const std::vector<Z> want = direct(values(z), n);
    CHECK(distance(values(fft::fft(z)), want) < tolerance);
    CHECK(distance(values(fft::ifft(fft::fft(z))), values(z)) < 2 * tolerance);
    const array x = real(z), half = fft::rfft(x);
    const int64_t kept = n / 2 + 1;
    REQUIRE(half.shape() == Shape{2, kept});
    CHECK(half.dtype() == complex64);
    CHECK(distance(values(half), values(slice(fft::fft(x), {0, 0}, {2, kept}))) < tolerance);
    const array back = fft::irfft(half, static_cast<int>(n), -1);
    REQUIRE(back.shape() == x.shape());
    CHECK(back.dtype() == float32);
    CHECK(distance(values(back), values(x)) < 2 * tolerance);
  }
}

TEST_CASE("fft: any axis, several axes, and their order") {
  const array z = sample({3, 4, 5});
  for (const int axis : {0, 1, 2, -2})
    CHECK(distance(values(fft::fft(z, axis)), values(moveaxis(fft::fft(moveaxis(z, axis, -1)), -1, axis))) < tolerance);
  CHECK(distance(values(fft::fftn(z)), values(fft::fft(fft::fft(fft::fft(z, 0), 1), 2))) < tolerance);
  CHECK(distance(values(fft::fft2(z)), values(fft::fft(fft::fft(z, 1), 2))) < tolerance);
  CHECK(distance(values(fft::ifftn(fft::fftn(z))), values(z)) < tolerance);
  CHECK(distance(values(fft::ifft2(fft::fft2(z, {0, 2}), {0, 2})), values(z)) < tolerance);
  const array x = real(z);
  const array whole = fft::fftn(x), half = fft::rfftn(x);
  REQUIRE(half.shape() == Shape{3, 4, 3});
  CHECK(distance(values(half), values(slice(whole, {0, 0, 0}, {3, 4, 3}))) < tolerance);
  CHECK(distance(values(fft::irfftn(half, {3, 4, 5}, {0, 1, 2})), values(x)) < tolerance);
  CHECK(fft::rfft2(x, {2, 0}).shape() == Shape{2, 4, 5});
  CHECK(distance(values(fft::irfft2(fft::rfft2(x, {2, 1}), {5, 4}, {2, 1})), values(x)) < tolerance);
  const array transposed = transpose(sample({6, 5, 4}), {2, 0, 1});  // strides of another order
  CHECK(distance(values(fft::fft(transposed, 1)), values(fft::fft(contiguous(transposed), 1))) == 0);
}

TEST_CASE("fft: axes are cut off and padded, and results are scaled") {
  const array z = sample({2, 6});
  CHECK(distance(values(fft::fft(z, 4, 1)), direct(values(slice(z, {0, 0}, {2, 4})), 4)) < tolerance);
  CHECK(distance(values(fft::fft(z, 9, 1)),
                 direct(values(pad(z, std::vector<int>{1}, Shape{0}, Shape{3}, array(0, complex64))), 9)) < tolerance);
  const array x = real(z);
  CHECK(fft::rfft(x, 9, 1).shape() == Shape{2, 5});
  CHECK(fft::irfft(z).shape() == Shape{2, 10});
  CHECK(fft::irfft(z, 3, 0).shape() == Shape{3, 6});
  const array whole = fft::fftn(z);
  CHECK(distance(values(fft::fftn(z, FFTNorm::Forward) * array(12.0f)), values(whole)) < tolerance);
  CHECK(distance(values(fft::fftn(z, FFTNorm::Ortho) * array(std::sqrt(12.0f))), values(whole)) < tolerance);
  for (const FFTNorm norm : {FFTNorm::Backward, FFTNorm::Ortho, FFTNorm::Forward}) {
    CHECK(distance(values(fft::ifftn(fft::fftn(z, norm), norm)), values(z)) < tolerance);
    CHECK(distance(values(fft::irfftn(fft::rfftn(x, norm), norm)), values(x)) < tolerance);
  }
  CHECK(distance(values(fft::fft(astype(x * 4, int32))), direct(values(astype(x * 4, int32)), 6)) < tolerance);
}

TEST_CASE("fft: frequencies and shifts") {
  CHECK(array_equal(fft::fftfreq(5, 0.5), array({0.0f, 0.4f, 0.8f, -0.8f, -0.4f})).item<bool>());
  CHECK(array_equal(fft::fftfreq(4), array({0.0f, 0.25f, -0.5f, -0.25f})).item<bool>());
  CHECK(array_equal(fft::rfftfreq(4), array({0.0f, 0.25f, 0.5f})).item<bool>());
  CHECK(array_equal(fft::fftshift(arange(5)), array({3, 4, 0, 1, 2})).item<bool>());
  CHECK(array_equal(fft::ifftshift(fft::fftshift(arange(5))), arange(5)).item<bool>());
  const array m = reshape(arange(6), {2, 3});
  CHECK(array_equal(fft::fftshift(m), array({5, 3, 4, 2, 0, 1}, {2, 3})).item<bool>());
  CHECK(array_equal(fft::fftshift(m, {1}), array({2, 0, 1, 5, 3, 4}, {2, 3})).item<bool>());
  CHECK(array_equal(fft::ifftshift(m, {-1}), array({1, 2, 0, 4, 5, 3}, {2, 3})).item<bool>());
}

TEST_CASE("fft: derivatives are transforms again") {
  // Σ |X|² is n Σ x²; of the kept half of a real transform all but the ends count once instead of twice.
  const array x = real(sample({3, 7}));
  const auto energy = [](const array& v) {
    const array z = fft::fft(v);
    return sum(square(real(z)) + square(imag(z)));
  };
  CHECK(allclose(grad(energy)(x), x * 14, 1e-5, 1e-5).item<bool>());
  const array w = real(sample({3, 4}));
  const auto half = [&](const array& v) {
    const array z = fft::rfft(v);
    return sum(real(z) * w + imag(z) * square(w));
  };
  const array slope = grad(half)(x);
  const std::vector<float> got = slope.to_vector<float>();
  const std::vector<float> at = x.to_vector<float>();
  for (const size_t k : {0u, 4u, 13u, 20u}) {  // linear: a step of any length will do
    std::vector<float> moved = at;
    moved[k] += 1;
    const float change = half(array::from_data(moved.data(), {3, 7}, float32)).item<float>() - half(x).item<float>();
    CHECK(got[k] == doctest::Approx(change).epsilon(1e-4));
  }
  const array t = real(sample({3, 7})) * 2;
  const auto both = jvp(
      [](const std::vector<array>& in) {
        return std::vector<array>{fft::irfft(fft::rfft(in[0]) * array(2.0f), 7, -1)};
      },
      {x}, {t});
  CHECK(allclose(both.second[0], t * 2, 1e-5, 1e-5).item<bool>());
}

TEST_CASE("fft: in compiled functions and batches") {
  const array z = sample({4, 3, 6});
  const auto f = [](const array& v) { return fft::fft2(v); };
  CHECK(distance(values(vmap(f)(z)), values(fft::fft2(z))) < tolerance);
  CHECK(distance(values(vmap(f, 2, 0)(moveaxis(z, 0, 2))), values(fft::fft2(z))) < tolerance);
  const auto program = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{fft::irfft(fft::rfft(in[0]) * fft::rfft(in[1]), 8, -1)};
      },
      {});
  const array a = real(sample({5, 8})), b = real(sample({1, 8})) * 0.5f;
  array want = zeros({5, 8});  // a circular convolution
  for (int k = 0; k < 8; ++k) want = want + roll(a, k, 1) * slice(b, {0, k}, {1, k + 1});
  for (int run = 0; run < 3; ++run) CHECK(allclose(program({a, b})[0], want, 1e-5, 1e-5).item<bool>());
}

TEST_CASE("fft: nothing to transform, and what is refused") {
  CHECK(fft::fft(zeros({0, 4}, complex64)).shape() == Shape{0, 4});
  CHECK(fft::rfft(zeros({3, 0, 4})).shape() == Shape{3, 0, 3});
  CHECK_THROWS_WITH_AS(fft::fft(zeros({3, 0})),
                       doctest::Contains("[fftn] axis 1 of float32 (3,0) would have 0 elements"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(fft::irfft(zeros({3, 1}, complex64)), doctest::Contains("would have 0 elements"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(fft::fftn(zeros({3, 4}), {2}, {0, 1}), doctest::Contains("1 lengths for 2 axes"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(fft::fftn(zeros({3, 4}), std::vector<int>{0, -2}), doctest::Contains("given twice"),
                       std::invalid_argument);
  CHECK_THROWS_AS(fft::fft(zeros({3, 4}), 2), std::out_of_range);
  CHECK_THROWS_AS(fft::fft(array(1.0f)), std::out_of_range);
  CHECK_THROWS_AS(fft::fft(zeros({3, 4}), -1, 0), std::invalid_argument);
}

TEST_CASE("a NaN anywhere makes every number of a transform NaN, in one of its parts at least") {
  if (test::on_gpu()) {
    MESSAGE("skipped: how cuFFT leaves out factors of 0 is not known");
    return;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {1, 2, 8, 12, 31, 64, 97, 1000}) {
    CAPTURE(n);
    for (const int64_t position : {int64_t{0}, n / 3, n - 1})
      for (const bool imaginary : {false, true}) {
        std::vector<C> x = numbers(2 * n);
        x[static_cast<size_t>(position)] = imaginary ? C(1, nan) : C(nan, 1);  // in the first of two rows
        for (const bool inverse : {false, true}) {
          const std::vector<Z> y = values(inverse ? fft::ifft(of(x, {2, n})) : fft::fft(of(x, {2, n})));
          for (size_t k = 0; k < y.size(); ++k)
            CHECK((std::isnan(y[k].real()) || std::isnan(y[k].imag())) == (k < static_cast<size_t>(n)));
        }
      }
    std::vector<float> x(static_cast<size_t>(n), 0.5f);
    x[static_cast<size_t>(n / 2)] = nan;
    for (const Z& z : values(fft::rfft(array::from_data(x.data(), {n}, float32))))
      CHECK((std::isnan(z.real()) || std::isnan(z.imag())));
  }
}
