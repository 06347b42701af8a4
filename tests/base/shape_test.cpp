// Shapes, symbolic lengths, broadcasting, and the messages of their errors.
#include <doctest/doctest.h>

#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "weft/shape.h"

using namespace weft;

namespace {

int64_t length(const Dim& d) { return d; }

}  // namespace

TEST_CASE("shape: sizes and strides") {
  CHECK(num_elements({}) == 1);
  CHECK(num_elements({2, 3, 4}) == 24);
  CHECK(num_elements({2, 0, 4}) == 0);
  CHECK(num_elements({int64_t{1} << 40, 4}) == int64_t{1} << 42);
  CHECK(num_elements({0, int64_t{1} << 62, 8}) == 0);
  CHECK(row_major_strides({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(row_major_strides({}).empty());
  CHECK(row_major_strides({0, int64_t{1} << 62, 8}).size() == 3);
  const Shape huge{int64_t{1} << 32, int64_t{1} << 31};
  CHECK_THROWS_WITH_AS(num_elements(huge),
                       "[num_elements] an array of shape (4294967296,2147483648) has more than 2^63 elements",
                       std::overflow_error);
  CHECK_THROWS_AS(row_major_strides({4, int64_t{1} << 62, 8}), std::overflow_error);
  CHECK_THROWS_AS(num_elements({2, -1}), std::invalid_argument);
}

TEST_CASE("shape: initialiser lists of any integer, comparison, printing") {
  const int n = 3;
  const size_t m = 4;
  const Shape s{n, static_cast<int64_t>(m), 5};
  CHECK(to_string(s) == "(3,4,5)");
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{7}) == "(7)");
  std::ostringstream out;
  out << s;
  CHECK(out.str() == "(3,4,5)");
  CHECK(s == Shape{3, 4, 5});
  CHECK(s != Shape{3, 4});
  CHECK(s[0] == 3);
  CHECK(s[1] + 1 == 5);
}

TEST_CASE("shape: symbolic lengths") {
  const Symbol* t = symbol("t", 64);
  CHECK(t == symbol("t", 64));
  CHECK(t != symbol("t", 65));
  CHECK(t != symbol("s", 64));
  const Shape s{2, t, 8};
  CHECK(to_string(s) == "(2,t<=64,8)");
  CHECK_FALSE(is_static(s));
  CHECK(is_static(Shape{2, 3}));
  CHECK(num_elements(s) == 2 * 64 * 8);
  CHECK(row_major_strides(s) == Strides{512, 8, 1});
  CHECK(s[1].bound() == 64);
  CHECK(s[1] != 64);
  CHECK(s[1] == Dim(t));
  CHECK_THROWS_WITH_AS(length(s[1]),
                       "[shape] the length t<=64 is known only when the compiled program is called; use bound() for "
                       "its largest value, or "
                       "compile this part with a static length",
                       std::invalid_argument);
  CHECK_THROWS_AS(symbol("t", 0), std::invalid_argument);
  CHECK_THROWS_AS(symbol("", 4), std::invalid_argument);
}

TEST_CASE("shape: symbols are interned once whichever thread asks") {
  std::vector<std::thread> threads;
  std::vector<std::vector<const Symbol*>> seen(8);
  for (size_t k = 0; k < seen.size(); ++k)
    threads.emplace_back([&seen, k] {
      for (int n = 0; n < 200; ++n) seen[k].push_back(symbol("w" + std::to_string(n % 20), 1 + n % 7));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& each : seen) CHECK(each == seen[0]);
}

TEST_CASE("shape: broadcasting") {
  const Symbol* t = symbol("t", 64);
  CHECK(broadcast_shapes({2, 3}, {3}) == Shape{2, 3});
  CHECK(broadcast_shapes({}, {4, 1}) == Shape{4, 1});
  CHECK(broadcast_shapes({2, 1, 4}, {5, 1}) == Shape{2, 5, 4});
  CHECK(broadcast_shapes({0, 3}, {1, 3}) == Shape{0, 3});
  CHECK(broadcast_shapes({t, 1}, {1, 5}) == Shape{t, 5});
  CHECK(broadcast_shapes({t}, {2, t}) == Shape{2, t});
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {2, 4}),
                       "[broadcast_shapes] shapes (2,3) and (2,4) cannot be broadcast: counted from the right, lengths "
                       "must be equal or 1",
                       std::invalid_argument);
  CHECK_THROWS_AS(broadcast_shapes({t}, {64}), std::invalid_argument);
  CHECK_THROWS_AS(broadcast_shapes({0}, {2}), std::invalid_argument);
}

TEST_CASE("shape: axes count from either end") {
  CHECK(normalize_axis("sum", -1, 3) == 2);
  CHECK(normalize_axis("sum", 0, 3) == 0);
  CHECK_THROWS_WITH_AS(normalize_axis("sum", 3, 2), "[sum] axis 3 is out of range for an array with 2 dimensions",
                       std::out_of_range);
  CHECK_THROWS_AS(normalize_axis("sum", -3, 2), std::out_of_range);
  CHECK_THROWS_AS(normalize_axis("sum", 0, 0), std::out_of_range);
}

TEST_CASE("errors: operation first, the right type") {
  CHECK_THROWS_WITH_AS(throw_invalid("op", "what"), "[op] what", std::invalid_argument);
  CHECK_THROWS_WITH_AS(throw_out_of_range("op", "what"), "[op] what", std::out_of_range);
  CHECK_THROWS_WITH_AS(throw_failure("op", "what"), "[op] what", std::runtime_error);
  CHECK_THROWS_WITH_AS(throw_internal("op", "what"), "[op] what; this is a bug in Weft", internal_error);
  try {
    throw_internal("op", "what");
  } catch (const internal_error& e) {
    CHECK_THROWS_WITH_AS(throw_internal("outer", e), "[outer] [op] what; this is a bug in Weft", internal_error);
  }
  CHECK_NOTHROW(check(true, "op", "what"));
  CHECK_THROWS_AS(check(false, "op", "what"), internal_error);
}

TEST_CASE("shape: made from a list with a name, of any integers, and from a vector of lengths") {
  const auto list = {2, 3};
  CHECK(Shape(list) == Shape{2, 3});
  const auto wide = {int64_t{1} << 40, int64_t{2}};
  CHECK(Shape(wide)[0] == int64_t{1} << 40);
  CHECK(Shape(std::vector<Dim>{4, 5}) == Shape{4, 5});
  const int sizes[] = {7, 8};
  CHECK(Shape(std::begin(sizes), std::end(sizes)) == Shape{7, 8});
  CHECK(Shape(2, Dim(3)) == Shape{3, 3});
  CHECK(Shape{}.empty());
}
