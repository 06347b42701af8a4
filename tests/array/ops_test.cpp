// Operations against naive loops: values over random shapes (sizes 0 and 1 among them) and dtypes. Every value is also
// held against the reference evaluation of the same graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "reference.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;

namespace {

std::mt19937_64 rng(20260101);

int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

// A plain row-major tensor of doubles: what the naive versions work on.
struct Plain {
  std::vector<int64_t> shape;
  std::vector<double> data;

  int64_t at(const std::vector<int64_t>& index) const {
    int64_t p = 0;
    for (size_t k = 0; k < shape.size(); ++k) p = p * shape[k] + index[k];
    return p;
  }
  double operator[](const std::vector<int64_t>& index) const { return data[static_cast<size_t>(at(index))]; }
};

int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

template <class F>
Plain build(std::vector<int64_t> shape, F&& f) {
  Plain p{shape, {}};
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = count(shape); n > 0; --n) {
    p.data.push_back(f(index));
    for (size_t k = shape.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
  return p;
}

Shape as_shape(const std::vector<int64_t>& v) { return Shape(v.begin(), v.end()); }

std::vector<int64_t> random_shape(int rank) {
  std::vector<int64_t> shape;
  for (int k = 0; k < rank; ++k) shape.push_back(uniform(0, 9) == 0 ? 0 : uniform(1, 5));
  return shape;
}

Plain random_plain(std::vector<int64_t> shape) {
  return build(std::move(shape), [](const auto&) { return static_cast<double>(uniform(-40, 40)) / 8; });
}

array of(const Plain& p, Dtype t = float32) { return array(p.data.begin(), as_shape(p.shape), t); }

void compare(const array& got, const Plain& expected, double tolerance = 1e-5) {
  REQUIRE(got.shape() == as_shape(expected.shape));
  const std::vector<double> reference = reference_values(got), values = got.to_vector<double>();
  REQUIRE(values.size() == expected.data.size());
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(expected.data[k])) {
      CHECK(std::isnan(values[k]));
      continue;
    }
    const double slack = tolerance * (1 + std::abs(expected.data[k]));
    CHECK(std::abs(values[k] - expected.data[k]) <= slack);
    CHECK(std::abs(reference[k] - expected.data[k]) <= slack);
  }
}

// The index of a broadcast operand that belongs to an index of the result.
std::vector<int64_t> narrowed(const std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> result(index.end() - static_cast<int64_t>(shape.size()), index.end());
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k] == 1) result[k] = 0;
  return result;
}

}  // namespace

TEST_CASE("broadcasting arithmetic") {
  struct Case {
    array (*op)(const array&, const array&, StreamOrDevice);
    double (*naive)(double, double);
  };
  const Case cases[] = {
      {add, [](double a, double b) { return a + b; }},
      {subtract, [](double a, double b) { return a - b; }},
      {multiply, [](double a, double b) { return a * b; }},
      {divide, [](double a, double b) { return static_cast<double>(static_cast<float>(a) / static_cast<float>(b)); }},
      {maximum, [](double a, double b) { return std::max(a, b); }},
      {minimum, [](double a, double b) { return std::min(a, b); }},
      {less, [](double a, double b) { return static_cast<double>(a < b); }},
      {greater_equal, [](double a, double b) { return static_cast<double>(a >= b); }},
  };
  for (int trial = 0; trial < 12; ++trial) {
    const std::vector<int64_t> shape = random_shape(static_cast<int>(uniform(0, 3)));
    std::vector<int64_t> left = shape,
                         right(shape.begin() + uniform(0, static_cast<int64_t>(shape.size())), shape.end());
    for (int64_t& n : left)
      if (uniform(0, 3) == 0) n = 1;
    Plain a = random_plain(left), b = random_plain(right);
    for (double& v : b.data) v = v == 0 ? 1 : v;
    std::vector<int64_t> result = left;
    for (size_t k = 0; k < right.size(); ++k) {
      int64_t& n = result[result.size() - 1 - k];
      if (n == 1) n = right[right.size() - 1 - k];
    }
    for (const Case& c : cases)
      compare(c.op(of(a), of(b), {}),
              build(result, [&](const auto& i) { return c.naive(a[narrowed(i, left)], b[narrowed(i, right)]); }));
  }
}

TEST_CASE("integers: floor division, remainder, power, shifts") {
  const std::vector<int> a{-7, 7, -7, 7, 0, 5, -8}, b{2, 2, -2, -2, 3, 0, -3};
  const array x(a.begin(), {7}), y(b.begin(), {7});
  CHECK(floor_divide(x, y).to_vector<int>() == std::vector<int>{-4, 3, 3, -4, 0, 0, 2});
  CHECK(remainder(x, y).to_vector<int>() == std::vector<int>{1, 1, -1, -1, 0, 0, -2});
  CHECK((x % array(3)).to_vector<int>() == std::vector<int>{2, 1, 2, 1, 0, 2, 1});
  CHECK(divide(x, array(2)).to_vector<float>()[0] == -3.5f);
  CHECK(power(array({2, -3, 5, 0, 7}), array({10, 3, 0, 0, -1})).to_vector<int>() ==
        std::vector<int>{1024, -27, 1, 1, 0});
  CHECK(power(array({2, -3, 5}), array(3)).to_vector<int>() == std::vector<int>{8, -27, 125});
  CHECK(power(array({2, -3, 5}), array(-2)).to_vector<int>() == std::vector<int>{0, 0, 0});
  CHECK(power(array(3, int64), array(39, int64)).item<int64_t>() == 4052555153018976267);
  CHECK(power(array({2.0f, 9.0f}), array(0.5f)).to_vector<float>()[1] == doctest::Approx(3));
  CHECK(left_shift(array({1, 3}), array({4, 33})).to_vector<int>() == std::vector<int>{16, 0});
  // Bools are shifted as uint8, as in MLX; float types are its runtime_error.
  const array yes = array({true, true, false, false}), by = array({true, false, true, false});
  CHECK(left_shift(yes, by).dtype() == uint8);
  CHECK(left_shift(yes, by).to_vector<int>() == std::vector<int>{2, 1, 0, 0});
  CHECK(right_shift(yes, by).dtype() == uint8);
  CHECK(right_shift(yes, by).to_vector<int>() == std::vector<int>{0, 1, 0, 0});
  CHECK(left_shift(array({1, 2}, int8), array(true)).dtype() == int8);
  for (array (*f)(const array&, const array&, StreamOrDevice) :
       {left_shift, right_shift, bitwise_and, bitwise_or, bitwise_xor}) {
    CHECK_THROWS_AS(f(array(1.0f), array(2.0f), {}), std::runtime_error);
    CHECK_THROWS_AS(f(array(1), array(2.0f), {}), std::runtime_error);
  }
  CHECK_THROWS_AS(bitwise_invert(array(1.0f)), std::invalid_argument);
  CHECK(right_shift(array({-8, 255}), array({1, 4})).to_vector<int>() == std::vector<int>{-4, 15});
  CHECK(bitwise_xor(array({12, 10}), array({10, 10})).to_vector<int>() == std::vector<int>{6, 0});
  CHECK((array({200, 100}, uint8) + array({100, 100}, uint8)).to_vector<int>() == std::vector<int>{44, 200});
  CHECK((array({1, 0, 1, 0}, bool_) + array({1, 1, 0, 0}, bool_)).to_vector<int>() == std::vector<int>{1, 1, 1, 0});
  CHECK((array({1, 0, 1, 0}, bool_) * array({1, 1, 0, 0}, bool_)).to_vector<int>() == std::vector<int>{1, 0, 0, 0});
}

TEST_CASE("floats: remainder, rounding, sign, clip, NaN") {
  const array v = {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f};
  CHECK(round(v).to_vector<float>() == std::vector<float>{-2, -2, -0.0f, 0, 2, 2});
  CHECK(floor(v).to_vector<float>() == std::vector<float>{-3, -2, -1, 0, 1, 2});
  CHECK(ceil(v).to_vector<float>() == std::vector<float>{-2, -1, 0, 1, 2, 3});
  CHECK(sign(v).to_vector<float>() == std::vector<float>{-1, -1, -1, 1, 1, 1});
  CHECK(clip(v, array(-1.0f), array(2.0f)).to_vector<float>() == std::vector<float>{-1, -1, -0.5f, 0.5f, 1.5f, 2});
  CHECK(remainder(array({-7.5f, 7.5f}), array(2.0f)).to_vector<float>() == std::vector<float>{0.5f, 1.5f});
  CHECK(floor_divide(array({-7.5f, 7.5f}), array(2.0f)).to_vector<float>() == std::vector<float>{-4, 3});
  const float odd[] = {NAN, 1, INFINITY, -INFINITY};
  const array o = array::from_data(odd, {4}, float32);
  CHECK(isnan(o).to_vector<bool>() == std::vector<bool>{true, false, false, false});
  CHECK(isinf(o).to_vector<bool>() == std::vector<bool>{false, false, true, true});
  CHECK(isfinite(o).to_vector<bool>() == std::vector<bool>{false, true, false, false});
  CHECK(std::isnan(maximum(o, array(0.0f)).to_vector<float>()[0]));
  CHECK(std::isnan(max(o).item<float>()));
  CHECK(argmax(o, 0).item<int>() == 0);
  CHECK(argmin(o, 0).item<int>() == 0);
  CHECK((greater(o, array(0.0f))).to_vector<bool>() == std::vector<bool>{false, true, true, false});
  CHECK(astype(o, int32).to_vector<int>() == std::vector<int>{0, 1, INT32_MAX, INT32_MIN});
  CHECK(allclose(array({1.0f, INFINITY}), array({1.0f + 1e-6f, INFINITY})).item<bool>());
  CHECK(!allclose(array({1.0f}), array({1.1f})).item<bool>());
  CHECK(!allclose(array({1.0f}), array({INFINITY})).item<bool>());
  CHECK(!allclose(o, o).item<bool>());
  CHECK(allclose(o, o, 1e-5, 1e-8, true).item<bool>());
  CHECK(!array_equal(o, o, false).item<bool>());
  CHECK(array_equal(o, o, true).item<bool>());
  CHECK(!array_equal(array({1, 2}), array({1}), false).item<bool>());
  CHECK(array_equal(array({1, 2}), array({1.0f, 2.0f}), false).item<bool>());
  CHECK(where(array({1, 0}, bool_), array(1.5f), array({2, 3})).to_vector<float>() == std::vector<float>{1.5f, 3});
  CHECK(view(array(1.0f), int32).item<int>() == 0x3f800000);
}

TEST_CASE("creation") {
  CHECK(arange(2, 11, 3).to_vector<int>() == std::vector<int>{2, 5, 8});
  CHECK(arange(5, 0, -2).to_vector<int>() == std::vector<int>{5, 3, 1});
  CHECK(arange(3, 1).size() == 0);
  CHECK(arange(0.0, 1.0, 0.25, float32).to_vector<float>() == std::vector<float>{0, 0.25f, 0.5f, 0.75f});
  CHECK(arange(1.0, 4.0, bfloat16).to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(arange(0, 256, 1).to_vector<int>()[255] == 255);
  CHECK(arange(3, 6, 1, uint8).dtype() == uint8);
  CHECK(full({2, 2}, array({1, 2})).to_vector<int>() == std::vector<int>{1, 2, 1, 2});
  CHECK(full({2}, array(3.7f), int32).to_vector<int>() == std::vector<int>{3, 3});
  CHECK(eye(3).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(eye(2, 3, 1, int32).to_vector<int>() == std::vector<int>{0, 1, 0, 0, 0, 1});
  CHECK(tri(2, 3, 0, int32).to_vector<int>() == std::vector<int>{1, 0, 0, 1, 1, 0});
  const array m = reshape(arange(1, 10), {3, 3});
  CHECK(tril(m).to_vector<int>() == std::vector<int>{1, 0, 0, 4, 5, 0, 7, 8, 9});
  CHECK(triu(m, 1).to_vector<int>() == std::vector<int>{0, 2, 3, 0, 0, 6, 0, 0, 0});
  CHECK(tril(m, -1).to_vector<int>() == std::vector<int>{0, 0, 0, 4, 0, 0, 7, 8, 0});
  CHECK(zeros({0, 2}).size() == 0);
}

TEST_CASE("movement") {
  for (int trial = 0; trial < 20; ++trial) {
    const Plain p = random_plain(random_shape(3));
    const array a = of(p);
    std::vector<int> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), rng);
    std::vector<int64_t> permuted;
    for (int axis : order) permuted.push_back(p.shape[static_cast<size_t>(axis)]);
    compare(transpose(a, order), build(permuted, [&](const auto& i) {
              std::vector<int64_t> source(3);
              for (size_t k = 0; k < 3; ++k) source[static_cast<size_t>(order[k])] = i[k];
              return p[source];
            }));
    compare(flatten(a), {{count(p.shape)}, p.data});
    compare(flatten(a, 1), {{p.shape[0], p.shape[1] * p.shape[2]}, p.data});
    compare(expand_dims(a, std::vector<int>{0, -1}), {{1, p.shape[0], p.shape[1], p.shape[2], 1}, p.data});
    compare(squeeze(expand_dims(a, 1), 1), p);
    compare(stack({a, a}, 1), build({p.shape[0], 2, p.shape[1], p.shape[2]}, [&](const auto& i) {
              return p[{i[0], i[2], i[3]}];
            }));
    compare(repeat(a, 3, 1), build({p.shape[0], 3 * p.shape[1], p.shape[2]}, [&](const auto& i) {
              return p[{i[0], i[1] / 3, i[2]}];
            }));
    compare(tile(a, {2, 1, 3}), build({2 * p.shape[0], p.shape[1], 3 * p.shape[2]}, [&](const auto& i) {
              return p[{i[0] % p.shape[0], i[1], i[2] % p.shape[2]}];
            }));
    compare(pad(a, {{1, 0}, {0, 2}, {3, 1}}, array(7)),
            build({p.shape[0] + 1, p.shape[1] + 2, p.shape[2] + 4}, [&](const auto& i) {
              const bool inside = i[0] >= 1 && i[1] < p.shape[1] && i[2] >= 3 && i[2] < 3 + p.shape[2];
              return inside ? p[{i[0] - 1, i[1], i[2] - 3}] : 7.0;
            }));
  }
  const array computed = pad(array({1.0f, 2.0f}), {{1, 1}}, sum(array({1.0f, 3.0f})));
  CHECK(computed.to_vector<float>() == std::vector<float>{4, 1, 2, 4});
  const array m = reshape(arange(6), {2, 3});
  CHECK(swapaxes(m, 0, -1).to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  CHECK(moveaxis(reshape(arange(24), {2, 3, 4}), 0, -1).shape() == Shape{3, 4, 2});
  CHECK(unflatten(m, 1, {3, -1}).shape() == Shape{2, 3, 1});
  CHECK(reshape(m, {-1, 2}).shape() == Shape{3, 2});
  CHECK(squeeze(ones({1, 2, 1})).shape() == Shape{2});
  CHECK(flatten(array(1)).shape() == Shape{1});
  CHECK(split(m, 3, 1)[1].to_vector<int>() == std::vector<int>{1, 4});
  const auto parts = split(arange(7), {2, 5}, 0);
  CHECK(parts.size() == 3);
  CHECK(parts[1].to_vector<int>() == std::vector<int>{2, 3, 4});
  CHECK(parts[2].to_vector<int>() == std::vector<int>{5, 6});
  CHECK(concatenate({arange(2), zeros({0}, int32), arange(1)}).to_vector<int>() == std::vector<int>{0, 1, 0});
  CHECK(broadcast_arrays({ones({2, 1}), ones({3})})[1].shape() == Shape{2, 3});
}

TEST_CASE("slices follow NumPy") {
  const array v = arange(10);
  const auto cut = [&](int64_t start, int64_t stop, int64_t step) {
    return slice(v, {start}, {stop}, {step}).to_vector<int>();
  };
  CHECK(cut(2, 5, 1) == std::vector<int>{2, 3, 4});
  CHECK(cut(-3, 10, 1) == std::vector<int>{7, 8, 9});
  CHECK(cut(0, -7, 1) == std::vector<int>{0, 1, 2});
  CHECK(cut(1, 100, 4) == std::vector<int>{1, 5, 9});
  CHECK(cut(5, 2, 1).empty());
  CHECK(cut(8, 2, -3) == std::vector<int>{8, 5});
  CHECK(cut(-1, -11, -4) == std::vector<int>{9, 5, 1});
  CHECK(cut(20, 6, -1) == std::vector<int>{9, 8, 7});
  const Dim n = symbol("n", 8);
  CHECK(slice(v, {0}, {n}).shape() == Shape{n});
  CHECK_THROWS_AS(slice(v, {1}, {n}), std::invalid_argument);
  CHECK_THROWS_AS(slice(arange(4), {0}, {n}), std::invalid_argument);
}

TEST_CASE("updates of slices") {
  const array m = zeros({3, 4}, int32);
  CHECK(slice_update(m, array({1, 2}), Shape{1, 1}, Shape{3, 3}).to_vector<int>() ==
        std::vector<int>{0, 0, 0, 0, 0, 1, 2, 0, 0, 1, 2, 0});
  CHECK(slice_update(m, array(5), Shape{-1, 0}, Shape{3, 4}).to_vector<int>() ==
        std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5});
  CHECK(slice_update(m, array(5.9f), Shape{0, 0}, Shape{3, 4}).to_vector<int>()[3] == 5);
  CHECK(slice_update(m, array({1, 2}), Shape{2, 3}, Shape{-4, -5}, Shape{-2, -2}).to_vector<int>() ==
        std::vector<int>{0, 2, 0, 1, 0, 0, 0, 0, 0, 2, 0, 1});
  const array counts = reshape(arange(12), {3, 4});
  CHECK(slice_update_add(counts, array(10), Shape{0, 0}, Shape{3, 4}, Shape{2, 3}).to_vector<int>() ==
        std::vector<int>{10, 1, 2, 13, 4, 5, 6, 7, 18, 9, 10, 21});
  CHECK(slice_update_prod(counts, array({2, 3}), Shape{1, 0}, Shape{2, 2}, Shape{1, 1}).to_vector<int>()[5] == 15);
  CHECK(slice_update_max(counts, array(5), Shape{1, 0}, Shape{2, 4}, Shape{1, 1}).to_vector<int>() ==
        std::vector<int>{0, 1, 2, 3, 5, 5, 6, 7, 8, 9, 10, 11});
  CHECK(slice_update_min(counts, array(5), Shape{1, 0}, Shape{2, 4}, Shape{1, 1}).to_vector<int>() ==
        std::vector<int>{0, 1, 2, 3, 4, 5, 5, 5, 8, 9, 10, 11});
  const array placed = slice_update(m, ones({2, 1}, int32), array({1, 2}), {0, 1});
  CHECK(placed.to_vector<int>() == std::vector<int>{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0});
  CHECK(slice_update(m, ones({3, 1}, int32), array(3), {1}).to_vector<int>() ==
        std::vector<int>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
}

TEST_CASE("gathers and scatters") {
  for (int trial = 0; trial < 12; ++trial) {
    const Plain p = random_plain({uniform(1, 4), uniform(1, 5), uniform(1, 3)});
    const int axis = static_cast<int>(uniform(0, 2));
    const int64_t n = p.shape[static_cast<size_t>(axis)];
    const std::vector<int64_t> index_shape = random_shape(2);
    const Plain index = build(index_shape, [&](const auto&) { return static_cast<double>(uniform(-n, n - 1)); });
    std::vector<int64_t> result(p.shape.begin(), p.shape.begin() + axis);
    result.insert(result.end(), index_shape.begin(), index_shape.end());
    result.insert(result.end(), p.shape.begin() + axis + 1, p.shape.end());
    compare(
        take(of(p), of(index, int32), axis), build(result, [&](const auto& i) {
          std::vector<int64_t> source(i.begin(), i.begin() + axis);
          const auto at = static_cast<int64_t>(index[{i[static_cast<size_t>(axis)], i[static_cast<size_t>(axis) + 1]}]);
          source.push_back(at < 0 ? at + n : at);
          source.insert(source.end(), i.begin() + axis + 2, i.end());
          return p[source];
        }));
    std::vector<int64_t> along = p.shape;
    along[static_cast<size_t>(axis)] = uniform(1, 4);
    const Plain picks = build(along, [&](const auto&) { return static_cast<double>(uniform(-n, n - 1)); });
    compare(take_along_axis(of(p), of(picks, int64), axis), build(along, [&](const auto& i) {
              std::vector<int64_t> source = i;
              const auto at = static_cast<int64_t>(picks[i]);
              source[static_cast<size_t>(axis)] = at < 0 ? at + n : at;
              return p[source];
            }));
  }
  CHECK(take(arange(300), array({299, 7}), 0).to_vector<int>() == std::vector<int>{299, 7});
  CHECK(take(reshape(arange(6), {2, 3}), array({4, 0})).to_vector<int>() == std::vector<int>{4, 0});
  CHECK(take_along_axis(reshape(arange(600), {2, 300}), array({250, 3}, {2, 1}, uint8), 1).to_vector<int>() ==
        std::vector<int>{250, 303});
  const array base = zeros({4, 2}, int32);
  CHECK(scatter(base, {array({3, 1})}, array({1, 2, 3, 4}, {2, 1, 2}), {0}).to_vector<int>() ==
        std::vector<int>{0, 0, 3, 4, 0, 0, 1, 2});
  CHECK(scatter_add(base, {array({1, 1, -1})}, ones({3, 1, 2}, int32), {0}).to_vector<int>() ==
        std::vector<int>{0, 0, 2, 2, 0, 0, 1, 1});
  CHECK(gather(reshape(arange(12), {3, 4}), {array({0, 2}), array({1, 3})}, {0, 1}, {1, 1}).to_vector<int>() ==
        std::vector<int>{1, 11});
}

TEST_CASE("reductions over any axes") {
  for (int trial = 0; trial < 16; ++trial) {
    const Plain p = random_plain(random_shape(3));
    std::vector<int> axes;
    for (int k = 0; k < 3; ++k)
      if (uniform(0, 1)) axes.push_back(uniform(0, 1) ? k : k - 3);
    std::vector<bool> gone(3, false);
    for (int axis : axes) gone[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = true;
    std::vector<int64_t> kept = p.shape, left;
    int64_t n = 1;
    for (size_t k = 0; k < 3; ++k) {
      if (gone[k]) n *= std::exchange(kept[k], 1);
      else left.push_back(p.shape[k]);
    }
    const auto naive = [&](double start, const std::function<double(double, double)>& f) {
      Plain out = build(kept, [&](const auto&) { return start; });
      build(p.shape, [&](const auto& i) {
        std::vector<int64_t> at = i;
        for (size_t k = 0; k < 3; ++k)
          if (gone[k]) at[k] = 0;
        double& slot = out.data[static_cast<size_t>(out.at(at))];
        return slot = f(slot, p[i]);
      });
      return out;
    };
    const Plain total = naive(0, [](double a, double b) { return a + b; });
    compare(sum(of(p), axes, true), total);
    compare(sum(of(p), axes), {left, total.data});
    compare(prod(of(p), axes, true), naive(1, [](double a, double b) { return a * b; }), 1e-4);
    Plain average = total, spread = naive(0, [](double a, double b) { return a + b * b; });
    for (size_t k = 0; k < average.data.size(); ++k) {
      average.data[k] /= static_cast<double>(n);
      spread.data[k] = spread.data[k] / static_cast<double>(n) - average.data[k] * average.data[k];
    }
    compare(mean(of(p), axes, true), average);
    compare(var(of(p), axes, true), spread, 1e-4);
    if (n == 0) continue;
    compare(max(of(p), axes, true), naive(-1e30, [](double a, double b) { return std::max(a, b); }));
    compare(min(of(p), axes, true), naive(1e30, [](double a, double b) { return std::min(a, b); }));
    Plain lse = naive(0, [](double a, double b) { return a + std::exp(b); });
    for (double& v : lse.data) v = std::log(v);
    compare(logsumexp(of(p), axes, true), lse);
    compare(softmax(of(p), axes), build(p.shape, [&](const auto& i) {
              std::vector<int64_t> at = i;
              for (size_t k = 0; k < 3; ++k)
                if (gone[k]) at[k] = 0;
              return std::exp(p[i] - lse[at]);
            }));
  }
  CHECK(sum(array({100, 100, 100}, int8)).item<int>() == 300);
  CHECK(sum(ones({5}, bool_)).item<int>() == 5);
  CHECK(sum(zeros({0})).item<float>() == 0);
  CHECK(prod(zeros({0}), {0}).item<float>() == 1);
  CHECK(std::isnan(mean(zeros({0})).item<float>()));
  CHECK(all(array({1, 2, 0})).item<bool>() == false);
  CHECK(any(array({0, 2, 0})).item<bool>());
  CHECK(max(array({0, 1}, bool_)).item<bool>());
  CHECK(var(array({1.0f, 2.0f, 3.0f, 4.0f}), {0}, false, 1).item<float>() == doctest::Approx(5.0 / 3));
  CHECK(argmax(array({1, 5, 5, 2}), 0).item<int>() == 1);
  CHECK(argmin(array({4, 1, 7, 1}, {2, 2}), 1, true).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(argmax(array({0, 1, 1}, bool_), 0).item<int>() == 1);
  // Half types: 4096 ones summed in bfloat16 would stop at 256.
  CHECK(sum(ones({4096}, bfloat16)).item<float>() == 4096);
  CHECK(mean(ones({4096}, float16)).item<float>() == 1);
}

TEST_CASE("products of matrices") {
  const auto naive = [](const Plain& a, const Plain& b, const std::vector<int64_t>& lead, int64_t m, int64_t n) {
    std::vector<int64_t> shape = lead;
    shape.insert(shape.end(), {m, n});
    return build(shape, [&](const std::vector<int64_t>& i) {
      const std::vector<int64_t> batch(i.begin(), i.end() - 2);
      const auto element = [&](const Plain& p, int64_t row, int64_t column) {
        const std::vector<int64_t> own(p.shape.begin(), p.shape.end() - 2);
        std::vector<int64_t> at = narrowed(batch, own);
        at.insert(at.end(), {row, column});
        return p[at];
      };
      double total = 0;
      for (int64_t k = 0; k < a.shape.back(); ++k) total += element(a, i[i.size() - 2], k) * element(b, k, i.back());
      return total;
    });
  };
  using Sizes = std::vector<int64_t>;
  const std::pair<Sizes, Sizes> leads[] = {{{}, {}},      {{3}, {}},     {{}, {3}},  {{2, 3}, {2, 3}},
                                           {{2, 1}, {3}}, {{3}, {2, 3}}, {{0}, {0}}, {{2, 1}, {1, 3}}};
  for (const auto& [lead_a, lead_b] : leads) {
    const int64_t m = uniform(1, 4), k = uniform(1, 5), n = uniform(1, 4);
    Sizes sa = lead_a, sb = lead_b;
    sa.insert(sa.end(), {m, k});
    sb.insert(sb.end(), {k, n});
    const Plain a = random_plain(sa), b = random_plain(sb);
    const Shape joined = broadcast_shapes(as_shape(lead_a), as_shape(lead_b));
    compare(matmul(of(a), of(b)), naive(a, b, Sizes(joined.begin(), joined.end()), m, n));
  }
  const Plain a = random_plain({2, 3}), v = random_plain({3}), w = random_plain({2}), c = random_plain({4, 3, 2});
  CHECK(matmul(of(a), of(v)).shape() == Shape{2});
  CHECK(matmul(of(w), of(a)).shape() == Shape{3});
  CHECK(matmul(of(v), of(c)).shape() == Shape{4, 2});
  CHECK(matmul(of(c), of(w)).shape() == Shape{4, 3});
  compare(matmul(of(v), of(v)), {{}, {std::inner_product(v.data.begin(), v.data.end(), v.data.begin(), 0.0)}});
  compare(matmul(of(v), of(c)), build({4, 2}, [&](const auto& i) {
            double t = 0;
            for (int64_t k = 0; k < 3; ++k) t += v[{k}] * c[{i[0], k, i[1]}];
            return t;
          }));
  compare(outer(of(v), of(w)), build({3, 2}, [&](const auto& i) { return v[{i[0]}] * w[{i[1]}]; }));
  compare(inner(of(a), of(v)), build({2}, [&](const auto& i) {
            return a[{i[0], 0}] * v[{0}] + a[{i[0], 1}] * v[{1}] + a[{i[0], 2}] * v[{2}];
          }));
  CHECK(addmm(array(1.0f), ones({2, 3}), ones({3, 2}), 2.0f, 0.5f).to_vector<float>() ==
        std::vector<float>{6.5f, 6.5f, 6.5f, 6.5f});
  CHECK(matmul(zeros({2, 0}), zeros({0, 3})).to_vector<float>() == std::vector<float>(6, 0.0f));
}

TEST_CASE("one matrix for all leading axes is one dot, with nothing moved") {
  const array x = ones({2, 5, 3}), w = ones({3, 4});
  const graph::Value product = matmul(x, w).value();
  CHECK(product.node->op() == graph::Op::dot);
  CHECK(product.node->inputs()[0] == x.value());
  CHECK(product.node->inputs()[1] == w.value());
  CHECK(product.node->attrs().axes == std::vector<int64_t>{2});
  CHECK(product.node->attrs().batch.empty());
  const graph::Value batched = matmul(ones({2, 5, 3}), ones({2, 3, 5})).value();
  CHECK(batched.node->op() == graph::Op::dot);
  CHECK(batched.node->attrs().batch == std::vector<int64_t>{0});
}

TEST_CASE("composites") {
  const Plain x = random_plain({3, 6});
  const array a = of(x);
  const array centred = a - mean(a, 1, true);
  const array plain_norm = centred * rsqrt(mean(square(centred), 1, true) + array(1e-5f));
  CHECK(allclose(fast::layer_norm(a, std::nullopt, std::nullopt, 1e-5f), plain_norm, 1e-4, 1e-5).item<bool>());
  const array w = arange(6) / array(3), b = arange(6) * array(0.5f);
  CHECK(allclose(fast::layer_norm(a, w, b, 1e-5f), plain_norm * w + b, 1e-4, 1e-5).item<bool>());
  compare(fast::gelu(a),
          build({3, 6}, [&](const auto& i) { return x[i] * 0.5 * (1 + std::erf(x[i] / std::sqrt(2.0))); }));
  compare(fast::gelu_tanh(a), build({3, 6}, [&](const auto& i) {
            return 0.5 * x[i] * (1 + std::tanh(std::sqrt(2 / M_PI) * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
          }));
  const array targets = {5, 0, 2};
  CHECK(allclose(fast::cross_entropy(a, targets),
                 logsumexp(a, 1) - squeeze(take_along_axis(a, expand_dims(targets, 1), 1), 1), 1e-4, 1e-5)
            .item<bool>());

  const array q = of(random_plain({2, 4, 3, 5})), k = of(random_plain({2, 2, 6, 5})),
              v = of(random_plain({2, 2, 6, 4}));
  const array wide_k = repeat(k, 2, 1), wide_v = repeat(v, 2, 1);
  const array scores = matmul(q * array(0.3f), swapaxes(wide_k, 2, 3));
  CHECK(allclose(fast::scaled_dot_product_attention(q, k, v, 0.3f), matmul(softmax(scores, -1), wide_v), 1e-4, 1e-5)
            .item<bool>());
  const array seen = tri(3, 6, 3, bool_);
  const array masked = matmul(softmax(where(seen, scores, array(-1e30f)), -1), wide_v);
  CHECK(allclose(fast::scaled_dot_product_attention(q, k, v, 0.3f, "causal"), masked, 1e-4, 1e-5).item<bool>());
  CHECK(allclose(fast::scaled_dot_product_attention(q, k, v, 0.3f, "", seen), masked, 1e-4, 1e-5).item<bool>());
  CHECK(allclose(fast::scaled_dot_product_attention(q, k, v, 0.3f, "array", where(seen, array(0.0f), array(-1e30f))),
                 masked, 1e-4, 1e-5)
            .item<bool>());
}

TEST_CASE("attention with dropout keeps each weight with one probability, and divides it by that") {
  // Values that are the identity give the weights themselves. 40 and 70 are no multiples of the blocks that share
  // words.
  const int64_t queries = 40, keys = 70;
  const array q = of(random_plain({2, 3, queries, 8})), k = of(random_plain({2, 3, keys, 8}));
  const array v = broadcast_to(eye(static_cast<int>(keys)), {2, 3, keys, keys});
  const array key = random::key(11);
  const auto weights = [&](float rate, const std::optional<array>& given, const std::string& mask = "") {
    return fast::dropout_attention(q, k, v, 0.3f, rate, mask, std::nullopt, given);
  };
  const array all = fast::scaled_dot_product_attention(q, k, v, 0.3f);
  CHECK(array_equal(weights(0, key), all).item<bool>());
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    CAPTURE(rate);
    const array some = weights(rate, key), kept = not_equal(some, array(0.0f));
    CHECK(allclose(some, where(kept, all / array(1 - rate), array(0.0f)), 1e-5, 1e-6).item<bool>());
    // 16800 draws: five standard deviations are at most 0.02; and the same along each axis.
    CHECK(mean(astype(kept, float32)).item<float>() == doctest::Approx(1 - rate).epsilon(0.02).scale(1));
    CHECK(max(abs(mean(astype(kept, float32), std::vector<int>{0, 1, 2}) - array(1 - rate))).item<float>() < 0.17f);
    CHECK(max(abs(mean(astype(kept, float32), std::vector<int>{0, 1, 3}) - array(1 - rate))).item<float>() < 0.13f);
    CHECK(array_equal(weights(rate, key), some).item<bool>());
    CHECK_FALSE(array_equal(weights(rate, random::key(12)), some).item<bool>());
    // The same weights are kept where some are hidden.
    const array causal = weights(rate, key, "causal"), seen = tri(queries, keys, keys - queries, bool_);
    CHECK(array_equal(not_equal(causal, array(0.0f)), logical_and(kept, seen)).item<bool>());
  }
  random::seed(5);
  const array first = weights(0.5f, std::nullopt), second = weights(0.5f, std::nullopt);
  CHECK_FALSE(array_equal(first, second).item<bool>());
  random::seed(5);
  CHECK(array_equal(weights(0.5f, std::nullopt), first).item<bool>());
  CHECK_THROWS_WITH_AS(weights(1, key), doctest::Contains("the rate is at least 0 and below 1, got 1.0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(weights(0.5f, array({1, 2, 3}, uint32)), doctest::Contains("a key is two words of uint32"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(weights(0.5f, array({1, 2}, int32)), doctest::Contains("as random::key gives"),
                       std::invalid_argument);
}

TEST_CASE("a compiled function draws the dropout of attention anew in each call") {
  const array x = of(random_plain({1, 2, 20, 4}));
  const auto f = compile([](const std::vector<array>& in) {
    return std::vector{fast::dropout_attention(in[0], in[0], in[0], 0.5f, 0.3f, "causal")};
  });
  random::seed(8);
  const array first = f({x})[0], second = f({x})[0];
  CHECK_FALSE(array_equal(first, second).item<bool>());
  random::seed(8);
  CHECK(allclose(fast::dropout_attention(x, x, x, 0.5f, 0.3f, "causal"), first, 1e-5, 1e-6).item<bool>());
}
