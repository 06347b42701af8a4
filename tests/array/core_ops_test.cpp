// Creation, rearrangement, derived arithmetic and structured products: values as NumPy computes them, and naive loops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "reference.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

using Ints = std::vector<int>;

void near(const array& got, const std::vector<double>& expected, double tolerance = 1e-6) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (size_t k = 0; k < values.size(); ++k) CHECK(values[k] == doctest::Approx(expected[k]).epsilon(tolerance));
}

Ints ints(const array& a) { return a.to_vector<int>(); }
array grid() { return reshape(arange(12), {3, 4}); }

}  // namespace

TEST_CASE("creation") {
  CHECK(arange(3.0).dtype() == float32);
  CHECK(ints(arange(3.0, int8)) == Ints{0, 1, 2});
  near(arange(1.0, 2.0, 0.25), {1, 1.25, 1.5, 1.75});
  near(linspace(0, 1, 4), {0, 1.0 / 3, 2.0 / 3, 1});
  near(linspace(2, -3, 5, false), {2, 1, 0, -1, -2});
  CHECK(linspace(0, 1).size() == 50);
  CHECK(linspace(3, 9, 1).item<float>() == 3);
  CHECK(linspace(3, 9, 0).size() == 0);
  CHECK(linspace(0.1, 0.7, 7, float64).to_vector<double>().back() == 0.7);
  near(hanning(5), {0, 0.5, 1, 0.5, 0});
  near(hamming(5), {0.08, 0.54, 1, 0.54, 0.08});
  near(bartlett(6), {0, 0.4, 0.8, 0.8, 0.4, 0});
  const std::vector<double> window = blackman(7).to_vector<double>();
  CHECK(std::abs(window[0]) < 1e-7);
  CHECK(window[1] == doctest::Approx(0.13));
  CHECK(window[2] == doctest::Approx(0.63));
  CHECK(hanning(1).item<float>() == 1);
  CHECK(hanning(0).size() == 0);
  CHECK(ints(eye(2, 3)) == Ints{1, 0, 0, 0, 1, 0});
  CHECK(identity(2, int32).dtype() == int32);
  CHECK(ints(full_like(grid(), 7)) == Ints(12, 7));
  CHECK(full_like(grid(), 2.5f, float16).dtype() == float16);
  CHECK(zeros_like(grid(), float32).dtype() == float32);
  CHECK(ints(diag(array({1, 2}), 1)) == Ints{0, 1, 0, 0, 0, 2, 0, 0, 0});
  CHECK(ints(diag(array({1, 2}), -1)) == Ints{0, 0, 0, 1, 0, 0, 0, 2, 0});
  CHECK(ints(diag(grid())) == Ints{0, 5, 10});
  const auto xy = meshgrid({arange(2), arange(3)}), ij = meshgrid({arange(2), arange(3)}, true, "ij");
  CHECK(ints(xy[0]) == Ints{0, 1, 0, 1, 0, 1});
  CHECK(ints(xy[1]) == Ints{0, 0, 1, 1, 2, 2});
  CHECK(ij[0].shape() == Shape{2, 1});
  CHECK(ij[1].shape() == Shape{1, 3});
  CHECK_THROWS_AS(meshgrid({arange(2)}, false, "yx"), std::invalid_argument);
  CHECK_THROWS_AS(linspace(0, 1, -1), std::invalid_argument);
}

TEST_CASE("views of other widths are the bytes in memory") {
  const array a({1, 258, -2});
  CHECK(ints(view(a, uint8)) == Ints{1, 0, 0, 0, 2, 1, 0, 0, 254, 255, 255, 255});
  CHECK(ints(view(view(a, uint8), int32)) == ints(a));
  CHECK(ints(view(view(a, int16), int32)) == ints(a));
  CHECK(view(view(array({1.5f, -2.25f}), uint16), float32).to_vector<float>() == std::vector<float>{1.5f, -2.25f});
  CHECK(view(array({1.0f, 2.0f}, float64), uint64).to_vector<uint64_t>()[0] == 0x3ff0000000000000u);
  CHECK(view(view(array({1.0f, -2.0f}, float64), uint32), float64).to_vector<double>() == std::vector<double>{1, -2});
  CHECK(ints(view(array({0, 3, 1}, uint8), bool_)) == Ints{0, 1, 1});
  CHECK_THROWS_AS(view(array({1, 2, 3}, uint8), int16), std::invalid_argument);
  CHECK_THROWS_AS(view(array(1), uint8), std::invalid_argument);
}

TEST_CASE("flip, roll, unstack, at least n dimensions") {
  CHECK(ints(flip(grid(), 1)) == Ints{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8});
  CHECK(ints(flip(arange(4))) == Ints{3, 2, 1, 0});
  CHECK(flip(zeros({2, 0})).size() == 0);
  CHECK(ints(roll(grid(), 5)) == Ints{7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6});
  CHECK(ints(roll(grid(), {1, -1}, std::vector<int>{0, 1})) == Ints{9, 10, 11, 8, 1, 2, 3, 0, 5, 6, 7, 4});
  CHECK(ints(roll(arange(3), -7, 0)) == Ints{1, 2, 0});
  CHECK(ints(roll(grid(), 1, std::vector<int>{0, 1})) == ints(roll(roll(grid(), 1, 0), 1, 1)));
  const auto rows = unstack(grid());
  REQUIRE(rows.size() == 3);
  CHECK(ints(rows[1]) == Ints{4, 5, 6, 7});
  CHECK(unstack(grid(), -1).size() == 4);
  CHECK(atleast_1d(array(1)).shape() == Shape{1});
  CHECK(atleast_2d(arange(3)).shape() == Shape{1, 3});
  CHECK(atleast_3d(arange(3)).shape() == Shape{1, 3, 1});
  CHECK(atleast_3d(grid()).shape() == Shape{3, 4, 1});
  CHECK(atleast_3d(std::vector{grid(), array(2)})[1].shape() == Shape{1, 1, 1});
  CHECK(ints(repeat(grid(), 2)).size() == 24);
  CHECK(split(grid(), Shape{1})[1].shape() == Shape{2, 4});
  for (const int axis : {0, 1, 5, -9})
    CHECK(ints(concatenate({grid()}, axis)) == ints(grid()));  // of one array whatever the axis is, as in MLX
  CHECK_THROWS_AS(concatenate({grid(), grid()}, 2), std::out_of_range);
}

TEST_CASE("padding in every mode") {
  const array a = grid();
  CHECK(ints(pad(a, {{1, 2}, {2, 1}}, array(0), "edge")) == Ints{0, 0, 0, 1, 2,  3,  3,  0, 0, 0, 1, 2,  3,  3,
                                                                 4, 4, 4, 5, 6,  7,  7,  8, 8, 8, 9, 10, 11, 11,
                                                                 8, 8, 8, 9, 10, 11, 11, 8, 8, 8, 9, 10, 11, 11});
  CHECK(ints(pad(a, {{2, 1}, {3, 2}}, array(0), "reflect")) ==
        Ints{11, 10, 9, 8, 9, 10, 11, 10, 9, 7,  6,  5, 4, 5, 6,  7,  6,  5, 3, 2, 1, 0, 1, 2, 3, 2, 1,
             7,  6,  5, 4, 5, 6,  7,  6,  5, 11, 10, 9, 8, 9, 10, 11, 10, 9, 7, 6, 5, 4, 5, 6, 7, 6, 5});
  const Ints symmetric = ints(pad(a, {{2, 1}, {4, 2}}, array(0), "symmetric"));
  CHECK(Ints(symmetric.begin(), symmetric.begin() + 10) == Ints{7, 6, 5, 4, 4, 5, 6, 7, 7, 6});
  CHECK(Ints(symmetric.end() - 10, symmetric.end()) == Ints{11, 10, 9, 8, 8, 9, 10, 11, 11, 10});
  CHECK(ints(pad(arange(2), 1, array(9))) == Ints{9, 0, 1, 9});
  CHECK(ints(pad(arange(2), std::pair{0, 2}, array(9))) == Ints{0, 1, 9, 9});
  CHECK(pad(a, {-1}, Shape{1}, Shape{0}).shape() == Shape{3, 5});
  CHECK_THROWS_AS(pad(a, 1, array(0), "around"), std::invalid_argument);
  CHECK_THROWS_AS(pad(a, {0}, Shape{-1}, Shape{0}), std::invalid_argument);
}

TEST_CASE("mirrored padding of any width: MLX's values") {
  const auto padded = [](int n, int low, int high, const char* mode) {
    return ints(pad(arange(n), std::pair{low, high}, array(0), mode));
  };
  CHECK(padded(1, 2, 3, "reflect") == Ints{0, 0, 0, 0, 0, 0});
  CHECK(padded(1, 3, 1, "symmetric") == Ints{0, 0, 0, 0, 0});
  CHECK(padded(2, 2, 3, "reflect") == Ints{0, 1, 0, 1, 0, 1, 0});
  CHECK(padded(2, 5, 5, "reflect") == Ints{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
  CHECK(padded(2, 7, 2, "symmetric") == Ints{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0});
  CHECK(padded(3, 3, 11, "reflect") == Ints{1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1});
  CHECK(padded(3, 5, 5, "symmetric") == Ints{1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1});
  CHECK(padded(4, 7, 2, "reflect") == Ints{1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1});
  CHECK(padded(4, 3, 11, "symmetric") == Ints{2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1});
  // Every width: the element at a position follows from walking back and forth.
  for (const bool reflect : {false, true})
    for (int n = 1; n <= 5; ++n)
      for (int low = 0; low <= 12; ++low)
        for (const int high : {0, 1, 4, 11}) {
          CAPTURE(n);
          CAPTURE(low);
          CAPTURE(high);
          Ints walk;
          int at = 0, step = 1;
          for (int k = 0; k < low + n + high + 30; ++k) {
            walk.push_back(at);
            if (at + step >= 0 && at + step < n) at += step;
            else step = -step, at += reflect && n > 1 ? step : 0;
          }
          const int period = n == 1 ? 1 : reflect ? 2 * (n - 1) : 2 * n, first = (period - low % period) % period;
          CHECK(padded(n, low, high, reflect ? "reflect" : "symmetric") ==
                Ints(walk.begin() + first, walk.begin() + first + low + n + high));
        }
  CHECK(ints(pad(reshape(arange(6), {2, 3}), {{1, 2}, {4, 1}}, array(0), "reflect")) ==
        Ints{3, 4, 5, 4, 3, 4, 5, 4, 0, 1, 2, 1, 0, 1, 2, 1, 3, 4, 5, 4,
             3, 4, 5, 4, 0, 1, 2, 1, 0, 1, 2, 1, 3, 4, 5, 4, 3, 4, 5, 4});
  CHECK(pad(zeros({0, 3}), {{0, 0}, {4, 1}}, array(0), "symmetric").shape() == Shape{0, 8});
  CHECK_THROWS_AS(padded(0, 1, 0, "reflect"), std::invalid_argument);
  CHECK_THROWS_AS(padded(0, 0, 2, "symmetric"), std::invalid_argument);
  CHECK(padded(0, 0, 0, "symmetric").empty());
  const auto slope = grad([](const array& x) { return sum(pad(x, 5, array(0), "reflect") * arange(13, float32)); });
  CHECK(slope(arange(3, float32)).to_vector<float>() == std::vector<float>{15, 42, 21});
}

TEST_CASE("diagonals and traces") {
  const array b = reshape(arange(24), {2, 3, 4});
  CHECK(ints(diagonal(b, 1, 1, 2)) == Ints{1, 6, 11, 13, 18, 23});
  CHECK(ints(diagonal(b, -1, 2, 0)) == Ints{1, 14, 5, 18, 9, 22});
  CHECK(diagonal(b, 5).size() == 0);
  CHECK(ints(trace(b, 0, 0, 2)) == Ints{13, 21, 29});
  CHECK(trace(eye(4)).item<float>() == 4);
  CHECK_THROWS_AS(diagonal(b, 0, 0, 3), std::out_of_range);
  CHECK_THROWS_AS(diagonal(b, 0, 1, 1), std::invalid_argument);
}

TEST_CASE("as_strided, contiguous, depends, number_of_elements") {
  CHECK(ints(as_strided(grid(), {2, 3}, {5, -1}, 4)) == Ints{4, 3, 2, 9, 8, 7});
  CHECK(ints(as_strided(arange(6), {4, 3}, {1, 1}, 0)) == Ints{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5});
  CHECK_THROWS_AS(as_strided(arange(6), {4, 3}, {1, 2}, 0), std::invalid_argument);
  CHECK_THROWS_AS(as_strided(arange(6), {2}, {-1}, 0), std::invalid_argument);
  CHECK(ints(as_strided(arange(6), {2, 2}, {1, 2, 5}, 0)) ==
        Ints{0, 2, 1, 3});  // strides after those of the shape are not read, as in MLX
  CHECK_THROWS_AS(as_strided(arange(6), {2, 2}, {1}, 0), std::invalid_argument);
  const array t = contiguous(transpose(grid()));
  CHECK(t.strides() == Strides{3, 1});
  CHECK(ints(t) == Ints{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  const array side = arange(3) + 1;
  const auto same = depends({grid() + 1, arange(2)}, {side});
  REQUIRE(same.size() == 2);
  CHECK(ints(same[1]) == Ints{0, 1});
  CHECK(same[0].shape() == Shape{3, 4});
  CHECK(side.is_available());
  CHECK(number_of_elements(grid(), {0, -1}, false).item<int>() == 12);
  CHECK(number_of_elements(grid(), {1}, true, float32).item<float>() == 0.25f);
}

TEST_CASE("derived arithmetic and logic") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const array odd({nan, inf, -inf, 1.5f});
  CHECK(ints(isposinf(odd)) == Ints{0, 1, 0, 0});
  CHECK(ints(isneginf(odd)) == Ints{0, 0, 1, 0});
  CHECK(nan_to_num(odd, 3, 7.0f).to_vector<float>() ==
        std::vector<float>{3, 7, -std::numeric_limits<float>::max(), 1.5f});
  CHECK(nan_to_num(astype(odd, float16)).to_vector<float>() == std::vector<float>{0, 65504, -65504, 1.5f});
  CHECK(nan_to_num(astype(odd, bfloat16)).to_vector<float>()[1] == 0x1.fep127f);
  CHECK(ints(isclose(odd, odd)) == Ints{0, 1, 1, 1});
  CHECK(ints(isclose(odd, odd, 1e-5, 1e-8, true)) == Ints{1, 1, 1, 1});
  CHECK(ints(logical_xor(array({0, 2, 5, 0}), array({0, 0, 1, 3}))) == Ints{0, 1, 0, 1});
  const auto dm = divmod(array({-7, 7, -8}), array({2, -2, 3}));
  CHECK(ints(dm[0]) == Ints{-4, -4, -3});
  CHECK(ints(dm[1]) == Ints{1, -1, 1});
  near(round(array({1234.5678f, -0.05f, 2.5f, 0.125f}), 2), {1234.57, -0.05, 2.5, 0.12});
  CHECK(ints(round(array({1250, -1350, 49, 51, 150}), -2)) == Ints{1200, -1400, 0, 100, 200});
  CHECK(ints(round(array({100, -100}, int8), -3)) == Ints{0, 0});
  near(round(array({1250.0f, -1350.0f}), -2), {1200, -1400});
  near(degrees(array({0.0f, 3.14159265f})), {0, 180});
  near(radians(array(180)), {3.14159265});
  CHECK(ints(~array({0, -1, 5})) == Ints{-1, 0, -6});
  CHECK(ints(~array({1, 0}, bool_)) == Ints{0, 1});
  CHECK(ints(array({1, 2}) << array(3)) == Ints{8, 16});
  CHECK(ints(array({-16, 9}) >> array(2)) == Ints{-4, 2});
  CHECK_THROWS_AS(bitwise_invert(array(1.0f)), std::invalid_argument);
}

TEST_CASE("overloads of reductions") {
  const array a = grid();
  CHECK(ints(all(a, 1)) == Ints{0, 1, 1});
  CHECK(ints(any(a, {0}, true)) == Ints{1, 1, 1, 1});
  CHECK(all(a).item<bool>() == false);
  CHECK(any(a, true).shape() == Shape{1, 1});
  CHECK(ints(count_nonzero(a, 0)) == Ints{2, 3, 3, 3});
  CHECK(count_nonzero(a).item<int>() == 11);
  CHECK(prod(slice(a, {0, 1}, {1, 4})).item<int>() == 6);
  near(var(a, 1, false, 1), {5.0 / 3, 5.0 / 3, 5.0 / 3});
  CHECK(var(a).item<float>() == doctest::Approx(143.0 / 12));
  CHECK(weft::std(a).item<float>() == doctest::Approx(std::sqrt(143.0 / 12)));
  near(weft::std(a, 0), {3.26598632, 3.26598632, 3.26598632, 3.26598632});
  CHECK(logsumexp(astype(a, float32)).item<float>() == doctest::Approx(11.458669));
  CHECK(sum(softmax(astype(a, float32))).item<float>() == doctest::Approx(1));
  CHECK(softmax(astype(a, float16), true).dtype() == float16);
}

TEST_CASE("taking and putting along an axis, and slices at computed places") {
  const array a = grid();
  CHECK(ints(take(a, -1, 1)) == Ints{3, 7, 11});
  CHECK(take(a, 5).item<int>() == 5);
  CHECK_THROWS_AS(take(a, 4, 1), std::invalid_argument);
  CHECK(ints(slice(a, array({1, 2}), {0, 1}, {2, 2})) == Ints{6, 7, 10, 11});
  CHECK(ints(slice(a, array({9}), {0}, {1, 4})) == Ints{8, 9, 10, 11});  // moved inside
  CHECK(ints(put_along_axis(a, array({1, 0, 3}, {3, 1}), array(-5), 1)) ==
        Ints{0, -5, 2, 3, -5, 5, 6, 7, 8, 9, 10, -5});
  CHECK(ints(put_along_axis(a, array({2, 0}, {2, 1}), array({-1, -2}, {2, 1}), 0)) ==
        Ints{-2, -2, -2, -2, 4, 5, 6, 7, -1, -1, -1, -1});
  CHECK(ints(scatter_add_axis(a, array({0, 0, -1}, {1, 3}), array({10, 20, 30}), 1)) ==
        Ints{30, 1, 2, 33, 34, 5, 6, 37, 38, 9, 10, 41});
  CHECK(ints(gather(a, array({2, 0}), 0, {1, 4})) == Ints{8, 9, 10, 11, 0, 1, 2, 3});
  CHECK(ints(scatter(a, array({1}), array({7, 7, 7, 7}, {1, 1, 4}), 0)) == Ints{0, 1, 2, 3, 7, 7, 7, 7, 8, 9, 10, 11});
  CHECK_THROWS_AS(put_along_axis(a, array({1}), array(0), 1), std::invalid_argument);
  const auto gradient = grad([](const array& x) {
    return sum(square(put_along_axis(x, array({1, 0}, {2, 1}), array(3.0f), 1)));
  });
  CHECK(gradient(array({1.f, 2.f, 3.f, 4.f}, {2, 2})).to_vector<float>() == std::vector<float>{2, 0, 0, 8});
}

TEST_CASE("taking and putting where there are no elements") {
  for (const Dtype dtype : {bool_, uint8, int32, int64, float16, bfloat16, float32, float64, complex64}) {
    CAPTURE(std::string(dtype_name(dtype)));
    const auto none = [&](const Shape& shape) { return zeros(shape, dtype); };
    const auto positions = [](const Shape& shape) { return zeros(shape, int32); };
    const auto is = [&](const array& a, const Shape& shape) {
      CHECK(a.shape() == shape);
      CHECK(a.dtype() == dtype);
      CHECK(abs(a).to_vector<float>() == std::vector<float>(static_cast<size_t>(num_elements(shape))));
    };
    is(take(none({0}), positions({0})), {0});
    is(take(none({0, 3}), positions({0}), 0), {0, 3});
    is(take(none({2, 0}), positions({0}), 1), {2, 0});
    is(take(none({2, 0}), positions({2, 0}), 0), {2, 0, 0});
    is(take(none({2, 3}), positions({0, 4}), 1), {2, 0, 4});
    is(take_along_axis(none({1, 0}), positions({1, 0}), 1), {1, 0});
    is(take_along_axis(none({0, 3}), positions({0, 3}), 0), {0, 3});
    is(take_along_axis(none({0, 4}), positions({0, 2}), 1), {0, 2});
    is(take_along_axis(none({2, 0}), positions({5, 0}), 0), {5, 0});
    is(take_along_axis(none({2, 3}), positions({0, 3}), 0), {0, 3});
    is(put_along_axis(none({1, 0}), positions({1, 0}), array(1.0f), 1), {1, 0});
    is(put_along_axis(none({0, 3}), positions({0, 3}), array(1.0f), 0), {0, 3});
    is(put_along_axis(none({2, 3}), positions({0, 3}), array(1.0f), 0), {2, 3});
    is(put_along_axis(none({2, 0}), positions({2, 3}), array(1.0f), 1), {2, 0});
    is(scatter(none({2, 3}), positions({0}), none({0, 1, 3}), 0), {2, 3});
    is(gather(none({2, 3}), positions({0}), 0, {1, 3}), {0, 1, 3});
    if (dtype != bool_ && dtype != complex64) {
      is(scatter_add_axis(none({1, 0}), positions({1, 0}), array(1.0f), 1), {1, 0});
      is(scatter_add(none({2, 3}), positions({0}), none({0, 1, 3}), 0), {2, 3});
      is(scatter_max(none({2, 3}), positions({0}), none({0, 1, 3}), 0), {2, 3});
    }
  }
  CHECK_THROWS_AS(take(zeros({0}), array({0})), std::invalid_argument);
  CHECK_THROWS_AS(take_along_axis(zeros({2, 0}), zeros({2, 3}, int32), 1), std::invalid_argument);
  const array none = zeros({0}, int32), flat = zeros({1, 0}, int32);
  CHECK(grad([&](const array& x) { return sum(take(x, none)); })(zeros({0})).shape() == Shape{0});
  CHECK(grad([&](const array& x) { return sum(take(x, none)); })(ones({3})).to_vector<float>() ==
        std::vector<float>{0, 0, 0});
  CHECK(grad([&](const array& x) { return sum(take_along_axis(x, flat, 1)); })(zeros({1, 0})).shape() == Shape{1, 0});
  CHECK(grad([&](const array& x) { return sum(put_along_axis(x, flat, array(1.0f), 1)); })(ones({1, 2}))
            .to_vector<float>() == std::vector<float>{1, 1});
  CHECK(vmap([&](const array& x) { return take(x, none); })(zeros({4, 0})).shape() == Shape{4, 0});
  CHECK(compile([&](const std::vector<array>& in) { return std::vector{take_along_axis(in[0], in[1], 1)}; })(
            {zeros({1, 0}), flat})[0]
            .shape() == Shape{1, 0});
}

TEST_CASE("masked scatter") {
  const array a = grid(), rows = array({1, 0, 1}, bool_);
  CHECK(ints(masked_scatter(a, a % array(4) == array(1), array({-1, -2, -3}))) ==
        Ints{0, -1, 2, 3, 4, -2, 6, 7, 8, -3, 10, 11});
  CHECK(ints(masked_scatter(a, rows, array({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}))) ==
        Ints{1, 2, 3, 4, 4, 5, 6, 7, 5, 6, 7, 8});
  CHECK(ints(masked_scatter(a, rows, array({1, 2, 3, 4}))) == Ints{1, 2, 3, 4, 4, 5, 6, 7, 1, 2, 3, 4});
  CHECK(ints(masked_scatter(a, a > array(9), array(0))) == Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0});
  CHECK_THROWS_AS(masked_scatter(a, array({1, 0}, bool_), array(0)), std::invalid_argument);
  CHECK_THROWS_AS(masked_scatter(a, array({1, 0, 1}), array(0)), std::invalid_argument);
}

TEST_CASE("products over named axes") {
  random::seed(3);
  const array a = random::normal({2, 3, 4}), b = random::normal({4, 3, 5});
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>(),
                           z = tensordot(a, b, {1, 2}, {1, 0}).to_vector<float>();
  for (size_t i = 0; i < 2; ++i)
    for (size_t n = 0; n < 5; ++n) {
      double expected = 0;
      for (size_t j = 0; j < 3; ++j)
        for (size_t k = 0; k < 4; ++k)
          expected += static_cast<double>(x[(i * 3 + j) * 4 + k]) * static_cast<double>(y[(k * 3 + j) * 5 + n]);
      CHECK(static_cast<double>(z[i * 5 + n]) == doctest::Approx(expected).epsilon(1e-5));
    }
  CHECK(tensordot(a, b, 1).shape() == Shape{2, 3, 3, 5});
  CHECK(tensordot(array({1.f, 2.f}), array({3.f, 4.f}), 0).to_vector<float>() == std::vector<float>{3, 4, 6, 8});
  CHECK_THROWS_AS(tensordot(a, b, 2), std::invalid_argument);
  CHECK_THROWS_AS(tensordot(arange(3), arange(3), 1), std::invalid_argument);
  CHECK(vecdot(array({1.f, 2.f, 3.f, 4.f}, {2, 2}), array({5.f, 6.f})).to_vector<float>() ==
        std::vector<float>{17, 39});
  CHECK(ints(kron(array({1, 2, 3, 4}, {2, 2}), array({1, -1, 0}))) == Ints{1, -1, 0, 2, -2, 0, 3, -3, 0, 4, -4, 0});
}

TEST_CASE("Hadamard transforms") {
  // H·H' = n·1: the transform of the unit vectors, transformed by the transpose, and the first row's signs.
  for (int n : {1, 2, 8, 12, 20, 28, 24, 128, 256}) {
    const array h = hadamard_transform(eye(n), 1.0f);  // row j: column j of the matrix
    CHECK(allclose(matmul(transpose(h), h), multiply(eye(n), array(static_cast<float>(n)))).item<bool>());
    CHECK(all(equal(abs(h), array(1.0f))).item<bool>());
  }
  near(hadamard_transform(array({1.f, 2.f, 3.f, 4.f})), {5, -1, -2, 0});
  CHECK(ints(hadamard_transform(eye(12), 1.0f))[12] == -1);  // "+-++++++++++" is the first row
  CHECK(hadamard_transform(arange(4)).dtype() == float32);
  CHECK_THROWS_AS(hadamard_transform(ones({3})), std::invalid_argument);
  CHECK_THROWS_AS(hadamard_transform(ones({36})), std::invalid_argument);
}

TEST_CASE("products by blocks, of chosen matrices, by segments") {
  random::seed(5);
  const array a = random::normal({3, 5}), b = random::normal({5, 4});
  const array rows = array({1, 0, 1, 0, 1, 1}, {2, 3}, bool_);  // of a, in blocks of two
  const array kept = multiply(a, array({1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1}, {3, 5}, float32));
  CHECK(allclose(block_masked_mm(a, b, 2, std::nullopt, rows), matmul(kept, b), 1e-5, 1e-6).item<bool>());
  const array weights({1.0f, 0.0f, 0.5f, 2.0f}, {2, 2});
  const array spread({1.f, 1.f, 0.f, 0.f, 1.f, 1.f, 0.f, 0.f, 0.5f, 0.5f, 2.f, 2.f}, {3, 4});
  CHECK(allclose(block_masked_mm(a, b, 2, weights), multiply(matmul(a, b), spread), 1e-5, 1e-6).item<bool>());
  CHECK_THROWS_AS(block_masked_mm(a, b, 2, rows), std::invalid_argument);

  const array stack = random::normal({2, 2, 3, 4}), others = random::normal({3, 4, 2});
  const array chosen = gather_mm(stack, others, array({3, 0}), array({1, 1}));
  CHECK(chosen.shape() == Shape{2, 3, 2});
  CHECK(
      allclose(take(chosen, 0, 0), matmul(take(take(stack, 1, 0), 1, 0), take(others, 1, 0)), 1e-5, 1e-6).item<bool>());
  CHECK(
      allclose(take(chosen, 1, 0), matmul(take(take(stack, 0, 0), 0, 0), take(others, 1, 0)), 1e-5, 1e-6).item<bool>());

  const array parts = segmented_mm(a, b, array({0, 2, 2, 5, 1, 1}, {3, 2}));
  CHECK(parts.shape() == Shape{3, 3, 4});
  CHECK(allclose(add(take(parts, 0, 0), take(parts, 1, 0)), matmul(a, b), 1e-5, 1e-6).item<bool>());
  CHECK(
      allclose(take(parts, 0, 0), matmul(slice(a, {0, 0}, {3, 2}), slice(b, {0, 0}, {2, 4})), 1e-5, 1e-6).item<bool>());
  CHECK(all(equal(take(parts, 2, 0), array(0.0f))).item<bool>());
}
