// What compares results with golden values finds what it is to find.
#include "mlx/golden.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "mlx/differences.h"

namespace weft::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
bool agrees(const array& result, const std::vector<T>& expected, Dtype dtype, const Bound& bound = {}) {
  const Stored stored{
      dtype, {static_cast<int64_t>(expected.size())}, reinterpret_cast<const std::byte*>(expected.data())};
  return difference(result, stored, bound).empty();
}
bool agrees(float ours, float mlx, const Bound& bound = {}) {
  return agrees<float>(array({ours}), {mlx}, float32, bound);
}

}  // namespace

TEST_CASE("golden values: dtype, shape and integers must be equal") {
  CHECK(agrees<int32_t>(array({1, 2}), {1, 2}, int32));
  CHECK(!agrees<int32_t>(array({1, 3}), {1, 2}, int32));
  CHECK(!agrees<int32_t>(array({1, 2, 3}), {1, 2}, int32));
  CHECK(!agrees<uint32_t>(array({1, 2}), {1, 2}, uint32));
}

TEST_CASE("golden values: floats within steps of their dtype, or of a floor") {
  const float next = std::nextafter(1.0f, 2.0f);
  CHECK(agrees(1.0f, 1.0f));
  CHECK(!agrees(next, 1.0f));
  CHECK(agrees(next, 1.0f, {1}));
  CHECK(!agrees(std::nextafter(next, 2.0f), 1.0f, {1}));
  CHECK(!agrees(1e-7f, 0.0f, {1}));
  CHECK(agrees(1e-7f, 0.0f, {1, 1}));
  CHECK(!agrees(3e-7f, 0.0f, {1, 1}));
  const float largest = std::numeric_limits<float>::max();
  CHECK(agrees(infinity, largest, {1}));
  CHECK(!agrees(infinity, largest));
  CHECK(!agrees(infinity, -infinity, {100}));
  CHECK(!agrees(infinity, 1.0f, {100}));
}

TEST_CASE("golden values: NaN agrees with NaN alone, and zeros have signs") {
  CHECK(agrees(nan, nan));
  CHECK(!agrees(nan, 1.0f, {100, 100}));
  CHECK(!agrees(1.0f, nan, {100, 100}));
  CHECK(!agrees(-0.0f, 0.0f, {100, 100}));
  CHECK(agrees(-0.0f, 0.0f, {0, 0, false}));
}

TEST_CASE("golden values: parts of complex numbers within steps of the magnitude") {
  array z(complex64_t{1, 1e-8f});
  const float near[] = {1, 2e-8f}, far[] = {1, 1e-6f};
  CHECK(difference(z, {complex64, {}, reinterpret_cast<const std::byte*>(near)}, {1}).empty());
  CHECK(!difference(z, {complex64, {}, reinterpret_cast<const std::byte*>(far)}, {1}).empty());
}

TEST_CASE("golden values: the class of an exception has Python's name") {
  CHECK(thrown_by([] { throw std::invalid_argument("x"); }) == "ValueError");
  CHECK(thrown_by([] { throw std::out_of_range("x"); }) == "IndexError");
  CHECK(thrown_by([] { throw std::runtime_error("x"); }) == "RuntimeError");
  CHECK(thrown_by([] {}).empty());
}

TEST_CASE("golden values: patterns of listed cases") {
  CHECK(matches("operator/exp/float32/*", "operator/exp/float32/reversed"));
  CHECK(matches("operator/cum*|exp/float16|float32/*", "operator/cummax/float32/reversed"));
  CHECK(!matches("operator/exp/float32", "operator/exp/float32/reversed"));
  CHECK(!matches("operator/exp/float32/*", "operator/expm1/float32/reversed"));
  CHECK(!matches("operator/exp/float32/*", "operator/exp/float64/reversed"));
}

}  // namespace weft::test
