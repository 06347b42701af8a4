// complex128 from C++: construction, access, copies between layouts, printing, functions and products against
// std::complex<double>, with the dtypes of results.
#include <doctest/doctest.h>

#include <complex>
#include <sstream>

#include "weft/weft.h"

using namespace weft;
using Z = std::complex<double>;

namespace {

array of(const std::vector<Z>& values, Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return array(values.begin(), shape, complex128);
}
std::vector<Z> values(const array& a) { return {a.data<Z>(), a.data<Z>() + a.size()}; }

std::vector<Z> sample() {
  std::vector<Z> out;
  for (double re : {-2.5, -1.0, -0.1, 0.0, 0.7, 1.0, 3.0})
    for (double im : {-3.0, -1.0, -0.3, 0.0, 0.2, 1.0, 2.0}) out.emplace_back(re, im);
  return out;
}

void check_close(const array& got, const std::vector<Z>& expected, double tolerance = 1e-13) {
  CHECK(got.dtype() == complex128);
  REQUIRE(got.size() == expected.size());
  const std::vector<Z> all = values(got);
  for (size_t k = 0; k < all.size(); ++k) {
    if (!std::isfinite(expected[k].real()) || !std::isfinite(expected[k].imag())) continue;
    CAPTURE(all[k]);
    CAPTURE(expected[k]);
    CHECK(std::abs(all[k] - expected[k]) <= tolerance * std::max(1.0, std::abs(expected[k])));
  }
}

std::string printed(const array& a) {
  std::ostringstream out;
  out << a;
  return out.str();
}

}  // namespace

TEST_CASE("complex128: numbers in and out") {
  const array z(complex128_t{0.1, -1e-300});
  CHECK(z.dtype() == complex128);
  CHECK(z.itemsize() == 16);
  CHECK(z.item<complex128_t>() == complex128_t{0.1, -1e-300});
  CHECK(z.item<Z>() == Z(0.1, -1e-300));
  CHECK(z.item<complex64_t>() == complex64_t{0.1f, 0});
  CHECK(array(complex64_t{1, 2}).item<complex128_t>() == complex128_t{1, 2});
  CHECK(array(0.1, float64).item<complex128_t>() == 0.1);
  CHECK(array(Z(0.1, 2), complex64).dtype() == complex64);
  CHECK(array({Z(0.1, 2), Z(3, 4)}).dtype() == complex128);
  CHECK(array(0.1, complex128).item<Z>() == 0.1);  // not by float32
  CHECK(full({2}, array(0.1, float64), complex128).data<Z>()[1] == 0.1);
  CHECK(values(array({1.5f, 2.5f}, complex128)) == std::vector<Z>{1.5, 2.5});
  CHECK(array({Z(0, 0), Z(0, 1e-300)}, bool_).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(array({Z(0.1, 5)}, float64).item<double>() == 0.1);
  CHECK(zeros({}, complex128).item<Z>() == 0.0);
  CHECK(zeros({}, complex64).item<complex64_t>() == 0);
  CHECK(printed(of({{1, -2}, {0.5, 0}})) == "array([1-2j, 0.5+0j], dtype=complex128)");
  CHECK_THROWS_AS(z.data<complex64_t>(), std::invalid_argument);
  CHECK_THROWS_AS(z.to_vector<double>(), std::invalid_argument);
}

TEST_CASE("complex128: memory that is aligned for the parts alone is shared") {
  alignas(16) double memory[5] = {0, 1, 2, 3, 4};
  bool released = false;
  {
    const array z(memory + 1, {2}, complex128, [&](void*) { released = true; });
    CHECK(z.raw_data() == memory + 1);
    CHECK(values(z * array(2)) == std::vector<Z>{{2, 4}, {6, 8}});
  }
  CHECK(released);
}

TEST_CASE("complex128: layouts") {
  const std::vector<Z> x = sample();
  const array z = of(x, {7, 7}), t = transpose(z);
  eval(t);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 7; ++j) CHECK(values(t)[static_cast<size_t>(7 * i + j)] == x[static_cast<size_t>(7 * j + i)]);
  CHECK(values(slice(z, {0, 6}, {7, -8}, {3, -3})) ==
        std::vector<Z>{x[6], x[3], x[0], x[27], x[24], x[21], x[48], x[45], x[42]});
  CHECK(values(take(z, array({6, 0}), 0))[7] == x[0]);
  CHECK(values(view(view(z, float64), complex128)) == x);
  CHECK(view(z, complex64).shape() == Shape{7, 14});
  CHECK(concatenate({z, astype(ones({1, 7}), complex64)}, 0).dtype() == complex128);
}

TEST_CASE("complex128: functions agree with std::complex") {
  struct Function {
    const char* name;
    array (*weft)(const array&, StreamOrDevice);
    Z (*standard)(const Z&);
  };
  const Function functions[] = {
      {"exp", exp, [](const Z& z) { return std::exp(z); }},
      {"log", log, [](const Z& z) { return std::log(z); }},
      {"sqrt", sqrt, [](const Z& z) { return std::sqrt(z); }},
      {"sin", sin, [](const Z& z) { return std::sin(z); }},
      {"tan", tan, [](const Z& z) { return std::tan(z); }},
      {"cosh", cosh, [](const Z& z) { return std::cosh(z); }},
      {"tanh", tanh, [](const Z& z) { return std::tanh(z); }},
      {"reciprocal", reciprocal, [](const Z& z) { return 1.0 / z; }},
      {"arcsin", arcsin, [](const Z& z) { return std::asin(z); }},
      {"arccos", arccos, [](const Z& z) { return std::acos(z); }},
      {"arctanh", arctanh, [](const Z& z) { return std::atanh(z); }},
  };
  const std::vector<Z> x = sample();
  for (const Function& f : functions) {
    CAPTURE(f.name);
    std::vector<Z> expected;
    for (const Z& z : x) expected.push_back(f.standard(z));
    check_close(f.weft(of(x), {}), expected);
  }
  CHECK(abs(of({{3e-300, 4e-300}})).item<double>() == doctest::Approx(5e-300).epsilon(1e-14));
  check_close(sqrt(of({{-4, 0.0}, {-4, -0.0}})), {{0, 2}, {0, -2}});  // the sign of a zero says on which side
  check_close(exp(of({{720, std::acos(1e-20)}})),
              {Z(std::exp(700.0) * std::exp(20.0) * std::cos(std::acos(1e-20)), INFINITY)});
}

TEST_CASE("complex128: the dtype of results") {
  const array z = of({{1, 2}, {3, 4}}), x = array({0.1, 0.2}, float64),
              c = array({complex64_t{1, 2}, complex64_t{3, 4}});
  CHECK((c * x).dtype() == complex128);
  CHECK((c * astype(x, int64)).dtype() == complex64);
  CHECK((c * array(2.0)).dtype() == complex64);
  check_close(c * x, {Z(1, 2) * 0.1, Z(3, 4) * 0.2});
  for (const array& y : {abs(z), real(z), imag(z), var(z)}) CHECK(y.dtype() == float64);
  CHECK(argmax(z).dtype() == uint32);
  check_close(matmul(reshape(z, {1, 2}), reshape(z, {2, 1})), {Z(1, 2) * Z(1, 2) + Z(3, 4) * Z(3, 4)});
  check_close(fft::fft(x), {0.30000000000000004, -0.1});
  CHECK(fft::irfft(fft::rfft(x)).dtype() == float64);
  CHECK(random::normal({3}, complex128, 0, 1, random::key(1)).dtype() == complex128);
}
