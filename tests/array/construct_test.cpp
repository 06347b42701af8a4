// Construction of arrays from numbers, lists, iterators and memory: dtypes and values are MLX's.
#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <limits>
#include <list>
#include <vector>

#include "weft/ops.h"
#include "weft/stream.h"

using namespace weft;

namespace {

template <class T>
void check_list(const array& a, Dtype dtype, const std::vector<T>& expected) {
  CHECK(a.dtype() == dtype);
  CHECK(a.shape() == Shape{static_cast<int64_t>(expected.size())});
  REQUIRE(a.size() == expected.size());
  for (size_t k = 0; k < expected.size(); ++k) CHECK(a.data<T>()[k] == expected[k]);
}

}  // namespace

TEST_CASE("construct: a list gives the dtype of its numbers") {
  check_list<bool>(array({true, false, true}), bool_, {true, false, true});
  check_list<int8_t>(array({int8_t{-3}, int8_t{4}}), int8, {-3, 4});
  check_list<uint8_t>(array({uint8_t{250}}), uint8, {250});
  check_list<int16_t>(array({int16_t{-300}}), int16, {-300});
  check_list<uint16_t>(array({uint16_t{65535}}), uint16, {65535});
  check_list<int32_t>(array({1, -2}), int32, {1, -2});
  check_list<uint32_t>(array({1u, 4294967295u}), uint32, {1u, 4294967295u});
  check_list<int64_t>(array({1ll, -9007199254740993ll}), int64, {1, -9007199254740993});
  check_list<uint64_t>(array({18446744073709551615ull}), uint64, {18446744073709551615ull});
  check_list<float>(array({1.5f, -2.0f}), float32, {1.5f, -2.0f});
  check_list<float>(array({1.5, 0.1}), float32, {1.5f, 0.1f});
  check_list<float>(array({1, 2.5}), float32, {1.0f, 2.5f});
  check_list<float16_t>(array({float16_t{1.5f}, float16_t{-2}}), float16, {1.5f, -2.0f});
  check_list<bfloat16_t>(array({bfloat16_t{1.5f}}), bfloat16, {1.5f});
  check_list<complex64_t>(array({complex64_t{1, 2}, complex64_t{0, -1}}), complex64, {{1, 2}, {0, -1}});
  check_list<complex64_t>(array({std::complex<float>{1, 2}}), complex64, {{1, 2}});
  check_list<float>(array({}), float32, {});
  check_list<int32_t>(array({}, int32), int32, {});
}

TEST_CASE("construct: a list with a dtype is converted to it") {
  check_list<double>(array({0.1, 1e300}, float64), float64, {0.1, 1e300});
  check_list<float>(array({1, 2}, float32), float32, {1.0f, 2.0f});
  check_list<int32_t>(array({1.9f, -1.9f}, int32), int32, {1, -1});
  check_list<bool>(array({0.5f, 0.0f}, bool_), bool_, {true, false});
  check_list<complex64_t>(array({1.0f, -2.0f}, complex64), complex64, {{1, 0}, {-2, 0}});
  check_list<complex64_t>(array({1, 2}, complex64), complex64, {{1, 0}, {2, 0}});
  check_list<float>(array({complex64_t{1, 2}}, float32), float32, {1.0f});
  check_list<bool>(array({complex64_t{0, 2}, complex64_t{}}, bool_), bool_, {true, false});
  check_list<float>(array({18446744073709551615ull}, float32), float32, {18446744073709551616.0f});
  check_list<int64_t>(array({9007199254740993ll}, int64), int64, {9007199254740993});
}

TEST_CASE("construct: a list with a shape") {
  const array a({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(a.shape() == Shape{2, 3});
  CHECK(a.dtype() == int32);
  CHECK(array({true, false}, {2, 1}).dtype() == bool_);
  CHECK(array({0.5, 1.5}, {1, 2}, float64).dtype() == float64);
  CHECK(array({complex64_t{1, 2}, complex64_t{3, 4}}, {2, 1}).dtype() == complex64);
  CHECK(array({}, {0, 3}).shape() == Shape{0, 3});
  CHECK(array({}, {3, 0}, int32).dtype() == int32);
  CHECK_THROWS_WITH_AS(array({1, 2, 3}, {2, 2}), doctest::Contains("3 values do not fill shape (2,2)"),
                       std::invalid_argument);
  CHECK_THROWS_AS(array({1.0f, 2.0f}, {-2}), std::invalid_argument);
}

TEST_CASE("construct: scalars of every type") {
  CHECK(array(true).dtype() == bool_);
  CHECK(array(int8_t{1}).dtype() == int8);
  CHECK(array(1ull).dtype() == uint64);
  CHECK(array(1ll).dtype() == int64);
  CHECK(array(0.1).dtype() == float32);
  CHECK(array(0.1, float64).item<double>() == 0.1);
  CHECK(array(float16_t{0.1f}).item<float>() == static_cast<float>(float16_t{0.1f}));
  CHECK(array(float16_t{0.5f}, float32).dtype() == float32);
  CHECK(array(bfloat16_t{3}).dtype() == bfloat16);
  CHECK(array(complex64_t{1, 2}).item<complex64_t>() == complex64_t{1, 2});
  CHECK(array(std::complex<float>{1, 2}).item<std::complex<float>>() == complex64_t{1, 2});
  CHECK(array(complex64_t{3, 2}, float32).item<float>() == 3.0f);
  CHECK(array(2, complex64).item<complex64_t>() == complex64_t{2, 0});
}

TEST_CASE("construct: iterators of any kind") {
  const std::vector<bool> bits{true, false, true};
  check_list<bool>(array(bits.begin(), {3}), bool_, {true, false, true});
  const std::list<double> numbers{0.5, 2.5};
  check_list<float>(array(numbers.begin(), {2}), float32, {0.5f, 2.5f});
  check_list<double>(array(numbers.begin(), {2}, float64), float64, {0.5, 2.5});
  const std::vector<complex64_t> z{{1, 2}, {3, 4}};
  check_list<complex64_t>(array(z.begin(), {2}), complex64, {{1, 2}, {3, 4}});
  const uint64_t large[] = {std::numeric_limits<uint64_t>::max()};
  check_list<uint64_t>(array(large, {1}), uint64, {std::numeric_limits<uint64_t>::max()});
  const std::vector<float16_t> halves{1.0f, 0.5f};
  check_list<float16_t>(array(halves.begin(), {2}), float16, {1.0f, 0.5f});
  const long double wide[] = {0.5L};
  check_list<float>(array(std::begin(wide), {1}), float32, {0.5f});
}

TEST_CASE("construct: memory with a deleter is used in place, and given back") {
  alignas(8) static float memory[6] = {1, 2, 3, 4, 5, 6};
  int calls = 0;
  void* freed = nullptr;
  const auto deleter = [&](void* p) { ++calls, freed = p; };
  {
    const array a(memory, {2, 3}, float32, deleter);
    CHECK(a.raw_data() == memory);
    CHECK(sum(a).item<float>() == 21);
    const array rows = transpose(a);
    rows.eval();
    CHECK(calls == 0);
  }
  clear_streams();
  CHECK(calls == 1);
  CHECK(freed == memory);
}

TEST_CASE("construct: memory that is not aligned for its dtype is copied, and given back at once") {
  alignas(8) static unsigned char memory[9] = {0, 0, 0, 128, 63, 0, 0, 0, 64};  // 1.0f, 2.0f from the second byte on
  int calls = 0;
  const array a(memory + 1, {2}, float32, [&](void*) { ++calls; });
  CHECK(calls == 1);
  check_list<float>(a, float32, {1.0f, 2.0f});
  CHECK_THROWS_AS(array(memory, {-1}, float32, [&](void*) { ++calls; }), std::invalid_argument);
  CHECK(calls == 1);
}

TEST_CASE("construct: numbers of half and complex types combine with arrays") {
  const array x({1.0f, 2.0f});
  CHECK((x * complex64_t{2, 4}).dtype() == complex64);
  CHECK((x * float16_t{2}).dtype() == float32);
  CHECK((astype(x, float16) + float16_t{2}).dtype() == float16);
}
