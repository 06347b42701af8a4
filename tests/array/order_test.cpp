// Sorting, searching, medians, cumulative operations and scatters of the array API, against values worked out by hand
// or by the standard library.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "weft/weft.h"

using namespace weft;

namespace {

using Floats = std::vector<float>;
using Words = std::vector<uint32_t>;

array vec(std::initializer_list<float> values) { return array(values); }
Floats floats(const array& a) { return a.to_vector<float>(); }
Words words(const array& a) { return a.to_vector<uint32_t>(); }

}  // namespace

TEST_CASE("sort and argsort: stable, NaN last, any axis, any dtype") {
  const float inf = INFINITY;
  const array a = vec({3, NAN, -1, -0.f, 0, inf, -inf, 3});
  CHECK(words(argsort(a)) == Words{6, 2, 3, 4, 0, 7, 5, 1});
  const Floats sorted = floats(sort(a));
  CHECK(Floats(sorted.begin(), sorted.begin() + 7) == Floats{-inf, -1, 0, 0, 3, 3, inf});
  CHECK(std::signbit(sorted[2]));
  CHECK_FALSE(std::signbit(sorted[3]));
  CHECK(std::isnan(sorted[7]));
  const array m = reshape(vec({3, 1, 2, 9, 7, 8}), {2, 3});
  CHECK(floats(sort(m, 1)) == Floats{1, 2, 3, 7, 8, 9});
  CHECK(floats(sort(m, 0)) == Floats{3, 1, 2, 9, 7, 8});
  CHECK(floats(sort(m, -1)) == floats(sort(m, 1)));
  CHECK(floats(sort(m)) == Floats{1, 2, 3, 7, 8, 9});
  CHECK(sort(m).shape() == Shape{6});
  CHECK(sort(array(4.f)).item<float>() == 4);
  CHECK(argsort(m, 1).dtype() == uint32);
  CHECK_THROWS_WITH_AS(sort(m, 2), doctest::Contains("[sort]"), std::out_of_range);
  for (Dtype t :
       {bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64}) {
    CAPTURE(dtype_name(t));
    const array v = astype(vec({1, 0, 1, 0, 0, 1}), t);
    CHECK(floats(astype(sort(v), float32)) == Floats{0, 0, 0, 1, 1, 1});
    CHECK(words(argsort(v)) == Words{1, 3, 4, 0, 2, 5});
  }
  CHECK(astype(sort(vec({5, -7, 0, -1})), float32).to_vector<float>() == Floats{-7, -1, 0, 5});
}

TEST_CASE("long rows and many of them sort as the standard library does") {
  std::mt19937 engine(5);
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 400000}, {300, 7}, {5, 3000}, {1, 1}, {2, 1024}}) {
    std::vector<int32_t> data(static_cast<size_t>(rows * n));
    for (int32_t& v : data) v = static_cast<int32_t>(engine() % 1000000) - 500000;
    const array a = array::from_data(data.data(), {rows, n}, int32);
    std::vector<int32_t> expected = data, columns(data.size());
    for (int64_t r = 0; r < rows; ++r) std::sort(expected.begin() + r * n, expected.begin() + (r + 1) * n);
    CHECK(sort(a, 1).to_vector<int32_t>() == expected);
    const std::vector<uint32_t> order = words(argsort(a, 1));
    bool stable = true;
    for (size_t k = 1; k < order.size(); ++k) {
      if (static_cast<int64_t>(k) % n == 0) continue;
      const size_t row = k / static_cast<size_t>(n) * static_cast<size_t>(n);
      const int32_t x = data[row + order[k - 1]], y = data[row + order[k]];
      stable = stable && (x < y || (x == y && order[k - 1] < order[k]));
    }
    CHECK(stable);
    CHECK(transpose(sort(transpose(a), 0)).to_vector<int32_t>() == expected);
  }
}

TEST_CASE("partition, top k, median, searchsorted") {
  const array a = reshape(vec({5, 1, 4, 2, 3, 0}), {2, 3});
  CHECK(floats(partition(a, 1, 1)) == Floats{1, 4, 5, 0, 2, 3});
  CHECK(words(argpartition(a, -1, 1)) == Words{1, 2, 0, 2, 0, 1});
  CHECK_THROWS_AS(partition(a, 3, 1), std::invalid_argument);
  CHECK(floats(topk(a, 2, 1)) == Floats{4, 5, 2, 3});
  CHECK(floats(topk(a, 2)) == Floats{4, 5});
  CHECK(topk(a, 0, 1).shape() == Shape{2, 0});
  CHECK_THROWS_AS(topk(a, 4, 1), std::invalid_argument);
  CHECK(median(a).item<float>() == 2.5f);
  CHECK(floats(median(a, 1)) == Floats{4, 2});
  CHECK(median(a, 0, true).shape() == Shape{1, 3});
  CHECK(floats(median(astype(a, int32), std::vector<int>{1})) == Floats{4, 2});
  CHECK(std::isnan(median(vec({1, NAN, 2})).item<float>()));
  const array sorted = vec({1, 2, 2, 4}), v = reshape(vec({0, 2, 3, 5, NAN, 1}), {2, 3});
  CHECK(words(searchsorted(sorted, v)) == Words{0, 1, 3, 4, 4, 0});
  CHECK(words(searchsorted(sorted, v, "right")) == Words{0, 3, 3, 4, 4, 1});
  CHECK(words(searchsorted(sorted, v, "left")) == words(searchsorted(sorted, v)));
  CHECK_THROWS_AS(searchsorted(sorted, v, "middle"), std::invalid_argument);
  CHECK(words(searchsorted(zeros({0}), v)) == Words(6, 0));
  CHECK(searchsorted(sorted, v).shape() == Shape{2, 3});
}

TEST_CASE("gradients go back to where elements stood") {
  const array a = vec({3, 1, 2}), w = vec({10, 20, 30});
  CHECK(floats(grad([&](const array& x) { return sum(sort(x) * w); })(a)) == Floats{30, 10, 20});
  CHECK(floats(grad([&](const array& x) { return sum(topk(x, 1) * 7); })(a)) == Floats{7, 0, 0});
  CHECK(floats(grad([&](const array& x) { return sum(cumsum(x, 0) * w); })(a)) == Floats{60, 50, 30});
  CHECK(floats(grad([&](const array& x) { return sum(cumprod(x, 0) * w); })(vec({2, 0, 5}))) == Floats{10, 340, 0});
  CHECK(floats(grad([&](const array& x) { return sum(cummax(x, 0) * w); })(vec({1, 3, 2}))) == Floats{10, 50, 0});
}

TEST_CASE("cumulative operations") {
  const array a = reshape(vec({1, 2, 3, 4, 5, 6}), {2, 3});
  CHECK(floats(cumsum(a, 1)) == Floats{1, 3, 6, 4, 9, 15});
  CHECK(floats(cumsum(a, 0)) == Floats{1, 2, 3, 5, 7, 9});
  CHECK(floats(cumsum(a)) == Floats{1, 3, 6, 10, 15, 21});
  CHECK(floats(cumsum(a, 1, true)) == Floats{6, 5, 3, 15, 11, 6});
  CHECK(floats(cumsum(a, 1, false, false)) == Floats{0, 1, 3, 0, 4, 9});
  CHECK(floats(cumsum(a, 1, true, false)) == Floats{5, 3, 0, 11, 6, 0});
  CHECK(floats(cumprod(a, -1)) == Floats{1, 2, 6, 4, 20, 120});
  CHECK(floats(cummax(vec({1, 3, 2, NAN, 9}), 0))[2] == 3);
  CHECK(std::isnan(floats(cummax(vec({1, 3, 2, NAN, 9}), 0))[4]));
  CHECK(floats(cummin(vec({3, 1, 2}), 0, false, false)) == Floats{INFINITY, 3, 1});
  CHECK(cumsum(astype(vec({1, 0, 1}), bool_)).dtype() == int32);
  CHECK(cummax(astype(vec({0, 1, 0}), bool_)).dtype() == bool_);
  const Floats logs = floats(logcumsumexp(vec({1000, 1000, 0}), 0));
  CHECK(logs[0] == 1000);
  CHECK(logs[1] == doctest::Approx(1000 + std::log(2.0)));
  CHECK(cumsum(zeros({0, 3}), 0).shape() == Shape{0, 3});
  CHECK_THROWS_WITH_AS(cumsum(a, 2), doctest::Contains("[cumsum]"), std::out_of_range);
  CHECK(floats(diff(vec({1, 4, 9, 16}))) == Floats{3, 5, 7});
  CHECK(floats(diff(vec({1, 4, 9, 16}), 2)) == Floats{2, 2});
  CHECK(floats(diff(a, 1, 0)) == Floats{3, 3, 3});
}

TEST_CASE("positions of extremes: the first of equals, the first NaN, of every dtype, along any axis or none") {
  for (Dtype t :
       {bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64}) {
    CAPTURE(dtype_name(t));
    const array v = astype(reshape(vec({1, 0, 1, 0, 0, 1}), {2, 3}), t);
    CHECK(words(argmax(v, 1)) == Words{0, 2});
    CHECK(words(argmin(v, 1)) == Words{1, 0});
    CHECK(words(argmax(v, 0)) == Words{0, 0, 0});
    CHECK(argmin(v).item<uint32_t>() == 1);
    CHECK(argmax(v, true).shape() == Shape{1, 1});
    CHECK(argmax(v, 1, true).shape() == Shape{2, 1});
  }
  const array n = vec({1, NAN, 5, NAN, -INFINITY});
  CHECK(argmax(n).item<uint32_t>() == 1);
  CHECK(argmin(n).item<uint32_t>() == 1);
  CHECK(argmax(full({4}, array(-INFINITY))).item<uint32_t>() == 0);
  CHECK(argmin(array(3.f)).item<uint32_t>() == 0);
  CHECK_THROWS_AS(argmax(zeros({0})), std::invalid_argument);
}

TEST_CASE("variances and sums of exponentials over several axes, and of half types") {
  const array a = reshape(vec({1, 2, 3, 4, 5, 6, 7, 9}), {2, 2, 2});
  CHECK(floats(var(a, std::vector<int>{0, 2})) == Floats{4.25f, 5.6875f});
  CHECK(var(a, std::vector<int>{0, 2}, true).shape() == Shape{1, 2, 1});
  CHECK(std::isinf(var(vec({1}), 0, false, 1).item<float>()) == false);
  CHECK(std::isnan(var(vec({1}), 0, false, 1).item<float>()));
  CHECK(weft::std(astype(a, float16)).dtype() == float16);
  // Far from zero: the mean of squares less the square of the mean would have no digit left.
  CHECK(var(vec({10000, 10001, 10002, 10003})).item<float>() == 1.25f);
  CHECK(logsumexp(vec({1000, 1000})).item<float>() == doctest::Approx(1000 + std::log(2.0)));
  CHECK(floats(logsumexp(a, std::vector<int>{0, 1}))[0] ==
        doctest::Approx(std::log(std::exp(1.0) + std::exp(3.0) + std::exp(5.0) + std::exp(7.0))));
  CHECK(logsumexp(vec({-INFINITY, -INFINITY})).item<float>() == -INFINITY);
  CHECK(logsumexp(vec({INFINITY, 1})).item<float>() == INFINITY);
}

TEST_CASE("scatters that combine") {
  const array a = vec({5, 5, 5, 5}), at = array({0, 2, 0, -1}), u = reshape(vec({7, 2, 3, 4}), {4, 1});
  CHECK(floats(scatter_max(a, {at}, u, {0})) == Floats{7, 5, 5, 5});
  CHECK(floats(scatter_min(a, {at}, u, {0})) == Floats{3, 5, 2, 4});
  CHECK(floats(scatter_prod(a, {at}, u, {0})) == Floats{105, 5, 10, 20});
  const auto slope = [&](auto scatters) {
    return floats(
        grad([&](const array& x) { return sum(scatters(a, std::vector<array>{at}, x, std::vector<int>{0})); })(u));
  };
  CHECK(slope([](const auto&... x) { return scatter_max(x...); }) == Floats{1, 0, 0, 0});
  CHECK(slope([](const auto&... x) { return scatter_min(x...); }) == Floats{0, 1, 1, 1});
  CHECK(slope([](const auto&... x) { return scatter_prod(x...); }) == Floats{15, 5, 35, 5});
  CHECK_THROWS_WITH_AS(scatter_max(astype(a, bool_), {at}, u, {0}), doctest::Contains("bools"), std::invalid_argument);
}
