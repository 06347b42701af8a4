// NumPy's indexing against a naive version that works on positions, and updates of what is chosen.
#include <doctest/doctest.h>

#include <random>

#include "weft/compile.h"
#include "weft/indexing.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {
using Ints = std::vector<int>;
Ints ints(const array& a) { return a.to_vector<int>(); }
array cube() { return reshape(arange(24), {2, 3, 4}); }
}  // namespace

TEST_CASE("integers, slices, ellipsis, new axes") {
  const array x = cube();
  CHECK(ints(index(x, 1, 2)) == Ints{20, 21, 22, 23});
  CHECK(index(x, -1, -1, -1).item<int>() == 23);
  CHECK(ints(index(x, 0, Slice(1, std::nullopt), Slice::step(-2))) == Ints{7, 5, 11, 9});
  CHECK(ints(index(x, ellipsis, 0)) == Ints{0, 4, 8, 12, 16, 20});
  CHECK(index(x, ellipsis).shape() == Shape{2, 3, 4});
  CHECK(index(x, newaxis, ellipsis, newaxis, Slice()).shape() == Shape{1, 2, 3, 1, 4});
  CHECK(index(x, 0, newaxis, 1).shape() == Shape{1, 4});
  CHECK(ints(index(arange(10), Slice(-3, 100))) == Ints{7, 8, 9});
  CHECK(ints(index(arange(10), Slice(8, 2, -3))) == Ints{8, 5});
  CHECK(index(arange(10), Slice(5, 2)).size() == 0);
  CHECK(ints(index(arange(5), Slice::from(3))) == Ints{3, 4});
  CHECK(ints(index(arange(5), Slice::to(-3))) == Ints{0, 1});
  CHECK_THROWS_AS(index(x, 2), std::out_of_range);
  CHECK_THROWS_AS(index(x, 0, 0, 0, 0), std::invalid_argument);
  CHECK_THROWS_AS(index(x, ellipsis, ellipsis), std::invalid_argument);
  CHECK_THROWS_AS(index(x, Slice(0, 1, 0)), std::invalid_argument);
  x.eval();
  CHECK(index(transpose(x), 3).strides() == Strides{4, 12});  // no copies
}

TEST_CASE("arrays of integers: in their place, or in front where they stand apart") {
  const array x = cube(), i = array({1, 0, 1}), j = array({2, -1, 0});
  CHECK(ints(index(x, i, j)) == Ints{20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(index(x, Slice(), j).shape() == Shape{2, 3, 4});
  CHECK(index(x, Slice(), array({0, 1, 2, 0}, {2, 2}), Slice(0, 1)).shape() == Shape{2, 2, 2, 1});
  CHECK(index(x, i, Slice(), j).shape() == Shape{3, 3});
  CHECK(ints(index(x, i, Slice(), j)) == Ints{14, 18, 22, 3, 7, 11, 12, 16, 20});
  CHECK(index(x, 0, Slice(), j).shape() == Shape{3, 3});  // an integer next to an array counts as one
  CHECK(ints(index(x, 0, Slice(), j)) == Ints{2, 6, 10, 3, 7, 11, 0, 4, 8});
  CHECK(ints(index(x, reshape(i, {3, 1}), array({0, 1}), 3)) == Ints{15, 19, 3, 7, 15, 19});
  CHECK(index(x, newaxis, i).shape() == Shape{1, 3, 3, 4});
  CHECK(index(x, zeros({0}, int32)).shape() == Shape{0, 3, 4});
  CHECK_THROWS_AS(index(x, array({0.5f})), std::invalid_argument);
  CHECK_THROWS_AS(index(x, array({0, 1}), array({0, 1, 2})), std::invalid_argument);
}

TEST_CASE("masks") {
  const array x = cube();
  CHECK(ints(index(x, x % array(5) == array(0))) == Ints{0, 5, 10, 15, 20});
  CHECK(ints(index(x, array({0, 1}, bool_), 0)) == Ints{12, 13, 14, 15});
  CHECK(index(x, Slice(), array({1, 0, 1}, bool_)).shape() == Shape{2, 2, 4});
  CHECK(index(x, x > array(100)).size() == 0);
  CHECK(index(x, zeros({2, 3}, bool_)).shape() == Shape{0, 4});
  const auto where_not = nonzero(array({0, 3, 0, 0, 5, 1}, {2, 3}));
  REQUIRE(where_not.size() == 2);
  CHECK(ints(where_not[0]) == Ints{0, 1, 1});
  CHECK(ints(where_not[1]) == Ints{1, 1, 2});
  CHECK_THROWS_AS(index(x, array({1, 0, 1}, bool_)), std::invalid_argument);
  const auto compiled =
      compile([&](const std::vector<array>& in) { return std::vector<array>{index(in[0], in[0] > array(3))}; });
  CHECK_THROWS_AS(compiled({arange(5)}), std::invalid_argument);  // the result's length would depend on data
}

TEST_CASE("updates") {
  const array x = reshape(arange(12), {3, 4});
  CHECK(ints(at(x, 1).set(array(-1))) == Ints{0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11});
  CHECK(ints(at(x, Slice(0, 2), Slice(1, 3)).set(array({50, 60}))) == Ints{0, 50, 60, 3, 4, 50, 60, 7, 8, 9, 10, 11});
  CHECK(ints(at(x, Slice::step(2), Slice::step(-3)).set(array({70, 80, 90, 100}, {2, 2}))) ==
        Ints{80, 1, 2, 70, 4, 5, 6, 7, 100, 9, 10, 90});
  CHECK(ints(at(x, array({2, 0})).set(array({1, 2, 3, 4}))) == Ints{1, 2, 3, 4, 4, 5, 6, 7, 1, 2, 3, 4});
  CHECK(ints(at(x, x > array(8)).set(array(0))) == Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0});
  CHECK(ints(at(x, x > array(8)).set(array({7, 7, 6}))) == Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 7, 6});
  CHECK(ints(at(x, array({1, 0, 1}, bool_)).set(array(5))) == Ints{5, 5, 5, 5, 4, 5, 6, 7, 5, 5, 5, 5});
  CHECK(ints(at(x, 0).add(array(100))) == Ints{100, 101, 102, 103, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(ints(at(arange(3), array({1, 1, 0})).add(array({10, 20, 30}))) == Ints{30, 31, 2});  // repeated elements add up
  CHECK(ints(at(arange(3), array({1, 1, 0})).subtract(array(10))) == Ints{-10, -19, 2});
  const array few = arange(3) + 1, twice = array({2, 2, 0});
  CHECK(ints(at(few, twice).multiply(array({2, 5, 7}))) == Ints{7, 2, 30});
  CHECK(ints(at(few, twice).maximum(array({9, 4, -1}))) == Ints{1, 2, 9});
  CHECK(ints(at(few, twice).minimum(array({9, -4, 5}))) == Ints{1, 2, -4});
  CHECK(ints(at(few, Slice(0, 2)).multiply(array(10))) == Ints{10, 20, 3});
  CHECK(ints(at(few, Slice::step(2)).maximum(array(2))) == Ints{2, 2, 3});
  CHECK(at(astype(few, float32), twice).divide(array({2.0f, 2.0f, 4.0f})).to_vector<float>() ==
        std::vector<float>{0.25f, 2, 0.75f});
  CHECK_THROWS_AS(at(few, 0).divide(array(2)), std::invalid_argument);
  CHECK(ints(at(x, ellipsis, newaxis, 0).set(array(9))) == Ints{9, 1, 2, 3, 9, 5, 6, 7, 9, 9, 10, 11});
  CHECK(ints(at(x, Slice(2, 1)).set(array(9))) == ints(x));
  CHECK(ints(x) == ints(arange(12)));  // values do not change
  CHECK(at(x, 1).set(array(2.7f)).dtype() == int32);
  CHECK(ints(at(x, 2, Slice::from(2)).get()) == Ints{10, 11});
  CHECK_THROWS_AS(at(x, 0).set(array({1, 2})), std::invalid_argument);
  const auto g = grad([](const array& v) { return sum(square(at(v, array({0, 0})).add(array({1.0f, 2.0f})))); });
  CHECK(g(array({1.f, 2.f})).to_vector<float>() == std::vector<float>{8, 4});
}

TEST_CASE("random indices against positions") {
  std::mt19937_64 rng(5);
  const auto uniform = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t n[3] = {uniform(1, 4), uniform(1, 4), uniform(1, 4)};
    const array x = reshape(arange(static_cast<int>(n[0] * n[1] * n[2])), {n[0], n[1], n[2]});
    std::vector<Index> entries;
    std::vector<std::vector<int64_t>>
        chosen;  // along each axis, as an outer product: arrays are one element long, or reach over one axis
    int arrays = 0;
    for (int64_t extent : n) {
      std::vector<int64_t> positions;
      const int64_t kind = uniform(0, 2);
      if (kind == 0 && arrays == 0) {
        std::vector<int64_t> v;
        for (int64_t k = uniform(1, 3); k > 0; --k) v.push_back(uniform(-extent, extent - 1));
        for (int64_t p : v) positions.push_back(p < 0 ? p + extent : p);
        entries.emplace_back(array(v.begin(), {static_cast<int64_t>(v.size())}, int64));
        ++arrays;
      } else {
        const int64_t start = uniform(-extent - 1, extent), stop = uniform(-extent - 1, extent + 1),
                      step = uniform(0, 1) ? uniform(1, 2) : -uniform(1, 2);
        const int64_t first = start < 0 ? start + extent : start, last = stop < 0 ? stop + extent : stop;
        if (step > 0)
          for (int64_t p = std::max<int64_t>(first, 0); p < std::min(last, extent); p += step) positions.push_back(p);
        else
          for (int64_t p = std::min(first, extent - 1); p > std::max<int64_t>(last, -1); p += step)
            positions.push_back(p);
        entries.emplace_back(Slice(start, stop, step));
      }
      chosen.push_back(positions);
    }
    Ints expected;
    for (int64_t i : chosen[0])
      for (int64_t j : chosen[1])
        for (int64_t k : chosen[2]) expected.push_back(static_cast<int>((i * n[1] + j) * n[2] + k));
    CHECK(ints(index(x, entries)) == expected);
    Ints updated = ints(x);
    for (int p : expected) updated[static_cast<size_t>(p)] = -7;
    CHECK(ints(IndexedArray(x, entries).set(array(-7))) == updated);
  }
}
