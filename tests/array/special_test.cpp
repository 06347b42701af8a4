// Special functions and reducers that no other suite computes: values and slopes to 17 digits by mpmath.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

array doubles(const std::vector<double>& v) {
  return array::from_data(v.data(), {static_cast<int>(v.size())}, float64);
}

void close(const array& got, const std::vector<double>& expected, double relative) {
  const std::vector<double> values = astype(got, float64).to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (size_t k = 0; k < values.size(); ++k) {
    CAPTURE(k);
    CAPTURE(values[k]);
    CHECK(std::fabs(values[k] - expected[k]) <= relative * std::fabs(expected[k]));
  }
}

/// The slope of each element's function at each element.
array slopes(array (*f)(const array&, StreamOrDevice), const array& x) {
  return grad([&](const array& v) { return sum(f(v, {})); })(x);
}

}  // namespace

TEST_CASE("log_ndtr and its slope, in both tails") {
  const std::vector<double> x{-1e3, -30, -5.5, -1, 0, 0.5, 3, 8},
      y{-500007.82669481218,  -454.3212439563432,   -17.779376352625261,    -1.8410216450092635,
        -0.69314718055994531, -0.36894641528865639, -0.0013508099647481938, -6.2209605742717861e-16},
      slope{1000.001,       30.0332596674,  5.6714103139,     1.52513527616,
            0.797884560803, 0.509160433837, 0.00443783904213, 5.05227108354e-15};
  close(log_ndtr(doubles(x)), y, 2e-15);
  close(log_ndtr(astype(doubles(x), float32)), y, 1e-6);
  close(slopes(log_ndtr, doubles(x)), slope, 1e-9);
  close(slopes(log_ndtr, astype(doubles(x), float32)), slope, 1e-5);
  CHECK(log_ndtr(array(-infinity)).item<float>() == -infinity);
  CHECK(log_ndtr(array(infinity)).item<float>() == 0);
  CHECK(std::isnan(log_ndtr(array(std::nan(""))).item<float>()));
  CHECK(log_ndtr(array(0)).dtype() == float32);
}

TEST_CASE("i0e and i1e, which are in each other's slope") {
  const std::vector<double> x{0, 0.5, -1, 7.9, 8.1, -20, 1e4},
      y0{1,
         0.64503527044915007,
         0.46575960759364044,
         0.14436986414104192,
         0.14251180948829528,
         0.089780311884826022,
         0.0039894726746047321},
      y1{0,
         0.1564208031848717,
         -0.20791041534970845,
         0.13489649943989377,
         0.13340068832583663,
         -0.087506222183288665,
         0.0039892731959836623};
  close(i0e(doubles(x)), y0, 2e-15);
  close(i1e(doubles(x)), y1, 2e-15);
  close(i0e(astype(doubles(x), float32)), y0, 5e-7);
  close(i1e(astype(doubles(x), float32)), y1, 5e-7);
  std::vector<double> slope0, slope1;
  for (size_t k = 0; k < x.size(); ++k) {
    const double sign = x[k] < 0 ? -1 : x[k] > 0 ? 1 : 0;
    slope0.push_back(y1[k] - sign * y0[k]);
    slope1.push_back(y0[k] - sign * y1[k] - (x[k] == 0 ? 0.5 : y1[k] / x[k]));
  }
  close(slopes(i0e, doubles(x)), slope0, 1e-10);
  close(slopes(i1e, doubles(x)), slope1, 1e-10);
  CHECK(i0e(array(infinity)).item<float>() == 0);
  CHECK(std::signbit(i1e(array(-0.0f)).item<float>()));
}

TEST_CASE("xlogy, which is 0 where its first argument is") {
  const array x = doubles({2, 0, 0, 0, -1.5}), y = doubles({3, 0, 5, -1, 0.25});
  close(xlogy(x, y), {2 * std::log(3.0), 0, 0, 0, -1.5 * std::log(0.25)}, 1e-15);
  CHECK(std::isnan(xlogy(array(0.0f), array(std::nan(""))).item<float>()));
  CHECK(xlogy(array(1.0f), array(0.0f)).item<float>() == -infinity);
  CHECK(xlogy(array({1, 2, 3}), array(2)).dtype() == float32);
  const auto slopes = grad([](const std::vector<array>& in) { return sum(xlogy(in[0], in[1])); }, {0, 1})({x, y});
  close(slopes[0], {std::log(3.0), 0, std::log(5.0), 0, std::log(0.25)}, 1e-15);
  close(slopes[1], {2.0 / 3, 0, 0, 0, -6}, 1e-15);
}

TEST_CASE("reduce_xor of integers and bools") {
  const array a = array({0x0F, 0x35, 0x7001, -1, 5, 6}, {2, 3});
  CHECK(reduce_xor(a).item<int>() == (0x0F ^ 0x35 ^ 0x7001 ^ -1 ^ 5 ^ 6));
  CHECK(reduce_xor(a, 0).to_vector<int>() == std::vector<int>{0x0F ^ -1, 0x35 ^ 5, 0x7001 ^ 6});
  CHECK(reduce_xor(a, std::vector<int>{1}, true).shape() == Shape{2, 1});
  CHECK(reduce_xor(astype(a, uint8), -1).dtype() == uint8);
  CHECK(reduce_xor(array({true, true, true, false})).item<bool>());
  CHECK(reduce_xor(zeros({0}, int32)).item<int>() == 0);
  const array many = bitwise_and(arange(100'003), array(0xFFFF));
  int expected = 0;
  for (int k = 0; k < 100'003; ++k) expected ^= k & 0xFFFF;
  CHECK(reduce_xor(many).item<int>() == expected);
  CHECK_THROWS_AS(reduce_xor(array({1.0f, 2.0f})), std::invalid_argument);
}
