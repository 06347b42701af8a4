// Polynomials of lengths: what is found from values, and what is refused.
#include "io/program/polynomial.h"

#include <doctest/doctest.h>

#include <random>

using namespace weft;
using io::Polynomial;
using io::SamplePoints;

namespace {

std::vector<int64_t> values_at(const Polynomial& p, const SamplePoints& samples) {
  std::vector<int64_t> out;
  for (const auto& point : samples.points()) out.push_back(p.value(point).value());
  return out;
}

}  // namespace

TEST_CASE("polynomials of lengths: random ones are found from their values, and agree everywhere") {
  std::mt19937_64 random(3);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int repeat = 0; repeat < 300; ++repeat) {
    const int count = static_cast<int>(draw(1, 4));
    SamplePoints samples;
    for (int k = 0; k < count; ++k) {
      const int64_t n = draw(2, 5000), step = draw(1, 9);
      samples.first.push_back(n), samples.once.push_back(n + step), samples.twice.push_back(n + step + draw(1, 9));
    }
    Polynomial wanted;
    wanted.terms.push_back({draw(-9, 9), {}});
    for (int i = 0; i < count; ++i) {
      wanted.terms.push_back({draw(-9, 9), {i}});
      for (int j = i; j < count; ++j) wanted.terms.push_back({draw(-9, 9), {i, j}});
    }
    const auto found = io::interpolate(samples, values_at(wanted, samples));
    REQUIRE(found);
    CHECK(found->divisor == 1);
    for (int other = 0; other < 5; ++other) {
      std::vector<int64_t> lengths;
      for (int k = 0; k < count; ++k) lengths.push_back(draw(1, 1 << 20));
      CHECK(found->value(lengths) == wanted.value(lengths));
    }
  }
}

TEST_CASE("polynomials of lengths: fractions have a value where it is whole") {
  const SamplePoints samples{{8}, {16}, {24}};
  const auto half = io::interpolate(samples, std::vector<int64_t>{3, 7, 11});  // n / 2 - 1
  REQUIRE(half);
  CHECK(half->divisor == 2);
  CHECK(half->value(std::vector<int64_t>{6}) == 2);
  CHECK_FALSE(half->value(std::vector<int64_t>{7}).has_value());
  const auto constant = io::interpolate(samples, std::vector<int64_t>{5, 5, 5});
  REQUIRE(constant);
  CHECK(constant->terms == std::vector<Polynomial::Term>{{5, {}}});
  // What 64 bits do not hold has no value, and no polynomial.
  const Polynomial large{{{INT64_MAX, {0, 0}}}, 1};
  CHECK_FALSE(large.value(std::vector<int64_t>{int64_t{1} << 47}).has_value());
  CHECK_FALSE(io::interpolate(samples, std::vector<int64_t>{INT64_MIN, INT64_MAX, 0}).has_value());
}
