// complex64: arithmetic and functions against std::complex, movement and indexing, products, reductions, and what is
// refused.
#include <doctest/doctest.h>

#include <complex>
#include <functional>

#include "weft/weft.h"

using namespace weft;
using C = std::complex<float>;
using Z = std::complex<double>;

namespace {

array of(const std::vector<C>& values, Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return array::from_data(values.data(), shape, complex64);
}

std::vector<C> values(const array& a) {
  const C* data = a.data<C>();
  return {data, data + a.size()};
}

std::vector<C> sample() {
  std::vector<C> out;
  for (float re : {-2.5f, -1.0f, -0.25f, 0.0f, 0.5f, 1.0f, 3.0f})
    for (float im : {-3.0f, -1.0f, -0.125f, 0.0f, 0.75f, 1.0f, 2.0f}) out.emplace_back(re, im);
  return out;
}

void check_close(const std::vector<C>& got, const std::vector<Z>& expected, double tolerance = 2e-6) {
  REQUIRE(got.size() == expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    if (!std::isfinite(expected[k].real()) || !std::isfinite(expected[k].imag())) continue;
    CAPTURE(k);
    CAPTURE(got[k]);
    CAPTURE(expected[k]);
    CHECK(std::abs(Z(got[k]) - expected[k]) <= tolerance * std::max(1.0, std::abs(expected[k])));
  }
}

}  // namespace

TEST_CASE("complex functions agree with std::complex") {
  const std::vector<C> x = sample();
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
      {"cos", cos, [](const Z& z) { return std::cos(z); }},
      {"tan", tan, [](const Z& z) { return std::tan(z); }},
      {"sinh", sinh, [](const Z& z) { return std::sinh(z); }},
      {"cosh", cosh, [](const Z& z) { return std::cosh(z); }},
      {"tanh", tanh, [](const Z& z) { return std::tanh(z); }},
      {"square", square, [](const Z& z) { return z * z; }},
      {"negative", negative, [](const Z& z) { return -z; }},
      {"conjugate", conjugate, [](const Z& z) { return std::conj(z); }},
      {"reciprocal", reciprocal, [](const Z& z) { return 1.0 / z; }},
      {"rsqrt", rsqrt, [](const Z& z) { return 1.0 / std::sqrt(z); }},
      {"log10", log10, [](const Z& z) { return std::log10(z); }},
      {"log1p", log1p, [](const Z& z) { return std::log(1.0 + z); }},
      {"arcsin", arcsin, [](const Z& z) { return std::asin(z); }},
      {"arccos", arccos, [](const Z& z) { return std::acos(z); }},
      {"arctan", arctan, [](const Z& z) { return std::atan(z); }},
      {"arcsinh", arcsinh, [](const Z& z) { return std::asinh(z); }},
      {"arccosh", arccosh, [](const Z& z) { return std::acosh(z); }},
      {"arctanh", arctanh, [](const Z& z) { return std::atanh(z); }},
  };
  for (const Function& f : functions) {
    CAPTURE(f.name);
    std::vector<Z> expected;
    for (const C& z : x) expected.push_back(f.standard(Z(z)));
    const array y = f.weft(of(x), {});
    CHECK(y.dtype() == complex64);
    check_close(values(y), expected, 4e-6);
  }
  const auto size = abs(of(x)).to_vector<float>(), re = real(of(x)).to_vector<float>(),
             im = imag(of(x)).to_vector<float>();
  for (size_t k = 0; k < x.size(); ++k) {
    CHECK(std::abs(size[k] - std::abs(x[k])) <= 3e-7f * std::abs(x[k]));
    CHECK(re[k] == x[k].real());
    CHECK(im[k] == x[k].imag());
  }
  CHECK(abs(of({{3e30f, 4e30f}, {3e-30f, 4e-30f}, {0, 0}, {INFINITY, 1}})).to_vector<float>()[0] ==
        doctest::Approx(5e30f));
  CHECK(abs(of({{3e-30f, 4e-30f}})).to_vector<float>()[0] == doctest::Approx(5e-30f));
  CHECK(std::isinf(abs(of({{INFINITY, NAN}, {1, -INFINITY}})).to_vector<float>()[1]));
}

TEST_CASE("branch cuts: the sign of a zero says on which side") {
  const C above(-4, 0.0f), below(-4, -0.0f);
  check_close(values(sqrt(of({above, below}))), {{0, 2}, {0, -2}});
  check_close(values(log(of({above, below}))), {{std::log(4.0), M_PI}, {std::log(4.0), -M_PI}});
}

TEST_CASE("complex arithmetic, mixed with real numbers") {
  const std::vector<C> x = sample();
  std::vector<C> y(x.rbegin(), x.rend());
  for (C& z : y) z += C(0.3f, -0.4f);
  const auto both = [&](array (*op)(const array&, const array&, StreamOrDevice), Z (*standard)(const Z&, const Z&)) {
    std::vector<Z> expected;
    for (size_t k = 0; k < x.size(); ++k) expected.push_back(standard(Z(x[k]), Z(y[k])));
    check_close(values(op(of(x), of(y), {})), expected, 6e-6);
  };
  both(add, [](const Z& a, const Z& b) { return a + b; });
  both(subtract, [](const Z& a, const Z& b) { return a - b; });
  both(multiply, [](const Z& a, const Z& b) { return a * b; });
  both(divide, [](const Z& a, const Z& b) { return a / b; });
  std::vector<Z> powers;
  std::vector<C> base, exponent;
  for (size_t k = 0; k < x.size(); ++k) {
    if (std::abs(x[k]) < 0.2f || std::abs(y[k]) > 3) continue;
    base.push_back(x[k]);
    exponent.push_back(y[k]);
    powers.push_back(std::pow(Z(x[k]), Z(y[k])));
  }
  check_close(values(power(of(base), of(exponent))), powers, 3e-5);
  CHECK((of({{1, 2}}) + array(3.0f)).dtype() == complex64);
  CHECK(values(of({{1, 2}}) * array(3))[0] == C(3, 6));
  CHECK(equal(of({{1, 2}, {1, 3}}), of({{1, 2}, {1, 2}})).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(not_equal(of({{1, 2}, {1, 3}}), of({{1, 2}, {1, 2}})).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(values(power(of({{0, 0}, {0, 0}}), of({{0, 0}, {2, 1}}))) == std::vector<C>{{1, 0}, {0, 0}});
  CHECK(astype(of({{1.5f, 2}}), float32).item<float>() == 1.5f);
  CHECK(astype(of({{0, 2}, {0, 0}}), bool_).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(values(astype(array({1, 2}), complex64)) == std::vector<C>{{1, 0}, {2, 0}});
  CHECK(array(C(1, -2)).item<C>() == C(1, -2));
  CHECK_THROWS_AS(floor(of({{1, 2}})).eval(), std::invalid_argument);
}

TEST_CASE("complex movement, indexing, reductions and products") {
  std::vector<C> x;
  for (int k = 0; k < 24; ++k) x.emplace_back(static_cast<float>(k % 7) - 3, static_cast<float>(k % 5) - 2);
  const array a = of(x, {4, 6});
  const auto at = [&](int i, int j) { return x[static_cast<size_t>(i * 6 + j)]; };
  CHECK(values(transpose(a))[4] == at(0, 1));
  CHECK(values(slice(a, {3, 5}, {-5, -7}, {-1, -2})) == std::vector<C>{at(3, 5), at(3, 3), at(3, 1), at(2, 5), at(2, 3),
                                                                       at(2, 1), at(1, 5), at(1, 3), at(1, 1), at(0, 5),
                                                                       at(0, 3), at(0, 1)});
  CHECK(values(take(a, array({2, 0}), 0))[7] == at(0, 1));
  CHECK(values(concatenate({a, a}, 1))[6] == at(0, 0));
  CHECK(values(slice_update(a, array(C(9, 9)), Shape{1, 1}, Shape{2, 2}))[7] == C(9, 9));
  CHECK(values(where(array({true, false, true, false, true, false}), a, zeros_like(a)))[1] == C(0, 0));

  C total = 0, product = 1;
  for (const C& z : x) total += z;
  for (int k = 1; k < 6; ++k) product *= C(0.5f * static_cast<float>(k), 1);
  CHECK(sum(a).item<C>() == total);
  check_close({mean(a).item<C>()}, {Z(total) / 24.0});
  std::vector<C> factors;
  for (int k = 1; k < 6; ++k) factors.emplace_back(0.5f * static_cast<float>(k), 1);
  check_close({prod(of(factors)).item<C>()}, {Z(product)});

  const array m = matmul(a, conjugate(transpose(a)));
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      Z expected = 0;
      for (int k = 0; k < 6; ++k) expected += Z(at(i, k)) * std::conj(Z(at(j, k)));
      CHECK(std::abs(Z(values(m)[static_cast<size_t>(i * 4 + j)]) - expected) < 1e-4);
    }
}

TEST_CASE("float8 bits") {
  const array x = {0.0f, 1.0f, -448.0f, 1e6f, 0.0175f};
  CHECK(to_fp8(x).dtype() == uint8);
  CHECK(from_fp8(to_fp8(x), float32).to_vector<float>() == std::vector<float>{0, 1, -448, 448, 0.017578125f});
  CHECK(astype(x, float8_e5m2).itemsize() == 1);
  CHECK((astype(x, float8_e5m2) + astype(x, float8_e5m2)).dtype() == float8_e5m2);
}
