// Helpers: limits of types, promotion of lists, printing with options.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/utils.h"

using namespace weft;

namespace {
std::string printed(const array& a) {
  std::ostringstream os;
  os << a;
  return os.str();
}
}  // namespace

TEST_CASE("result_type, normalize_axis_index, powers of two, safe_cast") {
  CHECK(result_type({array(0, int32), array(false), array(0.0f)}) == float32);
  CHECK(result_type(std::vector<array>{}) == bool_);
  CHECK(result_type(array(1, int8), array(1, uint8), array(true)) == int16);
  CHECK(normalize_axis_index(-1, 3) == 2);
  CHECK_THROWS_WITH_AS(normalize_axis_index(3, 3, "[here] "),
                       "[here] Axis 3 is out of bounds for array with 3 dimensions.", std::out_of_range);
  CHECK(is_power_of_2(64));
  CHECK_FALSE(is_power_of_2(0));
  CHECK(next_power_of_2(65) == 128);
  CHECK(safe_cast(5u) == 5);
  CHECK_THROWS_AS(safe_cast(std::numeric_limits<uint64_t>::max(), "here"), std::overflow_error);
}

TEST_CASE("limits of types") {
  CHECK(finfo(float32).max == static_cast<double>(std::numeric_limits<float>::max()));
  CHECK(finfo(float32).smallest_normal == static_cast<double>(std::numeric_limits<float>::min()));
  CHECK(finfo(float64).eps == std::numeric_limits<double>::epsilon());
  CHECK(finfo(float64).max == std::numeric_limits<double>::max());
  CHECK(finfo(float16).min == -65504);
  CHECK(finfo(float16).eps == 0x1p-10);
  CHECK(finfo(bfloat16).max == 0x1.fep127);
  CHECK(finfo(complex64).dtype == float32);
  CHECK(finfo(float16).bits == 16);
  CHECK(iinfo(int8).min == -128);
  CHECK(iinfo(uint16).max == 65535);
  CHECK(iinfo(int64).min == std::numeric_limits<int64_t>::min());
  CHECK(iinfo(uint64).max == std::numeric_limits<uint64_t>::max());
  CHECK_THROWS_AS(finfo{int32}, std::invalid_argument);
  CHECK_THROWS_AS(iinfo{bool_}, std::invalid_argument);
}

TEST_CASE("printing: options, special numbers, every dtype") {
  const PrintOptions before = get_printoptions();
  const array x({1.0f, 2.5f, -0.125f, 1e-10f});
  CHECK(printed(x) == "array([1, 2.5, -0.125, 1e-10], dtype=float32)");
  set_printoptions({.precision = 2});
  CHECK(printed(x) == "array([1.00, 2.50, -0.12, 0.00], dtype=float32)");
  CHECK(printed(arange(3)) == "array([0, 1, 2], dtype=int32)");
  set_printoptions({.edge_items = 1});
  CHECK(printed(arange(9)) == "array([0, ..., 8], dtype=int32)");
  set_printoptions(before);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(printed(array({inf, -inf, std::nanf(""), -std::nanf("")})) == "array([inf, -inf, nan, nan], dtype=float32)");
  const complex64_t c[] = {{1, -2}, {0.5f, 0}, {0, std::nanf("")}};
  CHECK(printed(array::from_data(c, {3}, complex64)) == "array([1-2j, 0.5+0j, 0+nanj], dtype=complex64)");
  CHECK(printed(array(~uint64_t{0}, uint64)) == "array(18446744073709551615, dtype=uint64)");
  for (Dtype t : {uint8, uint16, uint32, int8, int16, int64, float16, bfloat16, float64})
    CHECK(printed(array({1, 2}, t)) == std::string("array([1, 2], dtype=") + dtype_name(t) + ")");
  CHECK(printed(transpose(reshape(arange(4), {2, 2}))) == "array([[0, 2],\n       [1, 3]], dtype=int32)");
  const array large = reshape(arange(700), {7, 100});
  CHECK(printed(large).substr(0, 62) == "array([[0, 1, 2, ..., 97, 98, 99],\n       [100, 101, 102, ...,");
}

TEST_CASE("memory limits can be read") {
  const size_t before = set_memory_limit(size_t{1} << 40);
  CHECK(get_memory_limit() == size_t{1} << 40);
  CHECK(set_memory_limit(before) == size_t{1} << 40);
  CHECK((before == 0 || get_memory_limit() == before));
  CHECK(set_wired_limit(123) == 0);
}
